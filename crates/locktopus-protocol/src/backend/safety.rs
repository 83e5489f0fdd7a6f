//! The safety mode of a backend: which scripts it runs, and which leases it allows.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::{
    BackendError, BackendErrorKind, Executed, LockKind, MIN_LEASE, SafetyMode,
};

use crate::client::Deployment;
use crate::execution::executor::Executor;
use crate::execution::quarantine::Quarantine;
use crate::execution::replication::Replication;
use crate::kinds::{self, Counter};
use crate::scripts::{self, KindScripts, Script};

/// The safety mode with its state.
#[derive(Debug)]
pub(crate) enum Safety {
    /// Relies on what the server does by default.
    Plain,
    /// Grants, extensions and counts wait for replicas.
    Replicated(Arc<Replication>),
    /// Grants nothing while a lost lease may still be running.
    Quarantine(Quarantine),
}

impl Safety {
    /// # Errors
    ///
    /// Fails if the servers cannot provide the mode with these options.
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
                let replication = Replication::new(need, timeout, cluster);
                Ok(Self::Replicated(Arc::new(replication)))
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

    /// The same mode over another client.
    pub(crate) fn again(&self, executor: &Executor, call_timeout: Duration) -> Self {
        match self {
            Self::Plain => Self::Plain,
            Self::Replicated(replication) => Self::Replicated(Arc::clone(replication)),
            Self::Quarantine(quarantine) => {
                Self::Quarantine(quarantine.again(executor, call_timeout))
            }
        }
    }
}

/// The scripts of a backend with a safety mode.
impl Safety {
    /// The scripts of a kind, or `None` if it has none.
    pub(crate) fn scripts(&self, kind: &LockKind) -> Option<&'static KindScripts> {
        let held = kinds::of(kind)?.scripts.as_ref()?;
        Some(match self {
            Self::Plain | Self::Replicated(_) => held.plain,
            Self::Quarantine(_) => held.quarantined,
        })
    }

    /// The script that changes a counter.
    pub(crate) fn counter(&self, counter: &Counter) -> &'static Script {
        match self {
            Self::Plain | Self::Replicated(_) => counter.plain,
            Self::Quarantine(_) => counter.quarantined,
        }
    }

    /// The script that takes several locks at once.
    pub(crate) fn group_acquire(&self) -> &'static Script {
        match self {
            Self::Plain | Self::Replicated(_) => &scripts::GROUP_ACQUIRE,
            Self::Quarantine(_) => &scripts::QUARANTINED_GROUP_ACQUIRE,
        }
    }

    /// # Errors
    ///
    /// Fails if the mode does not allow a lease of this length.
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
