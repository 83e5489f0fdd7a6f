//! The embedded backend: locks of one process, for tests and for programs that need no more.
//!
//! This file implements the contract for the type in `backend`; `answers` builds its answers.
//! `kinds` lists the kinds of locks. `table` has the state: who holds, who waits, and who may be
//! next. `numbers` has the number of a semaphore, a rate limiter or a latch.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod answers;
mod backend;
mod instances;
mod kinds;
mod numbers;
mod pages;
mod table;
mod tokens;
mod turns;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use tokio::time::Instant;

use self::answers::{gone, granted, holder_state};
use self::table::key;
use locktopus_contract::{
    AcquireAttempt, Announcement, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo,
    CounterAction, CounterOutcome, CounterRequest, Counters, Diagnosis, Diagnostics, Directory,
    Eviction, Executed, ExtendOutcome, ExtendRequest, FencingToken, GroupOutcome, Groups,
    InstanceQuery, InstanceRecord, Instances, LockBackend, LockKind, LockPage, LockState,
    LockTarget, NameError, ReleaseOutcome, ReleaseRequest, ScanCursor, WaiterState, WakeStream,
    WakeUps,
};

pub use backend::MemoryBackend;

const BACKEND_NAME: &str = "memory";

#[async_trait]
impl LockBackend for MemoryBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        kinds::check_known(target)?;
        target.check_name()
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let target = &attempt.target;
        kinds::refuse_latch(target)?;
        turns::yield_now_and_then().await;
        let mut table = self.open()?;
        let last_token = table.last_token();
        table.raise(attempt)?;
        let entry = table.entry(target)?;
        let renews = entry.period.is_none();
        if let Some(holder) = entry.holding(&attempt.owner, target.kind().mode()) {
            if renews {
                holder.expires = holder.expires.max(Instant::now() + attempt.lease);
            }
            return Ok(granted(target, holder.token));
        }
        if let Err(too_few) = entry.check_total(attempt) {
            // Permits that expired belong to other waiters, who may want fewer.
            table.tell(target)?;
            return Err(too_few);
        }
        // Waiters ahead may be grantable now: their heartbeat was late, or a lease has just
        // expired. This attempt gets what they leave.
        table.hand_on(target, Some(&attempt.owner))?;
        let entry = table.entry(target)?;
        if entry.is_next(&attempt.owner) && entry.admits(attempt) {
            let _ = entry.leave(&attempt.owner);
            let token = table.grant(attempt)?;
            if let Some(holder) = table
                .entry(target)?
                .holding(&attempt.owner, target.kind().mode())
            {
                holder.recall = attempt.recall && target.kind().can_be_kept();
            }
            // Waiters behind this one may be grantable too.
            if target.kind().mode() != locktopus_contract::Mode::Exclusive {
                table.hand_on(target, None)?;
            }
            table.tell(target)?;
            return Ok(granted(target, token));
        }
        if let Some(keep) = attempt.place {
            entry.enter(attempt, keep);
        }
        table.ask_back(target)?;
        table.tell(target)?;
        let entry = table.entry(target)?;
        let remaining = entry.remaining(attempt.permits);
        Ok(match attempt.place {
            None => AttemptOutcome::Busy { remaining },
            Some(_) => AttemptOutcome::Queued {
                remaining,
                ahead: entry.ahead(&attempt.owner) as u64,
                last_token,
            },
        })
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
                if let Some(keep) = request.keep_token {
                    table.tokens.keep(&key(&request.target), keep);
                }
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
                .waited_for(Some(now.saturating_duration_since(place.since)))
        });
        state.waiters = waiters.collect();
        state.available = entry.number;
        Ok(state)
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
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
impl WakeUps for MemoryBackend {
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
}

#[async_trait]
impl Counters for MemoryBackend {
    async fn counter(&self, request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
        let target = &request.target;
        let mut table = self.open()?;
        let outcome = table
            .entry(target)?
            .count(&request.operation, request.action);
        if matches!(target.kind(), LockKind::Latch) {
            // Waiters read the count when they wake up, so reading must not wake them again.
            if outcome.changed
                && let Some(group) = table.listeners.get(&key(target))
            {
                group.wake_all();
            }
        } else if numbers::may_free(request.action, outcome) {
            table.freed(target)?;
        } else if !matches!(request.action, CounterAction::Read) {
            table.tell(target)?;
        }
        Ok(outcome)
    }
}

#[async_trait]
impl Groups for MemoryBackend {
    fn group(&self, target: &LockTarget) -> Option<u32> {
        target.kind().is_held().then_some(0)
    }

    async fn attempt_all(&self, attempts: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError> {
        turns::yield_now_and_then().await;
        let mut table = self.open()?;
        for (index, attempt) in attempts.iter().enumerate() {
            kinds::refuse_latch(&attempt.target)?;
            let entry = table.entry(&attempt.target)?;
            let mode = attempt.target.kind().mode();
            let holds = entry.holding(&attempt.owner, mode).is_some();
            if !holds {
                entry.check_total(attempt)?;
            }
            let free = holds || (entry.queue.is_empty() && entry.admits(attempt));
            if !free {
                let remaining = entry.remaining(attempt.permits);
                table.ask_back(&attempt.target)?;
                return Ok(GroupOutcome::Busy { index, remaining });
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
}

#[async_trait]
impl Directory for MemoryBackend {
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        _deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        Ok(pages::page(&*self.open()?, prefix, cursor))
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
}

#[async_trait]
impl Instances for MemoryBackend {
    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        self.open()?.instances.announced(announcement);
        Ok(())
    }

    async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        Ok(self.open()?.instances.of(query))
    }
}

#[async_trait]
impl Diagnostics for MemoryBackend {
    async fn diagnose(&self, _deadline: Instant) -> Result<Diagnosis, BackendError> {
        Ok(Diagnosis {
            nodes: vec!["this process".to_owned()],
            ..Diagnosis::default()
        })
    }
}

fn error(kind: BackendErrorKind, message: impl Into<String>) -> BackendError {
    BackendError::new(BACKEND_NAME, kind, Executed::No, message)
}
