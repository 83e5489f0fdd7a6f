//! A backend to copy and to change. It is complete: it passes the conformance suite, and it has a
//! URL scheme.
//!
//! Replace `storage.rs` for another store. This file is the part that every store shares, and
//! `docs/write-a-backend.md` gives the reasons.

mod storage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use locktopus::url::CustomUrl;
use locktopus::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo, Connector,
    ConnectorError, DynBackend, Executed, ExtendOutcome, ExtendRequest, FencingToken, HolderState,
    LockBackend, LockKind, LockState, LockTarget, NameError, ReleaseOutcome, ReleaseRequest,
    TokenSource,
};
use tokio::time::Instant;

use storage::{Row, Storage};

const NAME: &str = "template";

/// One client of the store.
#[derive(Debug)]
pub struct TemplateBackend {
    info: BackendInfo,
    storage: Arc<Storage>,
    closed: AtomicBool,
}

impl TemplateBackend {
    /// One transaction on the row of a lock, until the deadline; an error if the kind differs.
    async fn change<T: Send>(
        &self,
        target: &LockTarget,
        deadline: Instant,
        mut decide: impl FnMut(&mut Option<Row>, &mut u64) -> T + Send,
    ) -> Result<T, BackendError> {
        if self.closed.load(Ordering::Acquire) {
            let (kind, executed) = (BackendErrorKind::Closed, Executed::No);
            return Err(BackendError::new(
                NAME,
                kind,
                executed,
                "the backend was closed",
            ));
        }
        if deadline <= Instant::now() {
            return Err(late(Executed::No));
        }
        let key = target.key();
        let changed = self.storage.change(&key, |row, last_token| match row {
            Some(row) if row.kind != target.kind().as_str() => {
                Err(BackendError::other_kind(NAME, target, &*row.kind))
            }
            row => Ok(decide(row, last_token)),
        });
        // If the transaction is dropped on its way, it may have been committed or not.
        let changed = tokio::time::timeout_at(deadline, changed).await;
        changed.map_err(|_| late(Executed::Maybe))??
    }
}

fn late(executed: Executed) -> BackendError {
    BackendError::new(
        NAME,
        BackendErrorKind::Timeout,
        executed,
        "the deadline has passed",
    )
}

/// The answer for an owner without a hold, also if the name is in use as another kind.
fn or_not_held<T>(answer: Result<T, BackendError>, not_held: T) -> Result<T, BackendError> {
    match answer {
        Err(error) if error.kind() == BackendErrorKind::OtherKind => Ok(not_held),
        answer => answer,
    }
}

fn token_of(target: &LockTarget, token: u64) -> Option<FencingToken> {
    FencingToken::new(token).filter(|_| target.kind().has_tokens())
}

#[async_trait]
impl LockBackend for TemplateBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        match target.kind() {
            LockKind::Reentrant | LockKind::Mutex(_) => target.check_name(),
            kind => Err(NameError::UnsupportedKind {
                name: target.name().as_str().to_owned(),
                kind: kind.clone(),
                backend: NAME,
                reason: "it keeps exclusive locks only; use `lock` or `mutex`",
            }),
        }
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let target = &attempt.target;
        let granted = self.change(target, attempt.deadline, |row, last_token| {
            let (token, left) = match row {
                None => (*last_token + 1, attempt.lease),
                // A repetition: the same grant, and never a shorter one.
                Some(row) if row.owner == attempt.owner => (row.token, attempt.lease.max(row.left)),
                Some(row) => {
                    let remaining = Some(row.left);
                    return AttemptOutcome::Busy { remaining };
                }
            };
            let token = token.max(attempt.floor.map_or(0, FencingToken::get));
            let reserved = token + u64::from(attempt.tokens) - 1;
            *last_token = reserved.max(*last_token);
            let (kind, owner) = (target.kind().as_str().to_owned(), attempt.owner.clone());
            *row = Some(Row {
                kind,
                owner,
                token,
                left,
            });
            let token = token_of(target, token);
            AttemptOutcome::Granted { token }
        });
        granted.await
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let released = self.change(&request.target, request.deadline, |row, _| {
            match row.take_if(|row| row.owner == request.owner) {
                Some(_) => ReleaseOutcome::Released,
                None => ReleaseOutcome::NotHeld,
            }
        });
        or_not_held(released.await, ReleaseOutcome::NotHeld)
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let mut answers = Vec::with_capacity(batch.len());
        for request in batch {
            let extended = self.change(&request.target, deadline, |row, _| match row {
                None => ExtendOutcome::Missing,
                Some(row) if row.owner == request.owner => {
                    row.left = request.lease.max(row.left);
                    ExtendOutcome::Extended
                }
                Some(_) => ExtendOutcome::TakenOver,
            });
            answers.push(or_not_held(extended.await, ExtendOutcome::TakenOver));
        }
        answers
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let looked = self.change(target, deadline, |row, _| {
            let mut state = LockState::default();
            if let Some(row) = row {
                let (owner, mode) = (row.owner.clone(), target.kind().mode());
                state.last_token = token_of(target, row.token);
                state.holders = vec![HolderState::new(owner, mode, 1, Some(row.left))];
            }
            state
        });
        looked.await
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

/// Connects to `template:` URLs. All connections of one connector share their locks.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use backend_template::TemplateConnector;
/// use locktopus::Connectors;
///
/// let connectors = Connectors::new().with(TemplateConnector::default())?;
/// let locks = connectors.connect("template:?namespace=shop:").await?;
/// locks.lock("invoice:42").acquire().await?.release().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct TemplateConnector {
    storage: Arc<Storage>,
}

/// Test helpers that bypass the backend.
impl TemplateConnector {
    /// Deletes a lock, as an operator might.
    pub fn wipe(&self, target: &LockTarget) {
        self.storage.wipe(&target.key());
    }

    /// Shows all locks whose names contain this: the text changes only with a write.
    #[must_use]
    pub fn picture(&self, part: &str) -> String {
        self.storage.picture(part)
    }
}

#[async_trait]
impl Connector for TemplateConnector {
    fn schemes(&self) -> &[&str] {
        &[NAME]
    }

    async fn connect(&self, url: &CustomUrl) -> Result<DynBackend, ConnectorError> {
        if url.expose() != "template:" {
            return Err(url
                .error("a template: URL", "has nothing behind the colon")
                .into());
        }
        Ok(Arc::new(TemplateBackend {
            // There is no queue and no notification: waiters retry after growing pauses.
            info: BackendInfo {
                tokens: TokenSource::Count,
                ..BackendInfo::new(NAME, url.to_string(), Duration::from_secs(1))
            },
            storage: Arc::clone(&self.storage),
            closed: AtomicBool::new(false),
        }))
    }
}
