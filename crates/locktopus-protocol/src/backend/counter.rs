//! The counter of a semaphore, a rate limiter or a latch.

use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{
    BackendError, CounterAction, CounterOutcome, CounterRequest, Counters, Executed, LockKind,
};

use super::RedisBackend;
use super::context::Context;
use crate::execution::call::{Call, Effect};
use crate::execution::replication::Confirmed;
use crate::kinds::{Counter, Counts};
use crate::wire::other_kind;

/// How long the server remembers the answer to an operation, in ms: longer than any client repeats
/// it.
const REMEMBERED: &str = "120000";

#[async_trait]
impl Counters for RedisBackend {
    async fn counter(&self, request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
        let context = self.contexts.here()?;
        let outcome = match request.action {
            CounterAction::Read => read(&context, request).await,
            _ => change(&context, request).await,
        };
        outcome.map_err(|error| other_kind::tell(error, |_| &request.target))
    }
}

async fn change(
    context: &Context,
    request: &CounterRequest,
) -> Result<CounterOutcome, BackendError> {
    let kind = request.target.kind();
    let number = number_of(context, kind)?;
    let counts = number.counts;
    let script = context.safety.choose(number.plain, number.quarantined);
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
            return Err(context.executor.unsupported(message));
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
    // A latch grants nothing, so quarantine does not apply to it.
    let effect = match counts {
        Counts::Down => Effect::Extend,
        Counts::Permits | Counts::Rate => Effect::Grant,
    };
    let (slot, deadline) = (keys.slot(), request.deadline);
    let call = Call::new(effect, script, &names, &args, slot, deadline);
    let Confirmed { reply, unconfirmed } = context.run(call).await?;
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
    let (names, slot, deadline) = (keys.scripts(), keys.slot(), request.deadline);
    let call = Call::new(Effect::Look, script, &names, &[], slot, deadline);
    let read = context.run(call).await?;
    context.decoder(script).counted(&read.reply)
}

fn number_of(context: &Context, kind: &LockKind) -> Result<&'static Counter, BackendError> {
    let number = context.row(kind)?.counter.as_ref();
    number.ok_or_else(|| {
        let message = format!("a {} has no number inside", kind.as_str());
        context.executor.unsupported(message)
    })
}

/// Numbers up to 2^53 - 1 are exact in Lua.
fn bounded(context: &Context, value: u64) -> Result<i64, BackendError> {
    let exact = i64::try_from(value).ok().filter(|value| *value < 1 << 53);
    exact.ok_or_else(|| {
        let message = format!("{value} is too large; at most 2^53 - 1");
        context.executor.unsupported(message)
    })
}
