//! Breaks one rule of queues, groups, read-write locks, semaphores, latches, evictions or lists.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, CounterOutcome, CounterRequest, Counters,
    Directory, DynBackend, Eviction, ExtendOutcome, ExtendRequest, GroupOutcome, Groups,
    HolderState, LockBackend, LockPage, LockState, LockTarget, OwnerId, ReleaseOutcome,
    ReleaseRequest, ScanCursor, WakeGroup, WakeStream, WakeUps,
};
use tokio::time::Instant;

use super::Mutation;
use super::requests::far;

/// State shared by all clients of a mutant.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The attempts that asked for a place, and when each first did.
    queued: Mutex<HashMap<OwnerId, (AcquireAttempt, Instant)>>,
    /// Every name ever requested.
    pub(super) names: Mutex<Vec<LockTarget>>,
}

#[derive(Debug)]
pub(super) struct Family {
    pub(super) mutation: Mutation,
    pub(super) inner: DynBackend,
    pub(super) shared: Arc<Shared>,
}

impl Family {
    pub(super) fn is(&self, mutation: Mutation) -> bool {
        self.mutation == mutation
    }

    pub(super) async fn state(&self, target: &LockTarget) -> LockState {
        let state = self.inner.inspect(target, far()).await;
        state.unwrap_or_default()
    }

    fn remember(&self, attempt: &AcquireAttempt) {
        let target = attempt.target.clone();
        self.shared.names.lock().unwrap().push(target);
        if attempt.place.is_some() {
            let mut queued = self.shared.queued.lock().unwrap();
            let since = Instant::now();
            let entry = queued.entry(attempt.owner.clone());
            entry.or_insert_with(|| (attempt.clone(), since));
        }
    }

    fn queued_since(&self, owner: &OwnerId) -> Option<Instant> {
        let queued = self.shared.queued.lock().unwrap();
        queued.get(owner).map(|(_, since)| *since)
    }

    /// Removes all waiters behind the first `keep` from the queue, in order.
    pub(super) async fn take_out(&self, target: &LockTarget, keep: usize) -> Vec<AcquireAttempt> {
        let waiters = self.state(target).await.waiters.into_iter().skip(keep);
        let mut taken: Vec<_> = {
            let known = self.shared.queued.lock().unwrap();
            waiters
                .map(|waiter| known[&waiter.owner].0.clone())
                .collect()
        };
        // From the end, so that no waiter is granted what one ahead of it gives up.
        taken.reverse();
        for attempt in &taken {
            let (target, owner) = (attempt.target.clone(), attempt.owner.clone());
            let request = ReleaseRequest::new(target, owner, far());
            let _ = self.inner.release(&request).await;
        }
        taken.reverse();
        taken
    }

    pub(super) async fn put_back(&self, attempts: impl IntoIterator<Item = AcquireAttempt>) {
        for attempt in attempts {
            let _ = self.inner.attempt(&attempt).await;
        }
    }
}

#[async_trait]
impl locktopus_core::Layer for Family {
    fn inner(&self) -> &dyn LockBackend {
        &*self.inner
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        self.remember(attempt);
        let answer = self.mutant_attempt(attempt.clone()).await;
        self.mixed_attempt(answer)
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        if self.is(Mutation::OtherKindIsReleased) && self.is_other(&request.target).await {
            return Ok(ReleaseOutcome::Released);
        }
        self.mutant_release(request).await
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        if self.is(Mutation::ExtendsEveryHolder) {
            for request in batch {
                for holder in self.state(&request.target).await.holders {
                    let (target, lease) = (request.target.clone(), request.lease);
                    let other = ExtendRequest::new(target, holder.owner, lease);
                    let _ = self.inner.extend(&[other], deadline).await;
                }
            }
        }
        self.inner.extend(batch, deadline).await
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let state = self.inner.inspect(target, deadline).await;
        let mut state = self.mixed_state(state)?;
        for holder in &mut state.holders {
            if self.is(Mutation::HandedLeaseIsOld)
                && let Some(since) = self.queued_since(&holder.owner)
            {
                let left = holder.remaining.unwrap_or_default();
                let left = left.saturating_sub(since.elapsed());
                let owner = holder.owner.clone();
                *holder = HolderState::new(owner, holder.mode, holder.holds, Some(left));
            }
        }
        Ok(state)
    }

    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        self.inner.wake_ups().map(|_| self as _)
    }

    fn counters(&self) -> Option<&dyn Counters> {
        self.inner.counters().map(|_| self as _)
    }

    fn groups(&self) -> Option<&dyn Groups> {
        self.inner.groups().map(|_| self as _)
    }

    fn directory(&self) -> Option<&dyn Directory> {
        self.inner.directory().map(|_| self as _)
    }
}

#[async_trait]
impl WakeUps for Family {
    fn listen(&self, target: &LockTarget) -> Option<WakeStream> {
        let stream = self.inner.listen(target)?;
        Some(match self.mutation {
            Mutation::JoinsNobody => Arc::<WakeGroup>::default().join(()),
            _ => stream,
        })
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        let stream = self.inner.subscribe(target, deadline).await?;
        Ok(match self.mutation {
            Mutation::NoPushes => {
                // Hints arrive but grants do not: the inner stream cannot be claimed.
                let (group, mut inner) = (Arc::<WakeGroup>::default(), stream);
                let outer = group.join(());
                tokio::spawn(async move {
                    while Arc::strong_count(&group) > 1 {
                        inner.next().await;
                        group.wake_one();
                    }
                });
                outer
            }
            _ => stream,
        })
    }
}

#[async_trait]
impl Counters for Family {
    async fn counter(&self, request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
        self.mixed_count(self.mutant_counter(request.clone()).await)
    }
}

#[async_trait]
impl Groups for Family {
    fn group(&self, target: &LockTarget) -> Option<u32> {
        self.inner.group(target)
    }

    async fn attempt_all(&self, attempts: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError> {
        self.mixed_group(self.mutant_group(attempts).await)
    }
}

#[async_trait]
impl Directory for Family {
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        self.mutant_scan(prefix, cursor, deadline).await
    }

    async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        self.mixed_eviction(self.mutant_evict(target, deadline).await)
    }
}
