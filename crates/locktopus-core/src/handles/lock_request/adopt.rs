//! Taking over a lease from another process.

use std::sync::Arc;

use locktopus_contract::clock::{self, BootInstant, timer_in};
use locktopus_contract::{ExtendOutcome, ExtendRequest, FencingToken, LockKind, OwnerId};

use super::LockRequest;
use crate::engine::acquisition::{Plan, Wait};
use crate::engine::error::{LockError, LostCause, Phase};
use crate::engine::holding::services::Services;
use crate::handles::any_guard::{Acquired, AnyGuard};
use crate::handles::guard::LockGuard;
use crate::handles::owner_handle::Owner;
use crate::handles::ticket::LeaseTicket;

impl<G: AnyGuard> LockRequest<G> {
    /// Takes over a lease from another process, with the same owner id and fencing token. The
    /// request must be for the same lock, of the same kind and with the same number of permits.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("upload:7").acquire().await?;
    /// let token = guard.token();
    /// let text = guard.into_ticket().expect("held by this guard alone").expose();
    ///
    /// // In another process, which got the text over a trusted channel:
    /// let adopted = locks.lock("upload:7").adopt(&text.parse()?).await?;
    /// assert_eq!(adopted.token(), token);
    /// adopted.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Ticket`] if the ticket is for another lock; [`LockError::Lost`] if its lease
    /// has ended meanwhile; [`LockError::Backend`] if the backend failed: then you can try the
    /// ticket again.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the lease may or may not have been extended, and is not renewed.
    pub async fn adopt(self, ticket: &LeaseTicket) -> Result<G, LockError> {
        let plan = self.plan(Wait::Not)?;
        ticket.check(&plan.target, plan.permits)?;
        let services = self.services;
        // An adopted lock has no owner yet, but a writer must be able to read. Lock that owner's
        // holds now, before there is a hold: later, this future could be dropped between the two.
        let owner = (plan.target.kind() == &LockKind::Write).then(Owner::new);
        let cell = owner
            .as_ref()
            .map(|owner| owner.held_cell(&services, &plan.target));
        let mut inside = match &cell {
            Some(cell) => Some(cell.lock().await),
            None => None,
        };
        let usual = services.backend.info().token_retention;
        let retention = plan.retention.unwrap_or(usual);
        let sent = clock::now();
        let request = ExtendRequest {
            target: plan.target.clone(),
            owner: ticket.owner_id().clone(),
            lease: plan.lease,
            permits: plan.permits,
            // It is not known here how long the token was kept before.
            keep_token: ticket
                .token()
                .and_then(|_| retention.after_lease(plan.lease)),
        };
        let deadline = timer_in(services.call_timeout());
        let cause = match services.extend_one(request, deadline).await {
            Ok(ExtendOutcome::Extended) => {
                let guard = guard_of_grant(
                    &services,
                    &plan,
                    ticket.owner_id(),
                    ticket.token(),
                    sent,
                    false,
                )?;
                if let Some(inside) = &mut inside {
                    inside.entered(&guard);
                }
                guard.ensure_valid()?;
                guard.turn().lease.hold_at_least(plan.hold_at_least);
                drop(inside);
                let owner = owner.map(|owner| (owner, Arc::clone(&services)));
                return Ok(G::from_acquired(Acquired { guard, owner }));
            }
            Ok(ExtendOutcome::Missing) => LostCause::Missing,
            Ok(ExtendOutcome::TakenOver) => LostCause::TakenOver,
            Err(source) => {
                return Err(LockError::Backend {
                    target: plan.target,
                    phase: Phase::Extend,
                    source,
                });
            }
        };
        let cause = services
            .explain(&plan.target, ticket.owner_id(), cause)
            .await;
        let target = plan.target;
        Err(LockError::Lost { target, cause })
    }
}

/// Starts watching a lease that `owner` got by a request sent at `sent`. `late_attempt`: an earlier
/// attempt got no answer.
pub(crate) fn guard_of_grant(
    services: &Arc<Services>,
    plan: &Plan,
    owner: &OwnerId,
    token: Option<FencingToken>,
    sent: BootInstant,
    late_attempt: bool,
) -> Result<LockGuard, LockError> {
    let granted_at = clock::now();
    let mut lease = plan.granted(services, owner, token, sent);
    lease.late_attempt = late_attempt;
    let hold_until = lease.hold_until();
    let lease = lease.start(services, granted_at)?;
    let held = lease.begin_turn(services, hold_until, granted_at);
    held.turn()
        .observed(services.observer.holds(&plan.target, token));
    Ok(LockGuard::new(held))
}
