//! What an act does to the number of a semaphore, and looks at locks.

use locktopus_core::{LockError, Semaphore};
use tokio::time::sleep;

use crate::pace::millis;
use crate::plan::{Act, Count, Fault, Kind};
use crate::task::Task;

impl Task {
    /// Looks who holds a lock.
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

    /// Whether the act is about a number, and nobody can be gone who would have to set it right.
    pub(crate) fn is_counted(&self, act: &Act) -> bool {
        let stays = |fault: &Fault| fault.forgets() || matches!(fault, Fault::Die(_));
        let all_stay = !self.plan.faults.iter().any(|(_, fault)| stays(fault));
        // Nobody knows who of another library has how many.
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
            // Others wait for what it took, as for a holder.
            self.log.worked(from, self.pace.now());
        }
        // Whatever became of that: the others count on it.
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

    /// All permits are taken away from their holders.
    async fn delete(&self, lock: usize, semaphore: &Semaphore) -> Result<(), LockError> {
        self.log.count("semaphore deleted");
        let begun = self.pace.now();
        if semaphore.delete().await? {
            self.note_eviction(lock, begun);
        }
        Ok(())
    }
}

/// Whether the name was given a number of another kind meanwhile, which stays: whoever still waits
/// for this kind is told so as well. Locks end, and whoever did not ask in between still waits.
fn stays_another(error: &LockError) -> bool {
    error
        .other_kind()
        .is_some_and(|other| matches!(other.found.as_str(), "semaphore" | "permit_semaphore"))
}
