//! What the safety modes add to a backend: which scripts grant, and when a grant counts.

use std::time::Duration;

use locktopus_core::{
    AcquireAttempt, BackendError, BackendErrorKind, Executed, LockKind, MIN_LEASE, ReleaseRequest,
    SafetyMode,
};
use tokio::time::Instant;

use crate::backend::RedisBackend;
use crate::client::{Deployment, Reply};
use crate::executor::Executor;
use crate::quarantine::Quarantine;
use crate::quarantine_scripts;
use crate::replication::{Confirmed, Doubt, Replication};
use crate::scripts::{self, KindScripts, Script};

/// A safety mode at work.
#[derive(Debug)]
pub(crate) enum Safety {
    /// Nothing more than the server does.
    Plain,
    /// Grants, extensions and counts wait for replicas.
    Replicated(Replication),
    /// Nothing is granted while a lost lease may be running.
    Quarantine(Quarantine),
}

impl Safety {
    /// # Errors
    ///
    /// If the mode cannot be had with these options.
    pub(crate) async fn new(
        mode: SafetyMode,
        executor: &Executor,
        call_timeout: Duration,
    ) -> Result<Self, BackendError> {
        let cluster = executor.client().deployment() == Deployment::Cluster;
        let impossible = |message: String| {
            Err(executor.error(BackendErrorKind::Unsupported, Executed::No, message))
        };
        match mode {
            SafetyMode::Plain => Ok(Self::Plain),
            SafetyMode::Replicated { timeout, .. }
                if timeout < Duration::from_millis(1) || timeout >= call_timeout =>
            {
                impossible(format!(
                    "a replication timeout of {timeout:?} is not possible: it must be at least 1ms and shorter than the \
                     call timeout ({call_timeout:?})"
                ))
            }
            SafetyMode::Replicated { need, timeout } => {
                Ok(Self::Replicated(Replication::new(need, timeout, cluster)))
            }
            SafetyMode::Quarantine { max_lease } if max_lease < MIN_LEASE => impossible(format!(
                "a quarantine of {max_lease:?} is not possible: leases last at least {MIN_LEASE:?}"
            )),
            SafetyMode::Quarantine { max_lease } => {
                Quarantine::begin(executor, max_lease, cluster, call_timeout)
                    .await
                    .map(Self::Quarantine)
            }
            other => impossible(format!(
                "safety mode {other} is not one of a single backend"
            )),
        }
    }
}

/// The scripts of a backend with a safety mode.
impl Safety {
    /// Those of a kind; none if it has none.
    pub(crate) fn scripts(&self, kind: &LockKind) -> Option<&'static KindScripts> {
        match self {
            Self::Plain | Self::Replicated(_) => scripts::of(kind),
            Self::Quarantine(_) => scripts::position(kind).map(|at| quarantine_scripts::KINDS[at]),
        }
    }

    /// The one that changes the number inside a semaphore of this kind.
    pub(crate) fn semaphore_counter(&self, kind: &LockKind) -> &'static Script {
        match (self, kind) {
            (Self::Plain | Self::Replicated(_), LockKind::Permits) => &scripts::PERMITS_COUNTER,
            (Self::Plain | Self::Replicated(_), _) => &scripts::SEMAPHORE_COUNTER,
            (Self::Quarantine(_), LockKind::Permits) => &quarantine_scripts::PERMITS_COUNTER,
            (Self::Quarantine(_), _) => &quarantine_scripts::SEMAPHORE_COUNTER,
        }
    }

    /// The one that takes several locks at once.
    pub(crate) fn group_acquire(&self) -> &'static Script {
        match self {
            Self::Plain | Self::Replicated(_) => &scripts::GROUP_ACQUIRE,
            Self::Quarantine(_) => &quarantine_scripts::GROUP_ACQUIRE,
        }
    }

    /// # Errors
    ///
    /// If the mode does not allow a lease of this length.
    pub(crate) fn check_lease(
        &self,
        executor: &Executor,
        lease: Duration,
    ) -> Result<(), BackendError> {
        match self {
            Self::Plain | Self::Replicated(_) => Ok(()),
            Self::Quarantine(quarantine) => quarantine.check(executor, lease),
        }
    }
}

/// How scripts that grant are run. `keys` and `args` are those of the plain script.
impl RedisBackend {
    /// Runs a script whose effect counts once the mode is satisfied.
    pub(crate) async fn run_confirmed(
        &self,
        script: &Script,
        slot: u16,
        keys: &[&[u8]],
        args: &[&[u8]],
        deadline: Instant,
    ) -> Result<Confirmed, BackendError> {
        let executor = self.executor();
        match self.safety() {
            Safety::Replicated(replication) => {
                // Boxed: what is sent in the usual way needs no room for it.
                let run = executor.run_replicated(replication, script, slot, keys, args, deadline);
                Box::pin(run).await
            }
            Safety::Plain | Safety::Quarantine(_) => {
                let reply = self.run_release(script, slot, keys, args, deadline);
                reply.await.map(Confirmed::from)
            }
        }
    }

    /// Runs a script that extends, which grants nothing and so is never held back.
    pub(crate) async fn run_extension(
        &self,
        script: &Script,
        slot: u16,
        keys: &[&[u8]],
        args: &[&[u8]],
        deadline: Instant,
    ) -> Result<Confirmed, BackendError> {
        match self.safety() {
            Safety::Quarantine(_) => {
                let reply = self.executor().run(script, slot, keys, args, deadline);
                reply.await.map(Confirmed::from)
            }
            Safety::Plain | Safety::Replicated(_) => {
                self.run_confirmed(script, slot, keys, args, deadline).await
            }
        }
    }

    /// Runs a script that ends holds and may hand on. It must not overtake an attempt of the same owner that is under way.
    pub(crate) async fn run_release(
        &self,
        script: &Script,
        slot: u16,
        keys: &[&[u8]],
        args: &[&[u8]],
        deadline: Instant,
    ) -> Result<Reply, BackendError> {
        let executor = self.executor();
        match self.safety() {
            Safety::Replicated(_) => {
                let run = executor.run_in_line(script, slot, keys, args, deadline);
                Box::pin(run).await
            }
            Safety::Plain => executor.run(script, slot, keys, args, deadline).await,
            Safety::Quarantine(quarantine) => {
                let terms = quarantine.terms(slot);
                let keys = [keys, &[terms.record.as_bytes()]].concat();
                let more: [&[u8]; 2] = [terms.longest.as_bytes(), terms.seen.as_bytes()];
                let args = [args, &more].concat();
                Box::pin(executor.run(script, slot, &keys, &args, deadline)).await
            }
        }
    }

    /// Gives back grants that were not confirmed, and says so.
    pub(crate) async fn give_back(
        &self,
        attempts: &[AcquireAttempt],
        doubt: Doubt,
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
            failed |= self.release_and_tell(&request).await.is_err();
        }
        let (executed, message) = if failed {
            (
                Executed::Maybe,
                "granted, but not confirmed by enough replicas; giving it back failed too",
            )
        } else {
            (
                Executed::No,
                "granted, but not confirmed by enough replicas, so it was given back",
            )
        };
        self.executor().not_replicated(doubt, executed, message)
    }
}
