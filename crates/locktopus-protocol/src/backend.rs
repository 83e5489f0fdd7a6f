//! `LockBackend` over any [`RedisClient`]. Each method of the contract is in the file named after
//! it.
//!
//! | file | what it does |
//! |---|---|
//! | `context`, `options` | what all operations share: the client, the options, server facts |
//! | `acquire`, `group` | an attempt to take a lock, or several locks by one script |
//! | `release`, `extend` | ending leases and extending them |
//! | `repeat` | sends releases again after a failover |
//! | `wake_ups` | the channels that wake waiters |
//! | `counter` | the number in a semaphore or a latch |
//! | `directory` | lists of locks, and eviction |
//! | `instances` | the records that instances publish about themselves |
//! | `safety` | what the safety mode allows, and how it runs a script |
//! | `diagnose` | the checks at connect and of the doctor |
//! | `identity` | tells a quorum which server this is and how long it has been up |

mod acquire;
mod context;
mod counter;
mod diagnose;
mod directory;
mod extend;
mod group;
mod identity;
mod instances;
mod options;
mod release;
mod repeat;
mod safety;
mod wake_ups;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo, Counters,
    Diagnostics, Directory, ExtendOutcome, ExtendRequest, Groups, Instances, LockBackend,
    LockState, LockTarget, NameError, NodeProbe, ReleaseOutcome, ReleaseRequest, WakeUps,
};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::client::{ChannelFlavour, RedisClient};
use crate::execution::call::{Call, Effect};
use crate::kinds;
use crate::wire::other_kind;
use context::{Context, Contexts};

pub use options::{BackendOptions, PubSubMode};

/// Locks on Redis or Valkey, through any client library.
///
/// Each tokio runtime that uses the backend opens its own connections on first use, or shares those
/// of a multi-threaded runtime. So you may keep using it after the runtime that created it has
/// ended.
#[derive(Debug)]
pub struct RedisBackend {
    contexts: Arc<Contexts>,
}

impl RedisBackend {
    /// Creates a backend on a connected client.
    ///
    /// # Errors
    ///
    /// Fails if you ask for sharded pub/sub outside a cluster, if the servers cannot provide the
    /// safety mode, or if called outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; nothing was written.
    pub async fn new(
        client: Arc<dyn RedisClient>,
        options: BackendOptions,
    ) -> Result<Self, BackendError> {
        // Checked first, because everything after it needs the runtime's timers.
        if Handle::try_current().is_err() {
            return Err(BackendError::no_runtime(client.name()));
        }
        let contexts = Contexts::new(Context::new(client, options).await?)?;
        Ok(Self {
            contexts: Arc::new(contexts),
        })
    }

    /// The flavour of pub/sub in use.
    #[must_use]
    pub fn channel_flavour(&self) -> ChannelFlavour {
        self.contexts.first.flavour
    }

    /// Tells a quorum which server this is, and for how long it has been up.
    ///
    /// # Errors
    ///
    /// Fails unless the client is connected to one standalone server.
    pub fn probe(&self) -> Result<Arc<dyn NodeProbe>, BackendError> {
        identity::check(&self.contexts.first.executor)?;
        Ok(Arc::<Contexts>::clone(&self.contexts))
    }
}

#[async_trait]
impl LockBackend for RedisBackend {
    fn info(&self) -> &BackendInfo {
        &self.contexts.first.info
    }

    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        if kinds::of(target.kind()).is_none() {
            return Err(NameError::UnsupportedKind {
                name: target.name().as_str().to_owned(),
                kind: target.kind().clone(),
                backend: self.contexts.first.info.name,
                reason: "there are no scripts for it; use a kind that there is on Redis",
            });
        }
        target.check_name()?;
        let context = &self.contexts.first;
        match context.is_cluster() {
            true => context.keys(target).check_one_slot("a Redis cluster"),
            false => Ok(()),
        }
    }

    fn shard(&self, target: &LockTarget) -> u32 {
        self.contexts.first.shard(target)
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let context = self.contexts.here()?;
        let keys = context.keys(&attempt.target);
        context.know_time(keys.slot(), attempt.deadline).await?;
        loop {
            let acquired = context.try_once(attempt, &keys).await?;
            let Some(outcome) = acquired.outcome else {
                // The estimate of the server's clock was wrong; the answer has corrected it.
                context.check_time(attempt.deadline)?;
                continue;
            };
            if !acquired.foreign || !Box::pin(context.listen_for_waiter(attempt, &keys)).await {
                return Ok(outcome);
            }
            // Something may have been published before the subscription was confirmed.
            let again = AcquireAttempt {
                first: false,
                ..attempt.clone()
            };
            return match Box::pin(context.try_once(&again, &keys)).await {
                Ok(acquired) => Ok(acquired.outcome.unwrap_or(outcome)),
                // This attempt got a grant and gave it back, as far as it could, so the first
                // answer is stale.
                Err(error) if error.kind() == BackendErrorKind::NotReplicated => Err(error),
                Err(_) => Ok(outcome),
            };
        }
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let context = self.contexts.here()?;
        let changes = context.repeats.changes();
        // Another context may have queued this waiter under another name; then the script searches
        // for it.
        let searching = request.place_hint.is_some() && self.contexts.are_several();
        let searched = searching.then(|| ReleaseRequest {
            place_hint: None,
            ..request.clone()
        });
        let request = searched.as_ref().unwrap_or(request);
        let (outcome, _told) = context.release(request).await?;
        context.keep(request, changes);
        Ok(outcome)
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let Ok(context) = self.contexts.here() else {
            let refused = || Err(self.contexts.no_runtime());
            return batch.iter().map(|_| refused()).collect();
        };
        let one = |request| context.extend(std::slice::from_ref(request), deadline);
        if context.is_uniform(batch) {
            if let Some(answers) = context.extend(batch, deadline).await {
                return answers;
            }
            // Their slot is being moved, and each lock is on one of the two nodes.
            let each = join_all(batch.iter().map(one)).await;
            return each.into_iter().flatten().flatten().collect();
        }
        // The contract guarantees one shard, but leases may differ, so each lock gets its own
        // script.
        let mut answers = Vec::with_capacity(batch.len());
        for request in batch {
            answers.extend(one(request).await.unwrap_or_default());
        }
        answers
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let context = self.contexts.here()?;
        let keys = context.keys(target);
        let script = &context.scripts(target.kind())?.inspect;
        let (names, slot) = (keys.scripts(), keys.slot());
        let call = Call::new(Effect::Look, script, &names, &[], slot, deadline);
        let told = context.run(call).await;
        let told = told.map_err(|error| other_kind::tell(error, |_| target))?;
        context.decoder(script).state(&told.reply)
    }

    async fn close(&self) {
        let mut contexts = self.contexts.all.all();
        let first = &self.contexts.first;
        // The first context's runtime may have ended.
        if !contexts.iter().any(|context| Arc::ptr_eq(context, first)) {
            contexts.push(Arc::clone(first));
        }
        for context in contexts {
            context.hub.stop();
            context.executor.close().await;
        }
    }

    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        Some(self)
    }

    fn counters(&self) -> Option<&dyn Counters> {
        Some(self)
    }

    fn groups(&self) -> Option<&dyn Groups> {
        Some(self)
    }

    fn directory(&self) -> Option<&dyn Directory> {
        Some(self)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }

    fn diagnosis(&self) -> Option<&dyn Diagnostics> {
        Some(self)
    }
}
