//! This library, used as its documentation says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use locktopus::{
    BackendError, BackendErrorKind, Executed, Fence, LockError, LockGuard, LockKind, LockRequest,
    Locktopus, LostCause, QuorumBackend,
};
use locktopus_history::{AttemptLog, Clock, FailReason, Mode, ReleaseOutcome};

use super::job::{Answer, Job};
use super::subject::{Failure, Held, Subject, Wish};

/// How long closing may take: a call to an absent server, and a lease that cannot be released.
const GRACE: Duration = Duration::from_secs(5);

/// Longer than sentinels wait between two failovers in any plan, and shorter than the runner waits
/// for a process.
const REACHED_WITHIN: Duration = Duration::from_secs(45);
const REACHED_PAUSE: Duration = Duration::from_millis(250);

struct Ours {
    locks: Locktopus,
    clock: Clock,
    quorum: bool,
    patience: Duration,
}

pub(super) async fn connect(job: &Job, clock: Clock) -> Result<Arc<dyn Subject>, String> {
    let failed = |error: locktopus::ConnectError| crate::shared::error_chain::chain(&error);
    let locks = match (job.mode.quorum, job.urls.as_slice()) {
        (true, urls) => {
            let max_lease = job.mode.max_lease;
            let backend = locktopus::quorum_of(urls, |builder| match max_lease {
                Some(lease) => builder.max_lease(lease),
                None => builder,
            });
            built(Locktopus::builder(backend.map_err(failed)?))?
        }
        (false, [url]) => reached(url, REACHED_WITHIN).await.map_err(failed)?,
        (false, urls) => return Err(format!("{} URLs for one place", urls.len())),
    };
    let quorum = job.mode.quorum;
    prepare(&locks, job).await?;
    Ok(Arc::new(Ours {
        locks,
        clock,
        quorum,
        patience: job.patience,
    }))
}

/// Connects, and tries again as any supervisor would: a process may start while no server is in
/// charge, or while sentinels name a server that is not a primary. The earlier tries count as
/// failed attempts.
async fn reached(url: &str, within: Duration) -> Result<Locktopus, locktopus::ConnectError> {
    let end = Instant::now() + within;
    loop {
        match locktopus::connect(url).await {
            Err(locktopus::ConnectError::Unreachable { .. }) if Instant::now() < end => {
                let kind = "unavailable".to_owned();
                Answer::Erred { kind }.say();
                tokio::time::sleep(REACHED_PAUSE).await;
            }
            done => return done,
        }
    }
}

/// A quorum that assumes that its nodes never forget. They do: a restarted node votes at once.
pub(super) async fn hasty_quorum(job: &Job, clock: Clock) -> Result<Arc<dyn Subject>, String> {
    let mut builder = QuorumBackend::builder();
    for url in &job.urls {
        let backend = locktopus::connect_backend(url)
            .await
            .map_err(|error| crate::shared::error_chain::chain(&error))?;
        builder = builder.node(url, backend);
    }
    let backend = builder.build().map_err(|error| error.to_string())?;
    Ok(Arc::new(Ours {
        locks: built(Locktopus::builder(backend))?,
        clock,
        quorum: true,
        patience: job.patience,
    }))
}

fn built(builder: locktopus::LocktopusBuilder) -> Result<Locktopus, String> {
    builder.build().map_err(|error| error.to_string())
}

/// Gives semaphores their permits; the first process does it for all.
async fn prepare(locks: &Locktopus, job: &Job) -> Result<(), String> {
    let semaphores = job
        .groups
        .iter()
        .filter(|group| group.kind == LockKind::Semaphore);
    for group in semaphores {
        for name in group.lock_names(&job.prefix) {
            let made = locks.semaphore(name).initialise(group.permits).await;
            made.map_err(|error| crate::shared::error_chain::chain(&error))?;
        }
    }
    Ok(())
}

impl Ours {
    async fn take(&self, wish: &Wish<'_>) -> Result<LockGuard, LockError> {
        let group = wish.group;
        let kind = match group.kind.clone() {
            LockKind::Reentrant if self.quorum => LockKind::Mutex(Arc::default()),
            LockKind::Write if wish.reads => LockKind::Read,
            kind => kind,
        };
        let request = self.locks.of_kind(wish.lock, kind);
        let request = request.wait_at_most(self.patience);
        let request = if group.renewed {
            request.renewed_lease(group.lease)
        } else {
            request.fixed_lease(group.lease)
        };
        if group.kind.has_strict_queue() {
            in_the_queue(request, wish.log).await
        } else {
            request.acquire().await
        }
    }
}

#[async_trait]
impl Subject for Ours {
    async fn acquire(&self, wish: Wish<'_>) -> Result<Box<dyn Held>, Failure> {
        let guard = self.take(&wish).await.map_err(|error| failure(&error))?;
        let mode = match wish.group.kind {
            LockKind::Semaphore => Mode::Permits(1),
            LockKind::Write if wish.reads => Mode::Shared,
            _ => Mode::Exclusive,
        };
        Ok(Box::new(HeldLock {
            guard,
            mode,
            clock: self.clock,
        }))
    }

    async fn close(&self) -> u64 {
        self.locks.shutdown(GRACE).await.abandoned as u64
    }
}

/// Records when the attempt is known to be in the queue: only from then on can it be overtaken.
async fn in_the_queue(request: LockRequest, log: &AttemptLog) -> Result<LockGuard, LockError> {
    let (request, mut progress) = request.with_progress();
    let acquiring = request.acquire();
    tokio::pin!(acquiring);
    let mut waiting = false;
    loop {
        tokio::select! {
            biased;
            acquired = &mut acquiring => return acquired,
            standing = progress.next(), if !waiting => {
                waiting = true;
                if standing.is_some_and(|standing| standing.ahead.is_some()) {
                    // If this fails, the history is incomplete; the next record reports that.
                    let _ = log.enqueued(None);
                }
            }
        }
    }
}

struct HeldLock {
    guard: LockGuard,
    mode: Mode,
    clock: Clock,
}

#[async_trait]
impl Held for HeldLock {
    fn fence(&self) -> Option<Fence> {
        self.guard.fence()
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn valid_until(&self) -> u64 {
        self.clock.at(self.guard.valid_until().into_std())
    }

    fn ended(&self) -> Option<String> {
        match self.guard.ensure_valid() {
            Ok(()) => None,
            Err(LockError::Lost { cause, .. }) => Some(word(&cause).to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }

    async fn lost(&self) -> String {
        word(&self.guard.lost().await).to_owned()
    }

    async fn release(self: Box<Self>) -> ReleaseOutcome {
        match self.guard.release().await {
            Ok(()) => ReleaseOutcome::Ok,
            Err(LockError::Lost { .. }) => ReleaseOutcome::Lost,
            Err(_) => ReleaseOutcome::Error,
        }
    }
}

/// A cause in a word, without variable details.
const fn word(cause: &LostCause) -> &'static str {
    match cause {
        LostCause::Expired => "expired",
        LostCause::Unreachable { .. } => "unreachable",
        LostCause::Missing => "missing",
        LostCause::TakenOver => "taken over",
        _ => "ended",
    }
}

fn failure(error: &LockError) -> Failure {
    let executed = |source: &BackendError| match source.executed() {
        Executed::No => FailReason::Error,
        Executed::Maybe => FailReason::Maybe,
    };
    let (reason, kind) = match error {
        LockError::WaitTimeout { source: None, .. } => {
            (FailReason::Timeout, "wait timeout".to_owned())
        }
        LockError::WaitTimeout {
            source: Some(source),
            ..
        } => (
            FailReason::Timeout,
            format!("wait timeout, {}", kind(source.kind())),
        ),
        LockError::Cancelled { .. } => (FailReason::Cancelled, "cancelled".to_owned()),
        LockError::Backend { source, .. } => (executed(source), kind(source.kind()).to_owned()),
        // All other errors come before anything is sent.
        other => (FailReason::Error, other.to_string()),
    };
    Failure { reason, kind }
}

const fn kind(kind: BackendErrorKind) -> &'static str {
    match kind {
        BackendErrorKind::Unavailable => "unavailable",
        BackendErrorKind::Timeout => "no answer",
        BackendErrorKind::Refused => "refused",
        BackendErrorKind::Denied => "denied",
        BackendErrorKind::NoQuorum => "no quorum",
        BackendErrorKind::NotReplicated => "not replicated",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_process_goes_on_asking_for_a_server_that_is_away() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        let url = format!("redis://{}", closed.unwrap());
        let (begun, within) = (Instant::now(), Duration::from_millis(600));
        let away = reached(&url, within).await;
        assert!(
            matches!(away, Err(locktopus::ConnectError::Unreachable { .. })),
            "{away:?}"
        );
        assert!(begun.elapsed() >= within);
        // An error that no server can mend is returned at once.
        let asked =
            tokio::time::timeout(within, reached("redis://127.0.0.1?such=1", REACHED_WITHIN));
        let wrong = asked.await.unwrap();
        assert!(
            matches!(wrong, Err(locktopus::ConnectError::Url(_))),
            "{wrong:?}"
        );
    }
}
