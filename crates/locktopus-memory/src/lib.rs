//! The embedded backend: locks of one process, for tests and for programs that do not need more.
//!
//! This file answers the contract, in the words of `answers`; `kinds` says which locks there are; `table` has the state: who
//! holds what, who waits, and who can have it next.

mod answers;
mod instances;
mod kinds;
mod table;
mod tokens;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use self::answers::{gone, granted, holder_state};
use self::instances::Instances;
use self::table::{Table, key};
use self::tokens::Tokens;
use locktopus_core::{
    AcquireAttempt, Announcement, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo,
    CounterAction, CounterOutcome, CounterRequest, Diagnosis, Eviction, Executed, ExtendOutcome,
    ExtendRequest, FencingToken, FoundLock, GroupOutcome, InstanceQuery, InstanceRecord,
    LockBackend, LockKind, LockPage, LockState, LockTarget, NameError, ReleaseOutcome,
    ReleaseRequest, ScanCursor, WaiterState, WakeStream, lock,
};

const NAME: &str = "memory";
/// Locks in one page of a scan.
const PAGE: usize = 100;

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

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryBackend {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        let info = BackendInfo::new(
            NAME,
            "memory (this process)",
            true,
            Duration::from_millis(100),
        )
        .with_queues()
        .with_recalls()
        .with_instances()
        .with_linger(Duration::MAX);
        Self {
            table: Arc::default(),
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

    /// How many locks and waiters there are right now; those that have expired do not count.
    #[must_use]
    pub fn population(&self) -> (usize, usize) {
        let table = lock(&self.table);
        let now = Instant::now();
        let (mut locks, mut waiters) = (0, 0);
        for entry in table.entries.values() {
            locks += entry.holders.iter().filter(|h| h.expires > now).count();
            waiters += entry.queue.iter().filter(|p| p.until > now).count();
        }
        let listeners: usize = table.listeners.values().map(|group| group.len()).sum();
        (locks, waiters + listeners)
    }

    /// Forgets every lock, as a server that lost its data does.
    pub fn clear(&self) {
        let mut table = lock(&self.table);
        table.entries.clear();
        table.tokens = Tokens::default();
        table.instances = Instances::default();
    }

    /// Forgets one lock, as an operator who deletes it does. True if it was there.
    pub fn forget(&self, target: &LockTarget) -> bool {
        lock(&self.table).entries.remove(&key(target)).is_some()
    }

    fn open(&self) -> Result<MutexGuard<'_, Table>, BackendError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(error(BackendErrorKind::Closed, "the backend was closed"));
        }
        Ok(lock(&self.table))
    }
}

#[async_trait]
impl LockBackend for MemoryBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        kinds::check_known(target)?;
        target.check_name()
    }

    fn shard(&self, _target: &LockTarget) -> u32 {
        0
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let target = &attempt.target;
        kinds::refuse_latch(target)?;
        let mut table = self.open()?;
        let fence = table.last_token();
        table.raise(attempt)?;
        let entry = table.entry(target)?;
        if let Some(holder) = entry.holding(&attempt.owner, target.kind().mode()) {
            holder.expires = holder.expires.max(Instant::now() + attempt.lease);
            return Ok(granted(target, holder.token));
        }
        if entry.ahead(&attempt.owner) == 0 && entry.admits(attempt) {
            let _ = entry.leave(&attempt.owner);
            let token = table.grant(attempt)?;
            if let Some(holder) = table
                .entry(target)?
                .holding(&attempt.owner, target.kind().mode())
            {
                holder.recall = attempt.recall && target.kind().can_be_kept();
            }
            // Those behind this one may go too.
            if target.kind().mode() != locktopus_core::Mode::Exclusive {
                table.hand_on(target)?;
            }
            table.tell(target)?;
            return Ok(granted(target, token));
        }
        if let Some(keep) = attempt.place {
            entry.enter(attempt, keep);
        }
        table.ask_back(target)?;
        // Waiters ahead may be grantable now: their heartbeat was late, or a lease has just run out.
        table.hand_on(target)?;
        table.tell(target)?;
        let entry = table.entry(target)?;
        let remaining = entry.remaining();
        Ok(match attempt.place {
            None => AttemptOutcome::Held { remaining },
            Some(_) => AttemptOutcome::Queued {
                remaining,
                ahead: entry.ahead(&attempt.owner) as u64,
                fence,
            },
        })
    }

    fn group(&self, target: &LockTarget) -> Option<u32> {
        (!matches!(target.kind(), LockKind::Latch)).then_some(0)
    }

    async fn attempt_all(&self, attempts: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError> {
        let mut table = self.open()?;
        for (index, attempt) in attempts.iter().enumerate() {
            kinds::refuse_latch(&attempt.target)?;
            let entry = table.entry(&attempt.target)?;
            let mode = attempt.target.kind().mode();
            let free = entry.holding(&attempt.owner, mode).is_some()
                || (entry.queue.is_empty() && entry.admits(attempt));
            if !free {
                let remaining = entry.remaining();
                table.ask_back(&attempt.target)?;
                return Ok(GroupOutcome::Held { index, remaining });
            }
        }
        let mut tokens = Vec::with_capacity(attempts.len());
        for attempt in attempts {
            let kind = attempt.target.kind();
            let entry = table.entry(&attempt.target)?;
            let token = match entry.holding(&attempt.owner, kind.mode()) {
                Some(holder) => {
                    holder.expires = holder.expires.max(Instant::now() + attempt.lease);
                    holder.token
                }
                None => table.grant(attempt)?,
            };
            tokens.push(FencingToken::new(token).filter(|_| kind.has_tokens()));
        }
        Ok(GroupOutcome::Granted { tokens })
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let target = &request.target;
        let mut table = self.open()?;
        if table.is_other(target) {
            return Ok(ReleaseOutcome::NotHeld);
        }
        let entry = table.entry(target)?;
        if entry.lingers(request) {
            return Ok(ReleaseOutcome::Released);
        }
        let left = entry.leave(&request.owner);
        let mode = target.kind().mode();
        let held = |holder: &table::Holder| holder.owner == request.owner && holder.mode == mode;
        let Some(index) = entry.holders.iter().position(held) else {
            // Permits that were too few for the waiter that left may be enough for those behind it.
            if left && entry.has_room() {
                table.freed(target)?;
            }
            table.tell(target)?;
            return Ok(ReleaseOutcome::NotHeld);
        };
        let holder = entry.holders.swap_remove(index);
        if let Some(free) = entry.number.as_mut() {
            *free += i64::from(holder.permits);
        }
        table.freed(target)?;
        Ok(ReleaseOutcome::Released)
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        _deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let extend = |request: &ExtendRequest| {
            let mut table = self.open()?;
            let mode = request.target.kind().mode();
            if table.is_other(&request.target) {
                return Ok(gone(mode, true));
            }
            let entry = table.entry(&request.target)?;
            if let Some(holder) = entry.holding(&request.owner, mode) {
                holder.expires = holder.expires.max(Instant::now() + request.lease);
                return Ok(ExtendOutcome::Extended);
            }
            Ok(gone(mode, !entry.holders.is_empty()))
        };
        batch.iter().map(extend).collect()
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        _deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let mut table = self.open()?;
        let remembered = table.tokens.of(&key(target));
        let entry = table.entry(target)?;
        let now = Instant::now();
        let left = |until: Instant| Some(until.saturating_duration_since(now));
        let held = entry.holders.iter().map(|holder| holder.token).max();
        let token = held.max(remembered);
        let mut state = LockState::default();
        state.holders = entry
            .holders
            .iter()
            .map(|holder| holder_state(holder, now))
            .collect();
        state.last_token = token
            .filter(|_| target.kind().has_tokens())
            .and_then(FencingToken::new);
        let waiters = entry.queue.iter().map(|place| {
            let (attempt, mode) = (&place.attempt, place.attempt.target.kind().mode());
            let (owner, permits) = (attempt.owner.clone(), attempt.permits);
            WaiterState::new(owner, mode, permits, left(place.until))
        });
        state.waiters = waiters.collect();
        state.available = entry.number;
        Ok(state)
    }

    async fn counter(&self, request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
        let target = &request.target;
        let mut table = self.open()?;
        let outcome = table
            .entry(target)?
            .count(&request.operation, request.action);
        if matches!(target.kind(), LockKind::Latch) {
            // Waiters read when they are woken; reading must not wake them again.
            if outcome.changed
                && let Some(group) = table.listeners.get(&key(target))
            {
                group.wake_all();
            }
        } else if outcome.changed && !matches!(request.action, CounterAction::Delete) {
            table.freed(target)?;
        } else if !matches!(request.action, CounterAction::Read) {
            table.tell(target)?;
        }
        Ok(outcome)
    }

    async fn evict(
        &self,
        target: &LockTarget,
        _deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        let mut table = self.open()?;
        table.ask_back(target)?;
        let entry = table.entry(target)?;
        let holders = std::mem::take(&mut entry.holders);
        if let Some(free) = entry.number.as_mut() {
            *free += holders.iter().map(|h| i64::from(h.permits)).sum::<i64>();
        }
        let fence = target.kind().has_tokens().then(|| table.skip_token());
        table.freed(target)?;
        let evicted = holders.into_iter().map(|holder| holder.owner).collect();
        Ok(Eviction::new(evicted, fence.flatten()))
    }

    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        _deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        let table = self.open()?;
        let now = Instant::now();
        let after = cursor.map_or_else(String::new, |cursor| cursor.0);
        let mut names: Vec<_> = table
            .entries
            .values()
            .filter(|entry| entry.holders.iter().any(|holder| holder.expires > now))
            .map(|entry| (entry.target.name().as_str(), entry.target.kind()))
            .filter(|(name, _)| name.starts_with(prefix) && *name > after.as_str())
            .collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        let next = (names.len() > PAGE).then(|| ScanCursor(names[PAGE - 1].0.to_owned()));
        names.truncate(PAGE);
        let found = |(name, kind): (&str, &LockKind)| FoundLock::new(name, kind.clone());
        Ok(LockPage::new(names.into_iter().map(found).collect(), next))
    }

    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        self.open()?.instances.announced(announcement);
        Ok(())
    }

    async fn instances(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        Ok(self.open()?.instances.of(query))
    }

    fn listen(&self, target: &LockTarget) -> Option<WakeStream> {
        let table = self.open().ok()?;
        let group = table.listeners.get(&key(target))?;
        (!group.is_empty()).then(|| group.join(()))
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        _deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        let mut table = self.open()?;
        let group = Arc::clone(table.listeners.entry(key(target)).or_default());
        Ok(group.join(()))
    }

    async fn diagnose(&self, _deadline: Instant) -> Result<Diagnosis, BackendError> {
        Ok(Diagnosis {
            nodes: vec!["this process".to_owned()],
            ..Diagnosis::default()
        })
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

fn error(kind: BackendErrorKind, message: impl Into<String>) -> BackendError {
    BackendError::new(NAME, kind, Executed::No, message)
}
