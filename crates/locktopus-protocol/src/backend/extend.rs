//! Renewal of leases in batches.

use std::borrow::Cow;

use locktopus_contract::{BackendError, Executed, ExtendOutcome, ExtendRequest, LockTarget, Mode};
use tokio::time::Instant;

use super::context::{Context, millis};
use crate::execution::call::{Call, Effect, HalfMoved, OnSplit};
use crate::execution::replication::Confirmed;
use crate::kinds;
use crate::kinds::keys::{self, Keys};
use crate::layout::slot::key_slot;
use crate::scripts::KEEP_TOKENS;

fn is_half_moved(error: &BackendError) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<HalfMoved>())
}

/// Turns extensions into errors and leaves other answers unchanged.
fn not_in_full(
    answers: Vec<Result<ExtendOutcome, BackendError>>,
    error: impl Fn() -> BackendError,
) -> Vec<Result<ExtendOutcome, BackendError>> {
    let answers = answers.into_iter().map(|answer| match answer {
        Ok(ExtendOutcome::Extended) => Err(error()),
        other => other,
    });
    answers.collect()
}

impl Context {
    /// The slot in a cluster, shifted left to leave room for the kind, because each kind has its
    /// own script.
    pub(super) fn shard(&self, target: &LockTarget) -> u32 {
        let slot = if self.is_cluster() {
            // Not from the key cache: every renewal of every lock needs this, and there may be more
            // locks than the cache holds.
            u32::from(key_slot(target.key().as_bytes()))
        } else {
            0
        };
        slot << 4 | kinds::batch(target.kind())
    }

    /// Whether one script can extend them: they are of one shard and have one lease.
    pub(super) fn is_uniform(&self, batch: &[ExtendRequest]) -> bool {
        let terms = |request: &ExtendRequest| {
            let lease = request.target.kind().stored_lease(request.lease);
            (lease, self.shard(&request.target))
        };
        let first = batch.first().map(terms);
        batch.iter().all(|request| Some(terms(request)) == first)
    }

    /// Extends locks of one shard with one lease in a single script. The answers are in the same
    /// order. `None` if it extended nothing: their slot is being moved, and they are on two nodes.
    pub(super) async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Option<Vec<Result<ExtendOutcome, BackendError>>> {
        let Some(first) = batch.first() else {
            return Some(Vec::new());
        };
        let checked = self.check_lease(first.target.kind(), first.lease);
        let script = match checked.and_then(|()| self.scripts(first.target.kind())) {
            Ok(scripts) => &scripts.extend,
            Err(error) => return Some(self.all_failed(batch.len(), &error)),
        };
        let lease = millis(first.target.kind().stored_lease(first.lease));
        let names: Vec<Cow<'_, [u8]>> = batch
            .iter()
            .flat_map(|request| keys::extended(&request.target, &request.owner))
            .collect();
        let keys: Vec<&[u8]> = names.iter().map(Cow::as_ref).collect();
        let counted = first.target.kind().mode() == Mode::Permits;
        let permits: Vec<String> = if counted {
            batch.iter().map(|r| r.permits.to_string()).collect()
        } else {
            Vec::new()
        };
        let mut args: Vec<&[u8]> = Vec::with_capacity(1 + batch.len() + permits.len());
        args.push(lease.as_bytes());
        for (index, request) in batch.iter().enumerate() {
            args.push(request.owner.expose());
            args.extend(permits.get(index).map(String::as_bytes));
        }
        let slot = key_slot(first.target.key().as_bytes());
        let call = Call {
            on_split: match batch.len() > 1 && self.is_cluster() {
                true => OnSplit::Tell,
                false => OnSplit::Wait,
            },
            ..Call::new(Effect::Extend, script, &keys, &args, slot, deadline)
        };
        let (answer, kept) = tokio::join!(self.run(call), self.keep_tokens(batch, &call));
        if answer.as_ref().is_err_and(is_half_moved) || kept.as_ref().is_err_and(is_half_moved) {
            return None;
        }
        let decoded = answer.and_then(|Confirmed { reply, unconfirmed }| {
            let answers = self.decoder(script).extended(&reply, batch.len())?;
            Ok((answers, unconfirmed))
        });
        let answers = match decoded {
            Ok((answers, None)) => answers,
            // A hold found lost stays lost.
            Ok((answers, Some(unconfirmed))) => not_in_full(answers, || {
                let message = "extended, but not confirmed by enough replicas";
                let unconfirmed = unconfirmed.clone();
                self.executor
                    .not_replicated(unconfirmed, Executed::Maybe, message)
            }),
            Err(error) => self.all_failed(batch.len(), &error),
        };
        Some(match kept {
            Ok(()) => answers,
            // The caller repeats both.
            Err(error) => not_in_full(answers, || {
                let message = format!("extended, but its token was not kept: {}", error.message());
                self.executor.error(error.kind(), Executed::Maybe, message)
            }),
        })
    }

    /// Keeps tokens longer for the locks whose extension asks for it. `extension` is the call that
    /// extends them. It does not check the holders: keeping another owner's token does no harm.
    async fn keep_tokens(
        &self,
        batch: &[ExtendRequest],
        extension: &Call<'_>,
    ) -> Result<(), BackendError> {
        let kept = batch.iter().filter_map(|request| {
            let time = millis(request.keep_token?);
            Some((Keys::of(&request.target).token()?.to_owned(), time))
        });
        let (tokens, times): (Vec<String>, Vec<String>) = kept.unzip();
        if tokens.is_empty() {
            return Ok(());
        }
        let keys: Vec<&[u8]> = tokens.iter().map(String::as_bytes).collect();
        let args: Vec<&[u8]> = times.iter().map(String::as_bytes).collect();
        let call = Call {
            script: &KEEP_TOKENS,
            keys: &keys,
            args: &args,
            ..*extension
        };
        // If no replica confirms this, the next such extension makes up for it.
        self.run(call).await.map(drop)
    }

    /// The same error for every lock of the batch.
    fn all_failed(
        &self,
        count: usize,
        error: &BackendError,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let copy = || {
            let (kind, executed) = (error.kind(), error.executed());
            Err(self.executor.error(kind, executed, error.message()))
        };
        std::iter::repeat_with(copy).take(count).collect()
    }
}
