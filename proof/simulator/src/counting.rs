//! Acts that change the number of a semaphore, and acts that inspect locks.

use locktopus_core::{LockError, Semaphore};
use tokio::time::sleep;

use crate::pace::millis;
use crate::plan::{Act, Count, Fault, Kind};
use crate::task::Task;

impl Task {
    /// Inspects who holds a lock.
    pub(crate) async fn inspect(&self, act: &Act) -> Result<(), LockError> {
        let lock = &self.plan.locks[act.lock];
        let name = lock.name.as_str();
        match lock.kind {
            Kind::ReadWrite => self.locks.rw_lock(name).inspect().await.map(drop)?,
            Kind::Semaphore(_) => self.locks.semaphore(name).inspect().await.map(drop)?,
            Kind::Permits(_) => {
                let semaphore = self.locks.permit_semaphore(name);
                semaphore.inspect().await?;
                semaphore.available().await.map(drop)?;
            }
            Kind::Latch => self.locks.latch(name).count().await.map(drop)?,
            _ => self.request(act.lock).inspect().await.map(drop)?,
        }
        self.log.count("inspect");
        Ok(())
    }

    /// Whether the act may change a number: only if no fault removes the process that has to
    /// restore it.
    pub(crate) fn is_counted(&self, act: &Act) -> bool {
        let stays = |fault: &Fault| fault.forgets() || matches!(fault, Fault::Die(_));
        let all_stay = !self.plan.faults.iter().any(|(_, fault)| stays(fault));
        // The permits of another library's semaphore have no known holders.
        let known = self.plan.processes.iter().all(|process| !process.neighbour);
        let kind = self.plan.locks[act.lock].kind;
        all_stay && known && matches!(kind, Kind::Semaphore(_) | Kind::Permits(_))
    }

    /// Changes the number of a semaphore for a while.
    pub(crate) async fn count(&self, act: &Act, count: Count) -> Result<(), LockError> {
        let lock = &self.plan.locks[act.lock];
        let (semaphore, total) = match lock.kind {
            Kind::Semaphore(total) => (self.locks.semaphore(lock.name.as_str()), total),
            Kind::Permits(total) => (self.locks.permit_semaphore(lock.name.as_str()), total),
            _ => return Ok(()),
        };
        semaphore.initialise(total).await?;
        let changed = match count {
            Count::Fewer => {
                self.log.count("fewer permits");
                semaphore.resize(total - 1).await.map(drop)
            }
            Count::Drain => {
                self.log.count("permits drained");
                semaphore.drain().await.map(drop)
            }
            Count::Delete => self.delete(act.lock, &semaphore).await,
        };
        if changed.is_ok() {
            let from = self.pace.now();
            sleep(millis(act.hold)).await;
            // Others wait for the permits it took, as for a holder.
            self.log.worked(from, self.pace.now());
        }
        // Restored even after an error: the other tasks count on the number.
        while let Err(error) = self.restore(&semaphore, total).await {
            if stays_another(&error) {
                break;
            }
            sleep(millis(50)).await;
        }
        changed
    }

    async fn restore(&self, semaphore: &Semaphore, total: u32) -> Result<(), LockError> {
        semaphore.initialise(total).await?;
        semaphore.resize(total).await.map(drop)
    }

    /// Takes all permits away from their holders.
    async fn delete(&self, lock: usize, semaphore: &Semaphore) -> Result<(), LockError> {
        self.log.count("semaphore deleted");
        let begun = self.pace.now();
        if semaphore.delete().await? {
            self.note_eviction(lock, begun);
        }
        Ok(())
    }
}

/// Whether the name now has a number of another kind, which stays: waiters for this kind get the
/// same error. A held lock ends, so only numbers count here.
fn stays_another(error: &LockError) -> bool {
    error
        .other_kind()
        .is_some_and(|other| matches!(other.found.as_str(), "semaphore" | "permit_semaphore"))
}
