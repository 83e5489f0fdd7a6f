//! Stores the reason of a forced release for the owners that lose the lock.
//!
//! The reason is the note of an instance record whose id is a hash of the owner id and the lock's
//! name. So backends need no further method, and users no further right. No lock depends on it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use locktopus_contract::clock::{self, timer_in};
use locktopus_contract::{
    Announcement, BackendError, InstanceId, InstanceQuery, InstanceRecord, LockTarget,
    MAX_INSTANCES_PER_QUERY, OwnerId,
};
use tokio::time::timeout_at;

use crate::engine::error::LostCause;
use crate::engine::holding::calls;
use crate::engine::holding::lease::BackendLease;
use crate::engine::holding::services::Services;

/// How long a reason is kept. Owners of long leases ask late.
const REASON_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest delay of an error to look up the reason.
const REASON_TIMEOUT: Duration = Duration::from_millis(500);
/// The report of a loss is delayed by at most this part of the lease.
const DELAY_DIVISOR: u32 = 24;

/// Why an owner lost a lock to [`force_release`](crate::LockRequest::force_release).
///
/// ```
/// # fn tell(broken: locktopus_core::BreakReason) {
/// println!("an operator broke it: {}", broken.reason);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakReason {
    /// The reason that was given.
    pub reason: String,
    /// When, by the clock of the program that broke the lock, to the second. An owner that took the
    /// lock again since may still hold it.
    pub at: Option<SystemTime>,
}

impl Services {
    /// Stores the reason for these owners of a lock, or removes it. Failures are only logged.
    pub(crate) async fn leave_reason(
        &self,
        target: &LockTarget,
        owners: &[&OwnerId],
        reason: Option<&str>,
    ) {
        if self.backend.instances().is_none() {
            return;
        }
        let now = SystemTime::now();
        let record = reason.map(|text| InstanceRecord::new("").with_note(text).started_at(now));
        for some in owners.chunks(MAX_INSTANCES_PER_QUERY) {
            let announcements: Vec<_> = some
                .iter()
                .map(|owner| Announcement {
                    namespace: self.settings.namespace.clone(),
                    instance: self.break_note(target, owner),
                    record: record.clone(),
                    keep: REASON_TTL,
                    deadline: timer_in(self.call_timeout()),
                })
                .collect();
            let told = announcements
                .iter()
                .map(|announcement| calls::announce(&self.backend, announcement));
            for error in join_all(told).await.into_iter().filter_map(Result::err) {
                tracing::debug!(%error, "the reason of a forced release could not be left");
            }
        }
    }

    fn break_note(&self, target: &LockTarget, owner: &OwnerId) -> InstanceId {
        let name = target.name().as_str();
        // Records have a namespace of their own.
        owner.break_note(name.strip_prefix(&self.settings.namespace).unwrap_or(name))
    }

    /// The stored reasons for at most [`MAX_INSTANCES_PER_QUERY`] holds, in order.
    pub(crate) async fn reasons(
        &self,
        owners: &[(&LockTarget, &OwnerId)],
    ) -> Result<Vec<Option<BreakReason>>, BackendError> {
        if self.backend.instances().is_none() || owners.is_empty() {
            return Ok(vec![None; owners.len()]);
        }
        let query = InstanceQuery {
            namespace: self.settings.namespace.clone(),
            instances: owners
                .iter()
                .map(|(target, owner)| self.break_note(target, owner))
                .collect(),
            deadline: timer_in(self.call_timeout()),
        };
        let records = self.instances(&query).await?;
        Ok(records
            .into_iter()
            .map(|record| {
                let record = record?;
                Some(BreakReason {
                    reason: record.note()?.to_owned(),
                    at: record.started(),
                })
            })
            .collect())
    }

    /// Looks up the reasons of losses before reporting them, and gives up soon: after the time of a
    /// [first answer](Self::first_answer), a 24th of the lease, or when the lease expires. The loss
    /// itself may have been found up to a third of the lease late.
    pub(crate) async fn explain_losses(&self, losses: &mut [(Arc<BackendLease>, LostCause)]) {
        self.record_doubted.notify_one();
        let now = clock::now();
        let bounds = losses.iter().map(|(lost, _)| {
            let (lease, valid_until) = lost.length_and_validity();
            valid_until.since(now).min(lease / DELAY_DIVISOR)
        });
        let Some(bound) = bounds.min() else {
            return;
        };
        let owners: Vec<_> = losses
            .iter()
            .map(|(lost, _)| (&lost.target, &lost.owner))
            .collect();
        let reasons = self
            .reasons_within(bound.min(self.first_answer()), &owners)
            .await;
        for ((_, cause), reason) in losses.iter_mut().zip(reasons) {
            if let Some(reason) = reason {
                *cause = LostCause::Evicted { reason };
            }
        }
    }

    /// Looks up the reason if an operator may have broken the lock.
    pub(crate) async fn explain(
        &self,
        target: &LockTarget,
        owner: &OwnerId,
        cause: LostCause,
    ) -> LostCause {
        if !matches!(cause, LostCause::Missing | LostCause::TakenOver) {
            return cause;
        }
        let mut reasons = self
            .reasons_within(REASON_TIMEOUT, &[(target, owner)])
            .await;
        match reasons.pop().flatten() {
            Some(reason) => LostCause::Evicted { reason },
            None => cause,
        }
    }

    /// The stored reasons if they arrive in this time, otherwise none.
    async fn reasons_within(
        &self,
        time: Duration,
        owners: &[(&LockTarget, &OwnerId)],
    ) -> Vec<Option<String>> {
        let asked = timeout_at(timer_in(time), self.reasons(owners)).await;
        let found = asked.ok().and_then(Result::ok).unwrap_or_default();
        let texts = found.into_iter().map(|found| Some(found?.reason));
        texts.collect()
    }
}
