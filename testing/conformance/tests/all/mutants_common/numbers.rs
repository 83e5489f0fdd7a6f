//! Mutants of counters, evictions and lists.

use locktopus_core::{
    BackendError, CounterAction, CounterOutcome, CounterRequest, Eviction, FencingToken, FoundLock,
    LockPage, LockTarget, OwnerId, ScanCursor,
};
use tokio::time::Instant;

use super::Mutation;
use super::family::Family;

impl Family {
    pub(super) async fn mutant_counter(
        &self,
        mut request: CounterRequest,
    ) -> Result<CounterOutcome, BackendError> {
        let again = |action| CounterRequest {
            operation: OwnerId::generate(),
            action,
            ..request.clone()
        };
        match (self.mutation, request.action) {
            (Mutation::InitialisesAgain, CounterAction::Initialise(value)) => {
                let _ = self.inner.counter(&again(CounterAction::Delete)).await?;
                return self
                    .inner
                    .counter(&again(CounterAction::Initialise(value)))
                    .await;
            }
            (Mutation::DrainsNothing, CounterAction::Drain) => {
                let outcome = self.inner.counter(&again(CounterAction::Read)).await?;
                return Ok(CounterOutcome {
                    changed: true,
                    ..outcome
                });
            }
            (Mutation::DeletesNothing, CounterAction::Delete) => {
                return Ok(CounterOutcome {
                    value: None,
                    changed: true,
                });
            }
            (Mutation::AddsForNobody, CounterAction::Add(_)) => {
                self.take_out(&request.target, 0).await;
            }
            (Mutation::OperationsRepeat, _) => request.operation = OwnerId::generate(),
            _ => {}
        }
        let outcome = self.inner.counter(&request).await?;
        Ok(match (self.mutation, request.action, outcome.value) {
            (Mutation::ResizeStopsAtZero, CounterAction::Resize(_), Some(value)) if value < 0 => {
                let repair = CounterRequest {
                    operation: OwnerId::generate(),
                    action: CounterAction::Add(-value),
                    ..request
                };
                self.inner.counter(&repair).await?
            }
            (Mutation::BelowZero, CounterAction::CountDown, Some(0)) if !outcome.changed => {
                CounterOutcome {
                    value: Some(-1),
                    changed: true,
                }
            }
            _ => outcome,
        })
    }

    pub(super) async fn mutant_evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        let state = self.state(target).await;
        if self.is(Mutation::EvictsNobody) {
            let owners = state.holders.into_iter().map(|holder| holder.owner);
            return Ok(Eviction::new(owners.collect(), state.last_token));
        }
        if self.is(Mutation::EvictsWaiters) {
            self.take_out(target, 0).await;
        }
        let found = self.inner.evict(target, deadline).await?;
        let moved = |by: i64| {
            let fence = found
                .fence
                .and_then(|fence| fence.get().checked_add_signed(by));
            Eviction::new(found.evicted.clone(), fence.and_then(FencingToken::new))
        };
        Ok(match self.mutation {
            Mutation::EvictsInSilence => Eviction::new(Vec::new(), found.fence),
            Mutation::EvictionFenceTooHigh => moved(1_000_000_000),
            Mutation::EvictionFenceTooLow => moved(-500),
            Mutation::EvictionLosesPermits => {
                let request = CounterRequest {
                    target: target.clone(),
                    operation: OwnerId::generate(),
                    action: CounterAction::Add(-1),
                    deadline,
                };
                if state.available.is_some() {
                    let _ = self.inner.counter(&request).await?;
                }
                found
            }
            _ => found,
        })
    }

    pub(super) async fn mutant_scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        let wanted = match self.mutation {
            Mutation::ListsEverything => "",
            Mutation::ListsByPattern => prefix.split(['*', '?', '[', '\\']).next().unwrap_or(""),
            _ => prefix,
        };
        let page = self.inner.scan(wanted, cursor, deadline).await;
        if self.is(Mutation::ListsWhenClosed) && page.is_err() {
            return Ok(LockPage::default());
        }
        let mut page = page?;
        match self.mutation {
            Mutation::ListsOnePage => page.next = None,
            Mutation::ListsFreeLocks => {
                let names = self.shared.names.lock().unwrap();
                let known = names
                    .iter()
                    .filter(|t| t.name().as_str().starts_with(prefix));
                page.locks = known
                    .map(|t| FoundLock::new(t.name().as_str(), t.kind().clone()))
                    .collect();
                page.next = None;
            }
            _ => {}
        }
        Ok(page)
    }
}
