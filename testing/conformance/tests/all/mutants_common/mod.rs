//! The embedded backend with one rule broken.

mod family;
mod kinds;
mod mutation;
mod numbers;
mod requests;
mod taking;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use family::Family;
use locktopus_conformance::{Flavour, Suite};
use locktopus_core::{
    AcquireAttempt, Announcement, AttemptOutcome, BackendError, Directory, DynBackend, Eviction,
    ExtendOutcome, ExtendRequest, InstanceQuery, InstanceRecord, Instances, Layer, LockBackend,
    LockPage, LockState, LockTarget, OwnerId, ReleaseOutcome, ReleaseRequest, ScanCursor,
    WakeGroup, WakeStream, WakeUps,
};
use locktopus_memory::MemoryBackend;
pub(crate) use mutation::Mutation;
use requests::{error, far, folded, renamed};
use tokio::time::Instant;

/// Runs the suite, or the cases with `only` in their names, on a mutant. Returns `case: message`
/// for every failed case.
pub(crate) async fn failures(
    mutation: Mutation,
    flavours: &[Flavour],
    only: Option<&str>,
) -> Vec<String> {
    let (store, state, shared) = (MemoryBackend::new(), Arc::default(), Arc::default());
    let wiped = store.clone();
    let suite = Suite::new(move || {
        let client: DynBackend = Arc::new(Mutant {
            mutation,
            inner: Family {
                mutation,
                inner: Arc::new(store.another_client()),
                shared: Arc::clone(&shared),
            },
            state: Arc::clone(&state),
        });
        async move { client }
    });
    let mut suite = suite.shared_waiters().flavours(flavours);
    if let Some(only) = only {
        suite = suite.only(only);
    }
    let suite = suite.wipe(move |target: LockTarget| {
        wiped.forget(&target);
        async {}
    });
    let report = suite.run().await;
    let failures = report.failures();
    failures
        .map(|(name, what)| format!("{name}: {what}"))
        .collect()
}

/// Shared by all clients of a mutant.
#[derive(Debug, Default)]
struct State {
    calls: AtomicUsize,
    attempts: Mutex<HashMap<OwnerId, usize>>,
    grants: Mutex<HashMap<LockTarget, (OwnerId, u64)>>,
    /// Subscribers that hear of releases and nothing else.
    groups: Mutex<HashMap<LockTarget, Arc<WakeGroup>>>,
}

#[derive(Debug)]
struct Mutant {
    mutation: Mutation,
    inner: Family,
    state: Arc<State>,
}

impl Mutant {
    fn is(&self, mutation: Mutation) -> bool {
        self.mutation == mutation
    }

    fn every(&self, nth: usize) -> bool {
        self.state.calls.fetch_add(1, Ordering::Relaxed) % nth == nth - 1
    }

    async fn holder(&self, target: &LockTarget) -> Option<OwnerId> {
        let state = self.inner().inspect(target, far()).await.ok()?;
        state.holder().map(|holder| holder.owner.clone())
    }

    /// Counts an attempt of an owner, and returns how many came before.
    fn count(&self, owner: &OwnerId) -> usize {
        let mut attempts = self.state.attempts.lock().unwrap();
        let count = attempts.entry(owner.clone()).or_default();
        *count += 1;
        *count - 1
    }

    /// How many grants of this lock came before this one, or before the first one to this owner.
    fn grants(&self, attempt: &AcquireAttempt) -> u64 {
        let mut grants = self.state.grants.lock().unwrap();
        let first = || (attempt.owner.clone(), 0);
        let (last, count) = grants.entry(attempt.target.clone()).or_insert_with(first);
        if *last != attempt.owner {
            (*last, *count) = (attempt.owner.clone(), *count + 1);
        }
        *count
    }

    fn group_of(&self, target: &LockTarget) -> Arc<WakeGroup> {
        let mut groups = self.state.groups.lock().unwrap();
        Arc::clone(groups.entry(target.clone()).or_default())
    }

    fn target(&self, target: &LockTarget) -> LockTarget {
        match self.mutation {
            Mutation::NamesFolded => renamed(target, &folded(target.name().as_str())),
            Mutation::NamesCut => renamed(
                target,
                &target.name().as_str().chars().take(512).collect::<String>(),
            ),
            _ => target.clone(),
        }
    }

    fn owner(&self, owner: &OwnerId) -> OwnerId {
        let bytes = owner.expose();
        match self.mutation {
            Mutation::OwnersAreText => {
                OwnerId::from_bytes(String::from_utf8_lossy(bytes).as_bytes())
            }
            Mutation::OwnersEndAtZero => {
                let end = bytes.iter().position(|byte| *byte == 0);
                OwnerId::from_bytes(&bytes[..end.unwrap_or(bytes.len())])
            }
            _ => owner.clone(),
        }
    }

    async fn extend_one(&self, request: &ExtendRequest) -> Result<ExtendOutcome, BackendError> {
        let mut request = request.clone();
        request.target = self.target(&request.target);
        request.owner = self.owner(&request.owner);
        let extend = async |request: ExtendRequest| {
            let mut answers = self.inner().extend(&[request], far()).await;
            answers.remove(0)
        };
        let holder = self.holder(&request.target).await;
        match (self.mutation, holder) {
            (Mutation::ExtendIgnored, Some(holder)) if holder == request.owner => {
                Ok(ExtendOutcome::Extended)
            }
            (Mutation::ExtendOfAnybody, Some(holder)) => {
                request.owner = holder;
                extend(request).await
            }
            (Mutation::TakenOverAsMissing, Some(holder)) if holder != request.owner => {
                Ok(ExtendOutcome::Missing)
            }
            (Mutation::ExtendCreates, None) => {
                let _ = self.inner().attempt(&requests::attempt(&request)).await?;
                Ok(ExtendOutcome::Extended)
            }
            (Mutation::ExtendShortens, Some(holder)) if holder == request.owner => {
                let _ = self.inner().release(&requests::release(&request)).await?;
                let _ = self.inner().attempt(&requests::attempt(&request)).await?;
                Ok(ExtendOutcome::Extended)
            }
            _ => extend(request).await,
        }
    }
}

#[async_trait]
impl Layer for Mutant {
    fn inner(&self) -> &dyn LockBackend {
        &self.inner
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let mut attempt = attempt.clone();
        attempt.target = self.target(&attempt.target);
        attempt.owner = self.owner(&attempt.owner);
        // An await point, as a network has one; without it no two calls would overlap.
        tokio::task::yield_now().await;
        let repeated = self.count(&attempt.owner) > 0;
        match self.mutation {
            Mutation::LeaseIgnored => attempt.lease = Duration::from_secs(48 * 60 * 60),
            Mutation::LeaseHalved => attempt.lease /= 2,
            Mutation::TellsNobody => attempt.recall = false,
            Mutation::TellsUnasked => attempt.recall = true,
            Mutation::HangsAtDeadline if attempt.deadline <= Instant::now() => {
                std::future::pending::<()>().await;
            }
            Mutation::LiesAboutEffect if attempt.deadline <= Instant::now() => {
                let _ = self.inner().attempt(&attempt).await?;
                return Err(error());
            }
            _ => {}
        }
        let outcome = self.inner().attempt(&attempt).await?;
        let (token, remaining) = match outcome {
            AttemptOutcome::Granted { token } => (token, None),
            AttemptOutcome::Busy { remaining } | AttemptOutcome::Queued { remaining, .. } => {
                (None, Some(remaining))
            }
        };
        Ok(match (self.mutation, remaining) {
            (Mutation::GrantsTwice, Some(_)) => AttemptOutcome::Granted { token: None },
            (Mutation::GrantsTwiceRarely, Some(_)) if self.every(40) => {
                AttemptOutcome::Granted { token: None }
            }
            (Mutation::RefusesRepetition, None) if repeated => {
                AttemptOutcome::Busy { remaining: None }
            }
            (Mutation::TokensMissing, None) => AttemptOutcome::Granted { token: None },
            (Mutation::TokensConstant, None) => requests::granted(token.map(|_| 7)),
            (Mutation::TokensInPairs, None) => {
                let grants = self.grants(&attempt);
                requests::granted(token.map(|_| 1 + grants / 2))
            }
            (Mutation::TokenPerAttempt, None) => {
                let fresh = self.state.calls.fetch_add(1, Ordering::Relaxed) as u64;
                requests::granted(token.map(|t| t.get() + fresh + 1))
            }
            _ => outcome,
        })
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let mut request = request.clone();
        request.target = self.target(&request.target);
        request.owner = self.owner(&request.owner);
        tokio::task::yield_now().await;
        let holder = self.holder(&request.target).await;
        match (self.mutation, holder) {
            (Mutation::ReleaseOfAnybody, Some(holder)) => request.owner = holder,
            (Mutation::ReleasesNothing, Some(holder)) if holder == request.owner => {
                return Ok(ReleaseOutcome::Released);
            }
            (Mutation::CountsAttempts, Some(holder)) if holder == request.owner => {
                let mut attempts = self.state.attempts.lock().unwrap();
                let count = attempts.entry(request.owner.clone()).or_default();
                *count = count.saturating_sub(1);
                if *count > 0 {
                    return Ok(ReleaseOutcome::Released);
                }
            }
            _ => {}
        }
        let outcome = self.inner().release(&request).await?;
        if self.is(Mutation::LiesAboutRelease) && request.deadline <= Instant::now() {
            return Err(error());
        }
        if self.is(Mutation::LeavesInSilence) && outcome == ReleaseOutcome::Released {
            self.group_of(&request.target).wake_all();
        }
        Ok(outcome)
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let mut answers = Vec::new();
        for request in batch {
            let answer = self.extend_one(request).await;
            let lies = self.is(Mutation::LiesAboutExtension) && deadline <= Instant::now();
            answers.push(if lies { Err(error()) } else { answer });
        }
        if self.is(Mutation::BatchReversed) {
            answers.reverse();
        }
        answers
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let mut state = self.inner().inspect(&self.target(target), deadline).await?;
        if self.is(Mutation::LooksTakeBack) {
            // A request for too many permits finds the returned ones.
            let owner = OwnerId::generate();
            let lease = Duration::from_secs(1);
            let mut attempt = AcquireAttempt::new(self.target(target), owner, lease, far());
            attempt.permits = u32::MAX;
            let _ = self.inner().attempt(&attempt).await?;
        }
        for holder in &mut state.holders {
            match self.mutation {
                Mutation::HeldForLonger => {
                    holder.held_for = holder.held_for.map(|time| time + Duration::from_secs(1));
                }
                Mutation::HeldForNothing => holder.held_for = Some(Duration::ZERO),
                _ => {}
            }
        }
        if self.is(Mutation::InspectsNothing) {
            state = LockState::default();
        }
        Ok(state)
    }

    async fn close(&self) {
        if !self.is(Mutation::StaysOpen) {
            self.inner().close().await;
        }
    }

    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        Some(self)
    }

    fn directory(&self) -> Option<&dyn Directory> {
        Some(self)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }
}

#[async_trait]
impl WakeUps for Mutant {
    fn listen(&self, target: &LockTarget) -> Option<WakeStream> {
        self.inner().listen(&self.target(target))
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        if self.is(Mutation::LeavesInSilence) {
            return Ok(self.group_of(target).join(()));
        }
        let stream = self
            .inner()
            .subscribe(&self.target(target), deadline)
            .await?;
        if self.is(Mutation::NoHints) || self.is(Mutation::SomeHintsLost) && self.every(3) {
            return Ok(Arc::<WakeGroup>::default().join(()));
        }
        Ok(stream)
    }
}

#[async_trait]
impl Directory for Mutant {
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        self.inner().scan(prefix, cursor, deadline).await
    }

    async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        let eviction = self.inner().evict(target, deadline).await;
        match self.mutation {
            Mutation::LiesAboutEviction if deadline <= Instant::now() => Err(error()),
            Mutation::EvictsWhenClosed if eviction.is_err() => Ok(Eviction::new(vec![], None)),
            _ => eviction,
        }
    }
}

#[async_trait]
impl Instances for Mutant {
    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        let mut announcement = announcement.clone();
        match self.mutation {
            Mutation::RecordsStay if announcement.record.is_none() => return Ok(()),
            Mutation::RecordsStay => announcement.keep = Duration::from_secs(48 * 60 * 60),
            Mutation::RecordsOfAllNamespaces => announcement.namespace.clear(),
            _ => {}
        }
        self.inner().announce(&announcement).await
    }

    async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        let mut query = query.clone();
        if self.is(Mutation::RecordsOfAllNamespaces) {
            query.namespace.clear();
        }
        let mut records = self.inner().records(&query).await?;
        if self.is(Mutation::RecordsOutOfOrder) {
            records.reverse();
        }
        Ok(records)
    }
}
