//! `LockBackend` over any [`RedisClient`]. Each method of the contract is in the file named after
//! it.
//!
//! | file | what it does |
//! |---|---|
//! | `context`, `options` | what all operations share: the client, the options, server facts |
//! | `acquire`, `group` | an attempt to take a lock, or several locks by one script |
//! | `release`, `extend` | ending leases and extending them |
//! | `repeat` | sends releases again after a failover |
//! | `counter` | the number in a semaphore or a latch |
//! | `admin`, `scan` | inspection and eviction; lists of locks |
//! | `instances` | the records that instances publish about themselves |
//! | `safety`, `run` | what the safety mode allows, and how it runs a script |
//! | `diagnose` | the checks at connect and of the doctor |
//! | `identity` | tells a quorum which server this is and how long it has been up |

mod acquire;
mod admin;

mod context;
mod counter;
mod diagnose;
mod extend;
mod group;
mod identity;
mod instances;
mod options;
mod release;
mod repeat;
mod run;
mod safety;
mod scan;

use std::sync::Arc;

use async_trait::async_trait;
use locktopus_contract::{
    AcquireAttempt, Announcement, AttemptOutcome, BackendError, BackendInfo, CounterOutcome,
    CounterRequest, Counters, Diagnosis, Diagnostics, Directory, Eviction, ExtendOutcome,
    ExtendRequest, GroupOutcome, Groups, InstanceQuery, InstanceRecord, Instances, LockBackend,
    LockPage, LockState, LockTarget, NameError, NodeProbe, ReleaseOutcome, ReleaseRequest,
    ScanCursor, WakeStream, WakeUps,
};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::client::{ChannelFlavour, RedisClient};
use crate::kinds;
use crate::wire::other_kind;
use context::{Context, Contexts};
use identity::ServerProbe;

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
        let context = Context::new(client, options).await?;
        let contexts = Arc::new(Contexts::new(context)?);
        Ok(Self { contexts })
    }

    /// The flavour of pub/sub in use.
    #[must_use]
    pub fn channel_flavour(&self) -> ChannelFlavour {
        self.contexts.any().flavour
    }

    /// Tells a quorum which server this is, and for how long it has been up.
    ///
    /// # Errors
    ///
    /// Fails unless the client is connected to one standalone server.
    pub fn probe(&self) -> Result<Arc<dyn NodeProbe>, BackendError> {
        Ok(Arc::new(ServerProbe::new(&self.contexts)?))
    }
}

#[async_trait]
impl LockBackend for RedisBackend {
    fn info(&self) -> &BackendInfo {
        &self.contexts.any().info
    }

    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        if kinds::of(target.kind()).is_none() {
            return Err(NameError::UnsupportedKind {
                name: target.name().as_str().to_owned(),
                kind: target.kind().clone(),
                backend: self.contexts.any().info.name,
                reason: "there are no scripts for it; use a kind that there is on Redis",
            });
        }
        target.check_name()?;
        let context = self.contexts.any();
        if context.is_cluster() {
            let keys = context.keys(target);
            keys.check_one_slot("a Redis cluster")?;
        }
        Ok(())
    }

    fn shard(&self, target: &LockTarget) -> u32 {
        self.contexts.any().shard(target)
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        self.contexts.here()?.attempt(attempt).await
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let context = self.contexts.here()?;
        let changes = context.repeats.changes();
        // Another context may have queued this waiter under another name; then the script searches
        // for it.
        let searching = request.sought.is_some() && self.contexts.are_several();
        let searched = searching.then(|| ReleaseRequest {
            sought: None,
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
        match self.contexts.here() {
            Ok(context) => context.extend(batch, deadline).await,
            Err(_) => {
                let refused = || Err(self.contexts.no_runtime());
                std::iter::repeat_with(refused).take(batch.len()).collect()
            }
        }
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        self.contexts.here()?.inspect(target, deadline).await
    }

    async fn close(&self) {
        self.contexts.close().await;
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

#[async_trait]
impl WakeUps for RedisBackend {
    fn listen(&self, target: &LockTarget) -> Option<WakeStream> {
        let context = self.contexts.here().ok()?;
        // Every first attempt calls this. If nothing in the process waits, the names are not built.
        if context.hub.is_idle() {
            return None;
        }
        context.hub.listening(&context.topic(target)?)
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        self.contexts.here()?.subscribe(target, deadline).await
    }
}

#[async_trait]
impl Counters for RedisBackend {
    async fn counter(&self, request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
        let context = self.contexts.here()?;
        let outcome = counter::run(&context, request).await;
        outcome.map_err(|error| other_kind::tell(error, |_| &request.target))
    }
}

#[async_trait]
impl Groups for RedisBackend {
    /// Groups locks and mutexes by slot; outside a cluster all of them form one group.
    fn group(&self, target: &LockTarget) -> Option<u32> {
        let row = kinds::of(target.kind())?;
        row.in_groups.map(|_| {
            let context = self.contexts.any();
            if context.is_cluster() {
                u32::from(context.keys(target).slot())
            } else {
                0
            }
        })
    }

    async fn attempt_all(&self, attempts: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError> {
        let context = self.contexts.here()?;
        group::attempt(&context, attempts).await
    }
}

#[async_trait]
impl Directory for RedisBackend {
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        let context = self.contexts.here()?;
        scan::page(&context, prefix, cursor, deadline).await
    }

    async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        self.contexts.here()?.evict(target, deadline).await
    }
}

#[async_trait]
impl Instances for RedisBackend {
    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        self.contexts.here()?.announce(announcement).await
    }

    async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        self.contexts.here()?.instances(query).await
    }
}

#[async_trait]
impl Diagnostics for RedisBackend {
    async fn diagnose(&self, deadline: Instant) -> Result<Diagnosis, BackendError> {
        let context = self.contexts.here()?;
        context.executor.check_open()?;
        diagnose::run(&context, deadline).await
    }
}
