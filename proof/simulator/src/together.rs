//! Two locks taken together.

use locktopus_core::{LockError, MultiLock, SafetyMode};

use crate::asking::{busy, within};
use crate::held::Held;
use crate::pace::millis;
use crate::plan::{Act, Wait};
use crate::task::Task;

impl Task {
    pub(crate) async fn take_both(
        &self,
        act: &Act,
        also: usize,
    ) -> Result<Option<Held>, LockError> {
        self.log.count("group");
        let group = MultiLock::new()
            .add(self.request(act.lock))
            .add(self.request(also));
        let group = match act.fixed_lease {
            Some(lease) => group.fixed_lease(millis(lease.max(self.least_lease()))),
            None => group,
        };
        match act.wait {
            Wait::Try => Ok(group.try_acquire().await?.map(Held::Several)),
            Wait::Forever => Ok(Some(Held::Several(group.acquire().await?))),
            Wait::AtMost(most) => busy(
                group
                    .wait_at_most(millis(most))
                    .acquire()
                    .await
                    .map(Held::Several),
            ),
            Wait::Dropped(after) => within(after, group.acquire())
                .await
                .map(|held| held.map(Held::Several)),
        }
    }

    /// The shortest lease with which a quorum, or a server that waits for replicas, can hold a
    /// group of locks; with a shorter one, only luck decides. A quorum takes two rounds to agree on
    /// each lock and a third to extend it, which is two for a server that does not know the script.
    /// Waiting for replicas doubles each round.
    fn least_lease(&self) -> u64 {
        let rounds = match (self.plan.quorum, self.plan.safety) {
            (Some(_), _) => 4,
            (None, SafetyMode::Replicated { .. }) => 2 * 4,
            (None, _) => 0,
        };
        // There and back, at the usual maximum.
        rounds * 2 * 3 * self.plan.travel
    }
}
