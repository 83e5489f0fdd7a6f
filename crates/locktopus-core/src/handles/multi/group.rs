//! Acquires the locks of one group by one request.

use std::collections::VecDeque;
use std::sync::Arc;

use locktopus_contract::clock::{self, timer_in};
use locktopus_contract::{
    AcquireAttempt, BackendError, BackendErrorKind, Executed, GroupOutcome, LockTarget, OtherKind,
};
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::acquired_member::AcquiredMember;
use super::set::Member;
use crate::engine::acquisition::{Plan, Wait};
use crate::engine::error::{LockError, Phase};
use crate::engine::holding::reaper::PendingRelease;
use crate::engine::holding::services::Services;
use crate::handles::lock_request::guard_of_grant;

pub(super) enum GroupResult {
    Acquired,
    /// This member is held by another owner.
    Busy(usize),
    /// It may work later.
    Failed,
}

/// One request for several locks. Dropping it at any point gives back the locks it may have taken.
pub(super) struct GroupAttempt<'a> {
    services: &'a Arc<Services>,
    /// Members that no guard is responsible for yet.
    open: VecDeque<(&'a Member, Plan, AcquireAttempt)>,
    unsettled: Option<TaskTrackerToken>,
    late: bool,
}

impl<'a> GroupAttempt<'a> {
    pub(super) fn new(
        members: &[&'a Member],
        wait: Wait,
        started: Instant,
    ) -> Result<Self, LockError> {
        let services = members[0].services();
        let deadline = timer_in(services.call_timeout());
        let deadline = match wait {
            Wait::AtMost(left) => {
                deadline.min(timer_in(left).max(started + services.first_answer()))
            }
            Wait::Not | Wait::Forever => deadline,
        };
        let open = members.iter().map(|member| {
            let plan = member.plan(Wait::Not)?;
            let owner = plan.target.kind().owner_from(&services.ids);
            let attempt = AcquireAttempt {
                permits: plan.permits,
                token_retention: plan.retention,
                ..AcquireAttempt::new(plan.target.clone(), owner, plan.lease, deadline)
            };
            Ok((*member, plan, attempt))
        });
        Ok(Self {
            services,
            open: open.collect::<Result<_, LockError>>()?,
            unsettled: None,
            late: true,
        })
    }

    pub(super) async fn run(
        mut self,
        taken: &mut Vec<AcquiredMember>,
    ) -> Result<GroupResult, LockError> {
        let mut sent = clock::now();
        let attempts: Vec<_> = self.open.iter().map(|(_, _, a)| a.clone()).collect();
        let (services, unsettled) = (self.services, &mut self.unsettled);
        let sends = |token| (*unsettled, sent) = (Some(token), clock::now());
        let answer = services.attempt_all(&attempts, attempts[0].deadline, sends);
        let answer = answer.await;
        self.late = false;
        match answer {
            Ok(GroupOutcome::Granted { tokens }) => {
                let mut tokens = tokens.into_iter();
                while let Some((member, plan, attempt)) = self.open.front() {
                    let token = tokens.next().flatten();
                    let token = token.filter(|_| plan.target.kind().has_tokens());
                    let guard =
                        guard_of_grant(self.services, plan, &attempt.owner, token, sent, false)?;
                    taken.push(AcquiredMember::new(member, guard));
                    self.open.pop_front();
                }
                Ok(GroupResult::Acquired)
            }
            Ok(GroupOutcome::Busy { index, .. }) => {
                self.unsettled = None;
                Ok(GroupResult::Busy(index.min(attempts.len() - 1)))
            }
            Err(source)
                if source.kind() == BackendErrorKind::Closed
                    && source.executed() == Executed::No
                    && services.closing.is_cancelled() =>
            {
                self.unsettled = None;
                Err(LockError::ShutDown)
            }
            Err(source) => {
                if source.executed() == Executed::No {
                    self.unsettled = None;
                }
                self.late = true;
                let target = blamed(&source).unwrap_or(&attempts[0].target).clone();
                let phase = Phase::Acquire;
                Err(LockError::Backend {
                    target,
                    phase,
                    source,
                })
            }
        }
    }
}

/// The member that an error names.
fn blamed(error: &BackendError) -> Option<&LockTarget> {
    let source = std::error::Error::source(error)?;
    let other: &OtherKind = source.downcast_ref()?;
    Some(&other.asked)
}

impl Drop for GroupAttempt<'_> {
    fn drop(&mut self) {
        if self.unsettled.is_none() {
            return;
        }
        for (_, plan, attempt) in self.open.drain(..) {
            let lasts = plan.lease + self.services.call_timeout();
            let mut pending = PendingRelease::new(plan.target, attempt.owner, lasts, self.late);
            pending.release.permits = plan.permits;
            pending.release.token_retention = plan.retention;
            self.services.reap(pending);
        }
    }
}
