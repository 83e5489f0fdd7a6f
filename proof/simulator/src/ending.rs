//! The half-way step of an act with its hold: extend it, take it once more, pass it on by ticket,
//! downgrade it, or write under it.

use locktopus_core::LockError;
use locktopus_protocol::GuardedOutcome;

use crate::held::Held;
use crate::log::Written;
use crate::pace::millis;
use crate::plan::{Act, End, Kind};
use crate::task::Task;

impl Task {
    /// Does the half-way step of the act, and returns the hold to continue with.
    pub(crate) async fn half_way(
        &self,
        act: &Act,
        held: Held,
        holds: Vec<usize>,
    ) -> Result<(Held, Vec<usize>), LockError> {
        let held = match act.end {
            End::Extend => {
                self.log.count("extend");
                let lease = act.fixed_lease.unwrap_or(self.plan.lease);
                // The next validity check shows the result.
                let _ = held.extend(millis(lease)).await;
                held
            }
            End::Again => {
                if let Some(again) = held.again() {
                    self.log.count("taken again");
                    self.is_valid(&again, &holds);
                    // The first guard continues.
                    let _ = again.release().await;
                }
                held
            }
            End::Ticket => self.by_ticket(act, held, &holds).await?,
            End::Downgrade => return Ok(self.downgrade(act, held, holds).await),
            End::Write => {
                self.write(act, &held).await;
                held
            }
            _ => held,
        };
        Ok((held, holds))
    }

    /// Turns the hold into a ticket, and adopts it again.
    async fn by_ticket(&self, act: &Act, held: Held, holds: &[usize]) -> Result<Held, LockError> {
        let simple = matches!(
            self.plan.locks[act.lock].kind,
            Kind::Lock | Kind::Fair | Kind::Mutex | Kind::SingleKey | Kind::RedisPy
        );
        if !simple {
            return Ok(held);
        }
        let ticket = match held.into_ticket() {
            Ok(ticket) => ticket,
            Err(held) => return Ok(held),
        };
        self.log.count("ticket");
        let adopted = self.request(act.lock).adopt(&ticket).await;
        if adopted.is_err() {
            self.ended(holds);
        }
        match adopted {
            Ok(guard) => Ok(Held::One(guard)),
            // It ended on the way.
            Err(LockError::Lost { .. }) => Ok(Held::Gone),
            // No answer: the rest ends with its lease.
            Err(error) => Err(error),
        }
    }

    async fn downgrade(&self, act: &Act, held: Held, holds: Vec<usize>) -> (Held, Vec<usize>) {
        if !matches!(held, Held::Writing(_)) {
            return (held, holds);
        }
        // From now on others may read.
        let held = match held.downgrade().await {
            Ok(held) => held,
            Err(Some(held)) => return (held, holds),
            Err(None) => return (Held::Gone, holds),
        };
        self.log.count("read on");
        self.ended(&holds);
        let reading = Act {
            exclusive: false,
            ..act.clone()
        };
        // The answer may arrive after the lease has ended. The hold is not noted then, since its
        // holder does not believe in it.
        if !held.is_valid() {
            self.log.count("told that it is lost");
            return (held, Vec::new());
        }
        let now = self.pace.now();
        let place = self.note(&reading, act.lock, &held, now);
        (held, vec![place])
    }

    /// Writes data that the lock protects. The server must refuse it after a later holder has
    /// written.
    async fn write(&self, act: &Act, held: &Held) {
        let (Some(writer), Some(fence)) = (&self.writer, held.fence()) else {
            return;
        };
        let name = &self.plan.locks[act.lock].name;
        let key = format!("data:{{{}}}", name.replace(['{', '}'], ""));
        let begun = self.pace.now();
        match writer.set(&fence, key.as_bytes(), b"it").await {
            Ok(GuardedOutcome::Written) => {
                self.log.count("written");
                let written = Written {
                    lock: act.lock,
                    token: fence.token().get(),
                    begun,
                    done: self.pace.now(),
                };
                self.log.with(|notes| notes.written.push(written));
            }
            Ok(_) => self.log.count("not written"),
            // It may have been written.
            Err(_) => {}
        }
    }
}
