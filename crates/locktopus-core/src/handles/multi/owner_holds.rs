//! Re-entry: several locks taken in the scope of an owner belong to that owner, as single ones do.
//!
//! A multi-lock does not enter a lock that the owner already holds: it could not be taken in order,
//! and taking it anew would wait for itself. The owner can enter the locks taken here again, one by
//! one.

use std::collections::HashMap;

use locktopus_contract::{LockKind, Mode};
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout_at};

use super::acquired_member::AcquiredMember;
use super::set::{Member, Unit};
use crate::engine::acquisition::Wait;
use crate::engine::error::LockError;
use crate::handles::owner_handle::{HeldByOwner, HeldKey, Owner};

/// The owner's entries for these locks, locked during the acquisition. Empty outside an owner's
/// scope.
pub(super) struct OwnerHolds {
    inside: HashMap<HeldKey, OwnedMutexGuard<HeldByOwner>>,
}

impl OwnerHolds {
    /// Locks the entries in the order of acquisition, so that two tasks of one owner do not wait
    /// for each other in a circle. `None` if only one attempt was allowed, and another task of the
    /// same owner is acquiring one of the locks.
    pub(super) async fn enter(
        units: &[Unit],
        wait: Wait,
        started: Instant,
    ) -> Result<Option<Self>, LockError> {
        let mut inside = HashMap::new();
        let Some(owner) = Owner::current() else {
            return Ok(Some(Self { inside }));
        };
        let members = units.iter().flat_map(|unit| &unit.members);
        for member in members.filter(|member| member.target.kind().mode() != Mode::Permits) {
            let cell = owner.held_cell(member.services(), &member.target);
            let entered = match wait.limit(started) {
                None => cell.lock_owned().await,
                Some(limit) => match timeout_at(limit, cell.lock_owned()).await {
                    Ok(entered) => entered,
                    Err(_) if wait == Wait::Not => return Ok(None),
                    Err(_) => return Err(LockError::out_of_time(&member.target, started)),
                },
            };
            not_held(member, &entered)?;
            inside.insert(Owner::key(member.services(), &member.target), entered);
        }
        Ok(Some(Self { inside }))
    }

    pub(super) fn entered(mut self, taken: &[AcquiredMember]) {
        for AcquiredMember { guard, .. } in taken {
            let key = Owner::key(guard.services(), guard.target());
            if let Some(inside) = self.inside.get_mut(&key) {
                inside.entered(guard);
            }
        }
    }
}

fn not_held(member: &Member, inside: &HeldByOwner) -> Result<(), LockError> {
    let target = member.target.clone();
    let kind = target.kind();
    if *kind == LockKind::Write && inside.holds(&LockKind::Read) && !inside.holds(kind) {
        return Err(LockError::UpgradeRefused { target });
    }
    if inside.is_alive() {
        return Err(LockError::NotReentrant { target });
    }
    Ok(())
}
