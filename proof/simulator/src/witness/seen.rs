//! What a server looked like before or after a script.

use std::collections::BTreeSet;

use locktopus_model::layout::{Holder, Layout, Mode, Owner, Waiter};
use locktopus_model::redis::Server;

use super::true_time;

/// How much later than at its beginning a script may read the clock, in µs.
pub(super) const SCRIPT: i64 = 10_000;

/// One lock on one server.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) holders: Vec<Holder>,
    pub(super) waiters: Vec<Waiter>,
    /// Who stands in line without a record and a deadline: a server that lost data has lost them.
    pub(super) bare: Vec<Owner>,
    /// The free permits of a semaphore.
    pub(super) free: Option<i64>,
    pub(super) listening: BTreeSet<Vec<u8>>,
    /// It is left to those who cannot queue.
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

    /// Those whose time is not over.
    pub(super) fn live(&self) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(|holder| !holder.over)
    }

    pub(super) fn holder(&self, owner: &Owner, mode: Mode) -> Option<&Holder> {
        self.live()
            .find(|holder| holder.owner == *owner && holder.mode == mode)
    }

    /// The same hold as one that was seen before.
    pub(super) fn same(&self, holder: &Holder) -> Option<&Holder> {
        self.holder(&holder.owner, holder.mode)
    }

    /// Whether somebody holds, in whichever way.
    pub(super) fn holds(&self, owner: &Owner) -> bool {
        self.live().any(|holder| holder.owner == *owner)
    }

    /// Whether somebody is written down, though perhaps their time is over.
    pub(super) fn is_written(&self, owner: &Owner) -> bool {
        self.holders.iter().any(|holder| holder.owner == *owner)
    }

    /// Until when somebody holds in true time, if they do: one who writes and reads holds twice.
    pub(super) fn keeps(&self, owner: &Owner, server_to_true: i64) -> Option<u64> {
        let own = self.live().filter(|holder| holder.owner == *owner);
        let ends = own.map(|holder| holder.expires_at);
        ends.map(|end| end.map_or(u64::MAX, |end| true_time(end, server_to_true)))
            .max()
    }

    /// How many are written down whose time is over.
    pub(super) fn over(&self) -> usize {
        self.holders.iter().filter(|holder| holder.over).count()
    }

    pub(super) fn waiter(&self, owner: &Owner) -> Option<&Waiter> {
        self.waiters.iter().find(|waiter| waiter.owner == *owner)
    }

    /// Whether somebody stands in line twice.
    pub(super) fn waits_twice(&self, owner: &Owner) -> bool {
        let places = self.waiters.iter().filter(|it| it.owner == *owner);
        places.count() > 1
    }

    /// Whether this waiter is certainly alive and listens. A script's clock may go on while it
    /// runs. A waiter that is set aside hears nothing until it asks again.
    pub(super) fn is_ready(&self, waiter: &Waiter) -> bool {
        let alive = waiter.alive_until > self.micros + SCRIPT;
        alive && !waiter.aside && self.listening.contains(&waiter.inbox)
    }

    /// Whether somebody could hold beside those who do.
    pub(super) fn has_room(&self, mode: Mode, permits: i64) -> bool {
        match self.free {
            Some(free) => free >= permits,
            // Nobody has given a number yet.
            None if mode == Mode::Permits => false,
            None => {
                let mut holders = self.holders.iter();
                holders.all(|holder| holder.mode.shares_with(mode))
            }
        }
    }

    /// Whether this waiter wants more permits than there are, free or held.
    pub(super) fn is_hopeless(&self, waiter: &Waiter) -> bool {
        waiter.mode == Mode::Permits && self.permits().is_some_and(|all| waiter.permits > all)
    }

    /// All permits there are, given or not.
    pub(super) fn permits(&self) -> Option<i64> {
        let held: i64 = self.holders.iter().map(|holder| holder.permits).sum();
        self.free.map(|free| free + held)
    }
}
