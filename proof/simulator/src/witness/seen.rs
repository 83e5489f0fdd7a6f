//! The state of a lock on a server, before or after a script.

use std::collections::BTreeSet;

use locktopus_model::layout::{Holder, Layout, Mode, Owner, Waiter};
use locktopus_model::redis::Server;

use super::true_time;

/// How long after its start a script may read the clock, in µs.
pub(super) const SCRIPT: i64 = 10_000;

/// One lock on one server.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) holders: Vec<Holder>,
    pub(super) waiters: Vec<Waiter>,
    /// Owners in line without a record and a deadline, which a server that lost data has lost.
    pub(super) bare: Vec<Owner>,
    /// The free permits of a semaphore.
    pub(super) free: Option<i64>,
    pub(super) listening: BTreeSet<Vec<u8>>,
    /// It is left to clients that cannot queue.
    pub(super) open: bool,
    /// The server's clock in µs.
    pub(super) micros: i64,
}

impl Seen {
    pub(super) fn of(layout: &Layout, server: &Server) -> Self {
        let waiters = layout.waiters(server);
        let listens = |inbox: &Vec<u8>| {
            [false, true].into_iter().any(|sharded| {
                let count = server.listeners.get(&(sharded, inbox.clone()));
                count.is_some_and(|count| *count > 0)
            })
        };
        let inboxes = waiters.iter().map(|waiter| &waiter.inbox);
        Self {
            holders: layout.holders(server),
            listening: inboxes.filter(|inbox| listens(inbox)).cloned().collect(),
            waiters,
            bare: layout.bare_places(server),
            free: layout.free(server),
            open: layout.is_open(server),
            micros: server.clock,
        }
    }

    /// The holders whose leases have not expired.
    pub(super) fn live(&self) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(|holder| !holder.over)
    }

    pub(super) fn holder(&self, owner: &Owner, mode: Mode) -> Option<&Holder> {
        self.live()
            .find(|holder| holder.owner == *owner && holder.mode == mode)
    }

    /// The same hold as one seen before.
    pub(super) fn same(&self, holder: &Holder) -> Option<&Holder> {
        self.holder(&holder.owner, holder.mode)
    }

    /// Whether this owner holds, in any mode.
    pub(super) fn holds(&self, owner: &Owner) -> bool {
        self.live().any(|holder| holder.owner == *owner)
    }

    /// Whether this owner is stored as a holder, even if its lease has expired.
    pub(super) fn is_written(&self, owner: &Owner) -> bool {
        self.holders.iter().any(|holder| holder.owner == *owner)
    }

    /// Until when this owner holds, in true time. A writer that also reads holds twice.
    pub(super) fn keeps(&self, owner: &Owner, server_to_true: i64) -> Option<u64> {
        let own = self.live().filter(|holder| holder.owner == *owner);
        let ends = own.map(|holder| holder.expires_at);
        ends.map(|end| end.map_or(u64::MAX, |end| true_time(end, server_to_true)))
            .max()
    }

    /// How many stored holders have expired.
    pub(super) fn over(&self) -> usize {
        self.holders.iter().filter(|holder| holder.over).count()
    }

    pub(super) fn waiter(&self, owner: &Owner) -> Option<&Waiter> {
        self.waiters.iter().find(|waiter| waiter.owner == *owner)
    }

    /// Whether this owner stands in line twice.
    pub(super) fn waits_twice(&self, owner: &Owner) -> bool {
        let places = self.waiters.iter().filter(|it| it.owner == *owner);
        places.count() > 1
    }

    /// Whether this waiter is certainly alive and listens, even if the clock advances while a
    /// script runs. A waiter that is set aside hears nothing until it asks again.
    pub(super) fn is_ready(&self, waiter: &Waiter) -> bool {
        let alive = waiter.alive_until > self.micros + SCRIPT;
        alive && !waiter.aside && self.listening.contains(&waiter.inbox)
    }

    /// Whether another holder fits beside the current ones.
    pub(super) fn has_room(&self, mode: Mode, permits: i64) -> bool {
        match self.free {
            Some(free) => free >= permits,
            // The semaphore has no number yet.
            None if mode == Mode::Permits => false,
            None => {
                let mut holders = self.holders.iter();
                holders.all(|holder| holder.mode.shares_with(mode))
            }
        }
    }

    /// Whether this waiter wants more permits than exist, free or held.
    pub(super) fn is_hopeless(&self, waiter: &Waiter) -> bool {
        waiter.mode == Mode::Permits && self.permits().is_some_and(|all| waiter.permits > all)
    }

    /// All permits, free or held.
    pub(super) fn permits(&self) -> Option<i64> {
        let held: i64 = self.holders.iter().map(|holder| holder.permits).sum();
        self.free.map(|free| free + held)
    }
}
