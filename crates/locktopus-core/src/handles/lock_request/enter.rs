//! Acquiring for an owner: enters again if the owner already holds the lock.

use std::sync::Arc;

use locktopus_contract::{LockKind, Mode};
use tokio::time::Instant;

use super::{LockRequest, WaitLimit};
use crate::engine::acquisition::{self, Plan, Wait};
use crate::engine::error::LockError;
use crate::handles::any_guard::{Acquired, AnyGuard};
use crate::handles::guard::LockGuard;
use crate::handles::owner_handle::{HeldByOwner, Owner};
use crate::handles::rw_lock::read_as_writer;

impl<G: AnyGuard> LockRequest<G> {
    /// Takes the lock, and makes the answer of what was taken. Without an answer, time is over.
    #[expect(
        clippy::manual_async_fn,
        reason = "an `async fn` keeps its arguments twice, and there may be many who wait"
    )]
    pub(super) fn enter<T>(
        self,
        wait: fn(Option<WaitLimit>) -> Wait,
        answer: fn(Option<G>) -> Option<T>,
    ) -> impl Future<Output = Result<T, LockError>> + use<G, T> {
        async move {
            let plan = self.plan(wait(self.options.wait))?;
            let acquired = match self.owner_in_force() {
                None => {
                    let held = acquisition::acquire(&self.services, &plan).await?;
                    held.map(|held| {
                        held.turn().lease.hold_at_least(plan.hold_at_least);
                        let guard = LockGuard::new(held);
                        Acquired { guard, owner: None }
                    })
                }
                // Boxed, so that the many waiters without an owner do not carry this state.
                Some(owner) => Box::pin(self.enter_as(owner, plan)).await?,
            };
            match answer(acquired.map(G::from_acquired)) {
                Some(answer) => Ok(answer),
                None => Err(LockError::out_of_time(&self.target()?, Instant::now())),
            }
        }
    }

    async fn enter_as(&self, owner: Owner, mut plan: Plan) -> Result<Option<Acquired>, LockError> {
        let cell = owner.held_cell(&self.services, &plan.target);
        let started = Instant::now();
        // Another task of the same owner may be acquiring; its result is shared.
        let mut inside = tokio::select! {
            biased;
            inside = cell.lock() => inside,
            error = self.interrupted(&plan, started) => return error.map_or(Ok(None), Err),
        };
        let guard = match self.enter_again(&plan, &inside)? {
            Some(guard) => {
                drop(inside);
                // Like a first attempt, it always has a moment.
                plan.wait = match plan.wait {
                    Wait::Not => Wait::Forever,
                    Wait::AtMost(limit) => Wait::AtMost(limit.max(self.services.first_answer())),
                    Wait::Forever => Wait::Forever,
                };
                tokio::select! {
                    biased;
                    lengthened = self.lengthen(&guard) => lengthened?,
                    error = self.interrupted(&plan, started) => return error.map_or(Ok(None), Err),
                }
                guard
            }
            None => {
                if let Wait::AtMost(limit) = plan.wait {
                    plan.wait = Wait::AtMost(limit.saturating_sub(started.elapsed()));
                }
                let Some(guard) = self.take(&plan, &inside).await? else {
                    return Ok(None);
                };
                inside.entered(&guard);
                guard
            }
        };
        guard.turn().lease.hold_at_least(plan.hold_at_least);
        let owner = Some((owner, Arc::clone(&self.services)));
        Ok(Some(Acquired { guard, owner }))
    }

    /// The owner to acquire for. A writer always has one, because it may read what it writes.
    fn owner_in_force(&self) -> Option<Owner> {
        if self.kind.mode() == Mode::Permits {
            return None;
        }
        let owner = self.options.owner.clone().or_else(Owner::current);
        owner.or_else(|| (self.kind == LockKind::Write).then(Owner::new))
    }

    /// Another guard, if the owner is already inside; an error if it may not enter again.
    fn enter_again(
        &self,
        plan: &Plan,
        inside: &HeldByOwner,
    ) -> Result<Option<LockGuard>, LockError> {
        let target = || plan.target.clone();
        // Only checked: even a short-lived guard would count as a hold, perhaps as the last one.
        if !self.kind.is_reentrant() && inside.holds(&self.kind) {
            return Err(LockError::NotReentrant { target: target() });
        }
        if let Some(guard) = inside.enter_again(&self.services, &self.kind) {
            guard.ensure_valid()?;
            return Ok(Some(guard));
        }
        if self.kind == LockKind::Write && inside.holds(&LockKind::Read) {
            return Err(LockError::UpgradeRefused { target: target() });
        }
        Ok(None)
    }

    /// Never shortens the lease, because the other guards share it and rely on it.
    async fn lengthen(&self, guard: &LockGuard) -> Result<(), LockError> {
        if let Some(lease) = self.options.fixed_lease
            && !guard.turn().lease.renewed
            && guard.turn().lease.length() < lease
            && guard.remaining() < lease
        {
            guard.extend(lease).await?;
        }
        Ok(())
    }

    async fn take(
        &self,
        plan: &Plan,
        inside: &HeldByOwner,
    ) -> Result<Option<LockGuard>, LockError> {
        if self.kind == LockKind::Read
            && let Some(writer) = inside.enter_again(&self.services, &LockKind::Write)
        {
            return read_as_writer(&self.services, plan, &writer)
                .await
                .map(Some);
        }
        let held = acquisition::acquire(&self.services, plan).await?;
        Ok(held.map(LockGuard::new))
    }

    /// Completes when a wait behind another task of the same owner must end without the lock.
    async fn interrupted(&self, plan: &Plan, started: Instant) -> Option<LockError> {
        let out_of_time = || LockError::out_of_time(&plan.target, started);
        tokio::select! {
            () = self.services.closing.cancelled() => Some(LockError::ShutDown),
            () = plan.cancelled() => Some(plan.cancellation()),
            () = plan.wait.over(started) => (plan.wait != Wait::Not).then(out_of_time),
        }
    }
}
