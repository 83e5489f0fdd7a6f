//! The counter of a semaphore, a rate limiter or a latch.

use std::time::Duration;

use locktopus_contract::{
    BackendError, BackendErrorKind, CounterAction, CounterOutcome, CounterRequest, Executed,
    LockKind,
};

use super::context::Context;
use crate::execution::call::{Call, Effect, OnSplit};
use crate::execution::replication::Confirmed;
use crate::kinds::{Counter, Counts};

/// How long the server remembers the answer to an operation, in ms: longer than any client repeats
/// it.
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
    let (script, counts) = (context.safety.counter(number), number.counts);
    let mut period = Duration::ZERO;
    let (word, number) = match (request.action, counts) {
        (CounterAction::Initialise(value), Counts::Permits | Counts::Down) => {
            ("init", bounded(context, value)?)
        }
        (CounterAction::Resize(value), Counts::Permits) => ("resize", bounded(context, value)?),
        (CounterAction::Add(more), Counts::Permits) => ("add", more),
        (CounterAction::Drain, Counts::Permits) => ("drain", 0),
        (CounterAction::Rate { permits, per, keep }, Counts::Rate) => {
            // Permits are away this long, and a failover may forget them as it forgets leases.
            context.check_lease(kind, per)?;
            period = per;
            let word = if keep { "init" } else { "resize" };
            (word, bounded(context, permits)?)
        }
        (CounterAction::CountDown, Counts::Down) => ("count_down", 0),
        (CounterAction::Delete, _) => ("delete", 0),
        (other, _) => {
            let message = format!("{other:?} is not for a {}", kind.as_str());
            return Err(refused(context, message));
        }
    };
    let keys = context.keys(&request.target);
    let done = keys.done(&request.operation);
    let mut names = keys.scripts().to_vec();
    names.push(&done);
    let (number, period) = (number.to_string(), period.as_millis().to_string());
    let retention = context.retention(None, Duration::ZERO).to_string();
    let args = [
        word.as_bytes(),
        number.as_bytes(),
        context.publish_for(&keys),
        keys.channel.as_deref().unwrap_or_default(),
        REMEMBERED.as_bytes(),
        retention.as_bytes(),
        period.as_bytes(),
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
    let effect = match counts {
        Counts::Down => Effect::Extend,
        Counts::Permits | Counts::Rate => Effect::Grant,
    };
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

/// Reads the number. Reading grants nothing, so quarantine does not apply.
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
