//! The safety mode of a backend: which scripts it runs and how, and which leases it allows.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::{BackendError, LockKind, MIN_LEASE, SafetyMode};

use super::context::Context;
use crate::execution::call::{Call, Effect};
use crate::execution::executor::{Executor, Way};
use crate::execution::quarantine::Quarantine;
use crate::execution::replication::{Confirmed, Replication};
use crate::scripts::KindScripts;

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
        let impossible = |message: String| Err(executor.unsupported(message));
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
                let replication = Replication::new(need, timeout, executor.is_cluster());
                Ok(Self::Replicated(Arc::new(replication)))
            }
            SafetyMode::Quarantine { max_lease } if max_lease < MIN_LEASE => impossible(format!(
                "a quarantine of {max_lease:?} is not possible: leases last at least {MIN_LEASE:?}"
            )),
            SafetyMode::Quarantine { max_lease } => {
                Quarantine::begin(executor, max_lease, call_timeout)
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

    /// Which of two scripts this mode runs.
    pub(super) fn choose<T>(&self, plain: &'static T, quarantined: &'static T) -> &'static T {
        match self {
            Self::Plain | Self::Replicated(_) => plain,
            Self::Quarantine(_) => quarantined,
        }
    }
}

impl Context {
    /// Runs a script. `call` has the keys and arguments of the plain mode.
    ///
    /// Boxed parts belong to modes that most calls do not use, so that most calls stay small.
    pub(super) async fn run(&self, call: Call<'_>) -> Result<Confirmed, BackendError> {
        let executor = &self.executor;
        let way = match (&self.safety, call.effect) {
            (Safety::Replicated(replication), Effect::Grant | Effect::Extend) => {
                return Box::pin(executor.run_replicated(replication, &call)).await;
            }
            (Safety::Quarantine(quarantine), Effect::Grant | Effect::Release) => {
                let reply = Box::pin(quarantine.run(executor, &call)).await;
                return reply.map(Confirmed::from);
            }
            (Safety::Replicated(_), Effect::Release) => Way::Blocking,
            (Safety::Plain, Effect::Grant | Effect::Release) => {
                self.gather.as_ref().map_or(Way::Usual, Way::Together)
            }
            (_, Effect::Look) | (Safety::Plain | Safety::Quarantine(_), Effect::Extend) => {
                Way::Usual
            }
        };
        executor.run(way, &call).await.map(Confirmed::from)
    }

    /// # Errors
    ///
    /// Fails if there are no locks of this kind.
    pub(super) fn scripts(&self, kind: &LockKind) -> Result<&'static KindScripts, BackendError> {
        let held = self.held(kind)?;
        Ok(self.safety.choose(held.plain, held.quarantined))
    }

    /// # Errors
    ///
    /// Fails if the mode does not allow a lease of this length.
    pub(super) fn check_lease(&self, kind: &LockKind, lease: Duration) -> Result<(), BackendError> {
        match &self.safety {
            Safety::Plain | Safety::Replicated(_) => Ok(()),
            Safety::Quarantine(quarantine) => {
                quarantine.check(&self.executor, kind.stored_lease(lease))
            }
        }
    }
}
