//! The embedded backend: locks of one process, for tests and for programs that do not need more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio::time::Instant;

use crate::backend::{BackendInfo, LockBackend, kind_has_tokens};
use crate::backend_error::{BackendError, BackendErrorKind, Executed};
use crate::diagnosis::Diagnosis;
use crate::kind::{LockKind, LockTarget};
use crate::name::NameError;
use crate::owner::OwnerId;
use crate::request::{
    AcquireAttempt, AttemptOutcome, ExtendOutcome, ExtendRequest, HolderState, LockState,
    ReleaseOutcome, ReleaseRequest,
};
use crate::token::FencingToken;
use crate::wake::{WakeGroup, WakeStream, lock};

const NAME: &str = "memory";

/// Keeps locks in this process. Same semantics as the Redis backends, so that code can be tested without a
/// server; leases run on tokio's clock, so tests may pause it.
///
/// Clones are the same client of the same locks; [`another_client`](Self::another_client) makes a client that
/// is closed on its own. Dropping the last of them forgets the locks.
#[derive(Debug, Clone)]
pub struct MemoryBackend {
    table: Arc<Mutex<Table>>,
    closed: Arc<AtomicBool>,
    info: Arc<BackendInfo>,
}

#[derive(Debug, Default)]
struct Table {
    locks: HashMap<String, Entry>,
    waiters: HashMap<String, Arc<WakeGroup>>,
    last_token: u64,
    sweep_at: usize,
}

#[derive(Debug)]
struct Entry {
    kind: LockKind,
    owner: OwnerId,
    token: Option<FencingToken>,
    expires: Instant,
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryBackend {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        // Tokens start at the time of day, as on a server, so that a restarted process does not repeat them.
        let micros = SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0, |since| since.as_micros());
        let table = Table {
            last_token: u64::try_from(micros).unwrap_or(0),
            ..Table::default()
        };
        let info = BackendInfo::new(
            NAME,
            "memory (this process)",
            true,
            Duration::from_millis(100),
        );
        Self {
            table: Arc::new(Mutex::new(table)),
            closed: Arc::default(),
            info: Arc::new(info),
        }
    }

    /// A separate client of the same locks, as another process has: closing one leaves the other open.
    /// Waiters of all clients stand in one queue.
    #[must_use]
    pub fn another_client(&self) -> Self {
        Self {
            table: Arc::clone(&self.table),
            closed: Arc::default(),
            info: Arc::clone(&self.info),
        }
    }

    /// How many locks and waiters there are right now; expired locks do not count.
    #[must_use]
    pub fn population(&self) -> (usize, usize) {
        let table = lock(&self.table);
        let now = Instant::now();
        let locks = table
            .locks
            .values()
            .filter(|entry| entry.expires > now)
            .count();
        (locks, table.waiters.values().map(|group| group.len()).sum())
    }

    /// Forgets every lock, as a server that lost its data does.
    pub fn clear(&self) {
        lock(&self.table).locks.clear();
    }

    /// Forgets one lock, as an operator who deletes it does. True if it was there.
    pub fn forget(&self, target: &LockTarget) -> bool {
        lock(&self.table).locks.remove(&key(target)).is_some()
    }

    fn open(&self) -> Result<std::sync::MutexGuard<'_, Table>, BackendError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(error(BackendErrorKind::Closed, "the backend was closed"));
        }
        Ok(lock(&self.table))
    }
}

impl Table {
    /// The live entry of a target. Another kind on the same key is refused, as Redis does by type.
    fn live(&mut self, key: &str, kind: &LockKind) -> Result<Option<&mut Entry>, BackendError> {
        let expired = self
            .locks
            .get(key)
            .is_some_and(|entry| entry.expires <= Instant::now());
        if expired {
            self.locks.remove(key);
        }
        match self.locks.get_mut(key) {
            Some(entry) if std::mem::discriminant(&entry.kind) != std::mem::discriminant(kind) => {
                let message = format!("{key:?} is in use as a {}", entry.kind.as_str());
                Err(error(BackendErrorKind::Refused, message))
            }
            entry => Ok(entry),
        }
    }

    fn grant(&mut self, key: String, attempt: &AcquireAttempt) -> Option<FencingToken> {
        let kind = attempt.target.kind().clone();
        let token = kind_has_tokens(&kind).then(|| {
            self.last_token += 1;
            FencingToken::new(self.last_token)
        });
        let token = token.flatten();
        let expires = Instant::now() + attempt.lease;
        self.locks.insert(
            key,
            Entry {
                kind,
                owner: attempt.owner.clone(),
                token,
                expires,
            },
        );
        token
    }

    /// Forgets expired locks and empty queues each time the table has doubled, so that names used once cost
    /// nothing for ever.
    fn sweep(&mut self) {
        if self.locks.len() + self.waiters.len() >= self.sweep_at {
            let now = Instant::now();
            self.locks.retain(|_, entry| entry.expires > now);
            self.waiters
                .retain(|_, group| !group.is_empty() || Arc::strong_count(group) > 1);
            self.sweep_at = ((self.locks.len() + self.waiters.len()) * 2).max(1024);
        }
    }
}

#[async_trait]
impl LockBackend for MemoryBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn check(&self, _target: &LockTarget) -> Result<(), NameError> {
        Ok(())
    }

    fn shard(&self, _target: &LockTarget) -> u32 {
        0
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let key = key(&attempt.target);
        let mut table = self.open()?;
        table.sweep();
        if let Some(entry) = table.live(&key, attempt.target.kind())? {
            if entry.owner == attempt.owner {
                entry.expires = entry.expires.max(Instant::now() + attempt.lease);
                return Ok(AttemptOutcome::Granted { token: entry.token });
            }
            let remaining = entry.expires.saturating_duration_since(Instant::now());
            return Ok(AttemptOutcome::Held {
                remaining: Some(remaining),
            });
        }
        let token = table.grant(key, attempt);
        Ok(AttemptOutcome::Granted { token })
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let key = key(&request.target);
        let mut table = self.open()?;
        if table
            .live(&key, request.target.kind())?
            .is_none_or(|entry| entry.owner != request.owner)
        {
            return Ok(ReleaseOutcome::NotHeld);
        }
        table.locks.remove(&key);
        if let Some(group) = table.waiters.get(&key) {
            group.wake_one();
        }
        Ok(ReleaseOutcome::Released)
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        _deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let extend = |request: &ExtendRequest| {
            let mut table = self.open()?;
            Ok(
                match table.live(&key(&request.target), request.target.kind())? {
                    Some(entry) if entry.owner == request.owner => {
                        entry.expires = entry.expires.max(Instant::now() + request.lease);
                        ExtendOutcome::Extended
                    }
                    Some(_) => ExtendOutcome::TakenOver,
                    None => ExtendOutcome::Missing,
                },
            )
        };
        batch.iter().map(extend).collect()
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        _deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let mut table = self.open()?;
        let entry = table.live(&key(target), target.kind())?;
        let last_token = entry.as_ref().and_then(|entry| entry.token);
        let holder = entry.map(|entry| HolderState {
            owner: entry.owner.clone(),
            holds: 1,
            remaining: Some(entry.expires.saturating_duration_since(Instant::now())),
        });
        Ok(LockState { holder, last_token })
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        _deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        let mut table = self.open()?;
        let group = Arc::clone(table.waiters.entry(key(target)).or_default());
        Ok(group.join(()))
    }

    async fn diagnose(&self, _deadline: Instant) -> Result<Diagnosis, BackendError> {
        Ok(Diagnosis {
            nodes: vec!["this process".to_owned()],
            findings: Vec::new(),
        })
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

fn key(target: &LockTarget) -> String {
    match target.kind() {
        LockKind::Reentrant => target.name().as_str().to_owned(),
        LockKind::Mutex(profile) => profile.key(target.name()),
    }
}

fn error(kind: BackendErrorKind, message: impl Into<String>) -> BackendError {
    BackendError::new(NAME, kind, Executed::No, message)
}
