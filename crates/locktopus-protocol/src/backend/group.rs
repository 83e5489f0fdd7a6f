//! Several locks of one slot by one script, all or nothing.

use async_trait::async_trait;
use locktopus_contract::{
    AcquireAttempt, BackendError, FencingToken, GroupOutcome, Groups, LockTarget,
};
use tokio::time::Instant;

use super::RedisBackend;
use super::context::{Context, millis};
use crate::execution::call::{Call, Effect};
use crate::execution::replication::Confirmed;
use crate::kinds;
use crate::scripts::{GROUP_ACQUIRE, QUARANTINED_GROUP_ACQUIRE};
use crate::wire::other_kind;

#[async_trait]
impl Groups for RedisBackend {
    /// Groups locks and mutexes by slot; outside a cluster all of them form one group.
    fn group(&self, target: &LockTarget) -> Option<u32> {
        let context = &self.contexts.first;
        kinds::of(target.kind())?.in_groups?;
        Some(match context.is_cluster() {
            true => u32::from(context.keys(target).slot()),
            false => 0,
        })
    }

    async fn attempt_all(&self, attempts: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError> {
        let context = self.contexts.here()?;
        let Some(first) = attempts.first() else {
            return Ok(GroupOutcome::Granted { tokens: Vec::new() });
        };
        let deadlines = attempts.iter().map(|attempt| attempt.deadline);
        let deadline = deadlines.fold(first.deadline, Instant::min);
        let slot = context.keys(&first.target).slot();
        context.know_time(slot, deadline).await?;
        loop {
            if let Some(outcome) = try_once(&context, attempts, deadline).await? {
                return Ok(outcome);
            }
            // The estimate of the server's clock was wrong; the answer has corrected it.
            context.check_time(deadline)?;
        }
    }
}

async fn try_once(
    context: &Context,
    attempts: &[AcquireAttempt],
    deadline: Instant,
) -> Result<Option<GroupOutcome>, BackendError> {
    let members: Vec<_> = attempts.iter().map(|a| context.keys(&a.target)).collect();
    let slot = members[0].slot();
    for attempt in attempts {
        context.check_lease(attempt.target.kind(), attempt.lease)?;
    }
    let safety = &context.safety;
    let script = safety.choose(&GROUP_ACQUIRE, &QUARANTINED_GROUP_ACQUIRE);
    // All members share one retention: the longest, where 0 means forever.
    let retentions = attempts
        .iter()
        .map(|attempt| context.retention(attempt.token_retention, attempt.lease));
    let retention = retentions.max_by_key(|millis| millis.wrapping_sub(1));
    let retention = retention.unwrap_or_default();
    let time_left = deadline.saturating_duration_since(Instant::now());
    let sent = context.clock.stamp();
    let mut texts = vec![
        retention.to_string().into_bytes(),
        context
            .clock
            .not_after(slot, sent, time_left)
            .to_string()
            .into_bytes(),
        context.publish_command().to_vec(),
    ];
    for (attempt, keys) in attempts.iter().zip(&members) {
        let kind = attempt.target.kind();
        let letter = context.row(kind)?.in_groups.ok_or_else(|| {
            let message = format!("a {} cannot be taken together with others", kind.as_str());
            context.executor.unsupported(message)
        })?;
        let tokens = if kind.has_tokens() { attempt.tokens } else { 0 };
        let floor = attempt.floor.map_or(0, FencingToken::get);
        texts.extend([
            keys.names.len().to_string().into_bytes(),
            letter.to_vec(),
            attempt.owner.expose().to_vec(),
            millis(kind.stored_lease(attempt.lease)).into_bytes(),
            tokens.to_string().into_bytes(),
            floor.to_string().into_bytes(),
        ]);
    }
    let keys: Vec<&[u8]> = members
        .iter()
        .flat_map(|keys| keys.scripts().to_vec())
        .collect();
    let args: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    let call = Call::new(Effect::Grant, script, &keys, &args, slot, deadline);
    let Confirmed { reply, unconfirmed } = context.run(call).await.map_err(|error| {
        let member = |index| attempts.get(index).unwrap_or(&attempts[0]);
        other_kind::tell(error, |index| &member(index).target)
    })?;
    let tokens: Vec<bool> = attempts
        .iter()
        .map(|attempt| attempt.target.kind().has_tokens())
        .collect();
    let (outcome, server_micros) = context.decoder(script).group(&reply, &tokens)?;
    context.clock.observe(slot, sent, server_micros);
    match (&outcome, unconfirmed) {
        (Some(GroupOutcome::Granted { .. }), Some(unconfirmed)) => {
            Err(context.give_back(attempts, unconfirmed).await)
        }
        _ => Ok(outcome),
    }
}
