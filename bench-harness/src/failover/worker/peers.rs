//! Other libraries, through the benchmark's code for them.
//!
//! They do not say how long a holder may believe in a lock, and have no tokens. Their users know
//! only the lease that they asked for, so a holder here believes for that long, counted from before
//! it asked.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locktopus_history::{Clock, FailReason, ReleaseOutcome};

use super::job::Job;
use super::subject::{Failure, Held, Subject, Wish};
use crate::failover::plan::Subject as Whose;
use crate::shared::locking;
use crate::shared::locking::Kind;

struct Peer {
    inner: Arc<dyn locking::Subject>,
    clock: Clock,
    patience: Duration,
}

pub(super) async fn connect(job: &Job, clock: Clock) -> Result<Arc<dyn Subject>, String> {
    let [url] = job.urls.as_slice() else {
        return Err("peers are connected to one place".to_owned());
    };
    let inner = match job.subject {
        Whose::Rslock => locking::rslock(url).await,
        _ => locking::r1(url).await,
    };
    Ok(Arc::new(Peer {
        inner: inner?,
        clock,
        patience: job.patience,
    }))
}

#[async_trait]
impl Subject for Peer {
    async fn acquire(&self, wish: Wish<'_>) -> Result<Box<dyn Held>, Failure> {
        let failed = |reason, kind: &str| Failure {
            reason,
            kind: kind.to_owned(),
        };
        let waited =
            tokio::time::timeout(self.patience, self.inner.acquire(Kind::Lock, wish.lock)).await;
        let inner = match waited {
            Ok(Ok(inner)) => inner,
            Ok(Err(kind)) => return Err(failed(FailReason::Maybe, kind)),
            Err(_) => return Err(failed(FailReason::Maybe, "wait timeout")),
        };
        // Nothing tells when the successful attempt was sent. At least this much is left.
        let valid_until = self.clock.after(locking::LEASE).saturating_sub(SLACK_NS);
        Ok(Box::new(HeldLock {
            inner,
            valid_until,
            clock: self.clock,
        }))
    }

    async fn close(&self) -> u64 {
        0
    }
}

/// An allowance for the time of the reply, in the peer's favour.
const SLACK_NS: u64 = 1_000_000_000;

struct HeldLock {
    inner: Box<dyn locking::Held>,
    valid_until: u64,
    clock: Clock,
}

#[async_trait]
impl Held for HeldLock {
    fn valid_until(&self) -> u64 {
        self.valid_until
    }

    fn ended(&self) -> Option<String> {
        (self.clock.now_ns() >= self.valid_until).then(|| "expired".to_owned())
    }

    async fn lost(&self) -> String {
        super::sleep_until(self.clock, self.valid_until).await;
        "expired".to_owned()
    }

    async fn release(self: Box<Self>) -> ReleaseOutcome {
        match self.inner.release().await {
            Ok(()) => ReleaseOutcome::Ok,
            Err(_) => ReleaseOutcome::Error,
        }
    }
}
