//! Releases. The release script also hands the lock off to the next waiter.

use std::time::Duration;

use locktopus_contract::{
    AcquireAttempt, BackendError, BackendErrorKind, Executed, Linger, ReleaseOutcome,
    ReleaseRequest,
};

use super::context::{Context, millis, whole_millis};
use crate::execution::call::{Call, Effect, OnSplit};
use crate::execution::replication::{Confirmed, Unconfirmed};
use crate::kinds::keys::Keys;
use crate::scripts::KEEP_TOKENS;
use crate::wire::numbers::Numbers;

impl Context {
    /// Releases, and says whether the waiters could be notified.
    pub(super) async fn release(
        &self,
        request: &ReleaseRequest,
    ) -> Result<(ReleaseOutcome, bool), BackendError> {
        if let Some(linger) = &request.linger
            && self.linger(request, linger).await?
        {
            return Ok((ReleaseOutcome::Released, true));
        }
        let (keys, kind) = (self.keys(&request.target), request.target.kind());
        let script = &self.scripts(kind)?.release;
        let retention = self.retention(request.token_retention, Duration::ZERO);
        let numbers = Numbers::of([request.permits.into(), retention.into()]);
        let [permits, retention] = numbers.each();
        let mut args = vec![
            request.owner.expose(),
            self.held(kind)?.letter,
            permits,
            self.publish_for(&keys),
            keys.channel.as_deref().unwrap_or_default(),
            retention,
            keys.native.as_deref().unwrap_or_default(),
        ];
        match keys.notify_args() {
            Some(notify) => args.extend(notify),
            None if keys.others_wait() => args.push(b"1"),
            None => {}
        }
        let hint = request.place_hint.as_ref().map(|hint| {
            let tokens = if kind.has_tokens() { hint.tokens } else { 0 };
            Numbers::of([
                whole_millis(hint.place).into(),
                whole_millis(kind.stored_lease(hint.lease)).into(),
                tokens.into(),
            ])
        });
        // The inbox of a waiter that polls, or did, may differ, so the script searches for its
        // place.
        let inbox = hint.as_ref().and_then(|_| self.inbox_of_place(&keys));
        if let (Some(hint), Some((inbox, None))) = (&hint, &inbox) {
            args.resize(9, b"");
            args.extend(hint.each());
            args.push(inbox.as_bytes());
        }
        let (names, slot, deadline) = (keys.scripts(), keys.slot(), request.deadline);
        let call = Call {
            on_split: match self.row(kind)?.is_one_key {
                // Waiters in the queue find a lock of a migrating slot at their next heartbeat.
                true => OnSplit::FirstKey,
                false => OnSplit::Wait,
            },
            ..Call::new(Effect::Release, script, &names, &args, slot, deadline)
        };
        let told = self.run(call).await?;
        self.decoder(script).released(&told.reply)
    }

    /// Leaves the lock held without an owner; false if this owner does not hold it.
    async fn linger(
        &self,
        request: &ReleaseRequest,
        linger: &Linger,
    ) -> Result<bool, BackendError> {
        let (keys, kind) = (self.keys(&request.target), request.target.kind());
        let script = self.row(kind)?.linger.ok_or_else(|| {
            let message = format!("a {} cannot be left held by nobody", kind.as_str());
            self.executor.unsupported(message)
        })?;
        self.keep_token(request, &keys, linger.time).await?;
        let time = millis(linger.time);
        let args = [
            request.owner.expose(),
            linger.heir.expose(),
            time.as_bytes(),
        ];
        let (names, slot) = ([keys.main().as_bytes()], keys.slot());
        // Runs like an extension: it counts once the safety mode is satisfied, and grants nothing.
        let call = Call::new(
            Effect::Extend,
            script,
            &names,
            &args,
            slot,
            request.deadline,
        );
        let Confirmed { reply, unconfirmed } = Box::pin(self.run(call)).await?;
        if let Some(unconfirmed) = unconfirmed {
            let message = "left held by nobody, but not confirmed by enough replicas";
            let executed = Executed::Maybe;
            return Err(self.executor.not_replicated(unconfirmed, executed, message));
        }
        self.decoder(script).lingers(&reply)
    }

    /// Keeps the token for twice this time, as a grant with such a lease does.
    async fn keep_token(
        &self,
        request: &ReleaseRequest,
        keys: &Keys,
        time: Duration,
    ) -> Result<(), BackendError> {
        let kept = self.retention(request.token_retention, Duration::ZERO);
        let needed = whole_millis(time.saturating_mul(2));
        let too_short = kept != 0 && kept < needed;
        let Some(token) = keys.token().filter(|_| too_short) else {
            return Ok(());
        };
        let (names, needed) = ([token.as_bytes()], needed.to_string());
        let (args, slot, deadline) = ([needed.as_bytes()], keys.slot(), request.deadline);
        let call = Call::new(Effect::Extend, &KEEP_TOKENS, &names, &args, slot, deadline);
        Box::pin(self.run(call)).await.map(drop)
    }

    /// Releases grants that too few replicas confirmed, and returns the error for the caller.
    pub(super) async fn give_back(
        &self,
        attempts: &[AcquireAttempt],
        unconfirmed: Unconfirmed,
    ) -> BackendError {
        let mut failed = false;
        for attempt in attempts {
            let request = ReleaseRequest {
                permits: attempt.permits,
                ..ReleaseRequest::new(
                    attempt.target.clone(),
                    attempt.owner.clone(),
                    attempt.deadline,
                )
            };
            failed |= self.release(&request).await.is_err();
        }
        if !failed {
            let message = "granted, but not confirmed by enough replicas, so it was given back";
            return self
                .executor
                .not_replicated(unconfirmed, Executed::No, message);
        }
        let message = "granted, but not confirmed by enough replicas; giving it back failed too";
        match unconfirmed {
            // The release may still arrive. The kind is always this one, so that no caller retries
            // under this owner id.
            Unconfirmed::Refused(error) => {
                let kind = BackendErrorKind::NotReplicated;
                let message = format!("{message}; asking the replicas (WAIT, ROLE) failed");
                let given_back = self.executor.error(kind, Executed::Maybe, message);
                given_back.with_source(error)
            }
            short @ Unconfirmed::Short(_) => {
                self.executor
                    .not_replicated(short, Executed::Maybe, message)
            }
        }
    }
}
