//! One attempt to take a lock, or a place in its queue.

use locktopus_contract::{AcquireAttempt, AttemptOutcome, BackendError, FencingToken, Mode};
use tokio::time::Instant;

use super::context::{Context, whole_millis};
use crate::execution::call::{Call, Effect};
use crate::execution::replication::Confirmed;
use crate::kinds;
use crate::kinds::keys::Keys;
use crate::wire::numbers::Numbers;
use crate::wire::reply::Acquired;
use crate::wire::{other_kind, too_few};

impl Context {
    /// One execution of the acquire script.
    pub(super) async fn try_once(
        &self,
        attempt: &AcquireAttempt,
        keys: &Keys,
    ) -> Result<Acquired, BackendError> {
        let kind = attempt.target.kind();
        let (script, slot) = (&self.scripts(kind)?.acquire, keys.slot());
        let tokens = if kind.has_tokens() { attempt.tokens } else { 0 };
        self.check_lease(kind, attempt.lease)?;
        let time_left = attempt.deadline.saturating_duration_since(Instant::now());
        let sent = self.clock.stamp();
        let numbers = Numbers::of([
            whole_millis(kind.stored_lease(attempt.lease)).into(),
            self.retention(attempt.token_retention, attempt.lease)
                .into(),
            self.clock.not_after(slot, sent, time_left).into(),
            attempt.permits.into(),
            tokens.into(),
            attempt.floor.map_or(0, FencingToken::get).into(),
            attempt.place.map_or(0, whole_millis).into(),
        ]);
        let [
            lease,
            retention,
            not_after,
            permits,
            tokens_text,
            floor,
            place,
        ] = numbers.each();
        // Some kinds take more arguments.
        let mut args = Vec::with_capacity(14);
        args.extend([
            attempt.owner.expose(),
            lease,
            retention,
            not_after,
            self.held(kind)?.letter,
            permits,
            tokens_text,
            floor,
            self.publish_for(keys),
        ]);
        let (inbox, former) = self.inbox_of_place(keys).unzip();
        let inbox = inbox.as_ref().map(String::as_bytes);
        let former = former.flatten();
        if let Some(inbox) = inbox.filter(|_| attempt.place.is_some()) {
            args.extend([place, inbox]);
        }
        if self.row(kind)?.attempts_announce {
            args.resize(11, b"");
            args.extend(keys.channel.as_deref());
        }
        if let Some(inbox) = inbox.filter(|_| attempt.recall && kind.can_be_kept()) {
            args.resize(10, b"");
            args.extend([inbox, b"", b"1"]);
        }
        let queues = kind.mode() == Mode::Exclusive && attempt.place.is_some();
        if attempt.first && queues {
            args.resize(13, b"");
            args.push(b"1");
        }
        if let Some(former) = former.as_ref().filter(|_| attempt.place.is_some()) {
            args.resize(14, b"");
            args.push(former.as_bytes());
        }
        let (names, deadline) = (keys.scripts(), attempt.deadline);
        let call = Call::new(Effect::Grant, script, &names, &args, slot, deadline);
        let Confirmed { reply, unconfirmed } = self
            .run(call)
            .await
            .map_err(|error| other_kind::tell(error, |_| &attempt.target))
            .map_err(|error| too_few::tell(error, attempt))?;
        let acquired = self.decoder(script).acquired(&reply, tokens > 0)?;
        keys.note_wait(matches!(
            acquired.outcome,
            Some(AttemptOutcome::Queued { .. })
        ));
        self.clock.observe(slot, sent, acquired.server_micros);
        match (&acquired.outcome, unconfirmed) {
            (Some(AttemptOutcome::Granted { .. }), Some(unconfirmed)) => {
                // Boxed, like the code for fair locks below, because most attempts need no room for
                // it.
                let given_back = self.give_back(std::slice::from_ref(attempt), unconfirmed);
                Err(Box::pin(given_back).await)
            }
            _ => Ok(acquired),
        }
    }

    /// Subscribes the waiter of a fair lock to its own channel, because Redisson wakes each waiter
    /// by name. True if the subscription is new.
    pub(super) async fn listen_for_waiter(&self, attempt: &AcquireAttempt, keys: &Keys) -> bool {
        let by_name = kinds::of(attempt.target.kind()).is_some_and(|row| row.wakes_by_name);
        let Some((topic, base)) = self
            .topic(&attempt.target)
            .zip(keys.channel.as_deref())
            .filter(|_| by_name)
        else {
            return false;
        };
        let channel = [base, b":", attempt.owner.expose()].concat();
        // Leaves half of the time for the second attempt.
        let within = attempt.deadline.saturating_duration_since(Instant::now()) / 2;
        self.hub
            .subscribe_waiter(&topic, &attempt.owner, channel.into(), within)
            .await
    }
}
