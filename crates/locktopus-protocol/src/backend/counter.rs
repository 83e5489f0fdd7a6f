//! The number inside a semaphore or a latch.

use locktopus_contract::{
    BackendError, BackendErrorKind, CounterAction, CounterOutcome, CounterRequest, Executed,
    LockKind,
};

use super::context::Context;
use crate::execution::call::{Call, Effect, OnSplit};
use crate::execution::replication::Confirmed;
use crate::kinds::Counter;

/// How long the server remembers the answer to an operation, in ms: longer than any client repeats the operation.
const REMEMBERED: &str = "120000";

pub(crate) async fn run(
    context: &Context,
    request: &CounterRequest,
) -> Result<CounterOutcome, BackendError> {
    if request.action == CounterAction::Read {
        return read(context, request).await;
    }
    let kind = request.target.kind();
    let number = number_of(context, kind)?;
    let (script, latch) = (context.safety.counter(number), number.opens);
    let (word, number) = match request.action {
        CounterAction::Initialise(value) => ("init", bounded(context, value)?),
        CounterAction::Resize(value) if !latch => ("resize", bounded(context, value)?),
        CounterAction::Add(more) if !latch => ("add", more),
        CounterAction::Drain if !latch => ("drain", 0),
        CounterAction::CountDown if latch => ("count_down", 0),
        CounterAction::Delete => ("delete", 0),
        other => {
            let message = format!("{other:?} is not for a {}", kind.as_str());
            return Err(refused(context, message));
        }
    };
    let keys = context.keys(&request.target);
    let done = keys.done(&request.operation);
    let mut names = keys.scripts().to_vec();
    names.push(&done);
    let (number, retention) = (
        number.to_string(),
        context
            .retention(None, std::time::Duration::ZERO)
            .to_string(),
    );
    let args = [
        word.as_bytes(),
        number.as_bytes(),
        context.publish_for(&keys),
        keys.channel.as_deref().unwrap_or_default(),
        REMEMBERED.as_bytes(),
        retention.as_bytes(),
    ];
    let call = Call {
        script,
        keys: &names,
        args: &args,
        slot: keys.slot(),
        deadline: request.deadline,
        on_split: OnSplit::Wait,
    };
    // A latch grants nothing, so quarantine does not apply to it.
    let effect = if latch { Effect::Extend } else { Effect::Grant };
    let Confirmed { reply, unconfirmed } = context.run(effect, call).await?;
    let outcome = context.decoder(script).counted(&reply)?;
    match unconfirmed {
        Some(unconfirmed) if outcome.changed => {
            let message = "changed, but not confirmed by enough replicas";
            Err(context
                .executor
                .not_replicated(unconfirmed, Executed::Maybe, message))
        }
        _ => Ok(outcome),
    }
}

/// Reads the number, which grants nothing: quarantine does not apply.
async fn read(context: &Context, request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
    let script = number_of(context, request.target.kind())?.read;
    let keys = context.keys(&request.target);
    let call = Call {
        script,
        keys: &keys.scripts(),
        args: &[],
        slot: keys.slot(),
        deadline: request.deadline,
        on_split: OnSplit::Wait,
    };
    let read = context.run(Effect::Look, call).await?;
    context.decoder(script).counted(&read.reply)
}

fn number_of(context: &Context, kind: &LockKind) -> Result<&'static Counter, BackendError> {
    let number = context.row(kind)?.counter.as_ref();
    let none = || refused(context, format!("a {} has no number inside", kind.as_str()));
    number.ok_or_else(none)
}

/// Numbers up to 2^53 - 1 are exact in Lua.
fn bounded(context: &Context, value: u64) -> Result<i64, BackendError> {
    let exact = i64::try_from(value).ok().filter(|value| *value < 1 << 53);
    exact.ok_or_else(|| refused(context, format!("{value} is too large; at most 2^53 - 1")))
}

fn refused(context: &Context, message: String) -> BackendError {
    context
        .executor
        .error(BackendErrorKind::Unsupported, Executed::No, message)
}
