//! The scripts, as far as a lock with one holder and a queue needs them.

use super::rules::{CALL, LEASE, PLACE, Rules};
use super::state::{Hold, Inbox, Place, State, What};

impl State {
    /// `lua/acquire.lua` with `part/wait_if_blocked.lua`.
    pub(super) fn acquire(&mut self, rules: Rules, owner: u8, newcomer: bool, age: u8) -> What {
        if rules.refuse_late && age > CALL {
            return What::TooLate;
        }
        match &mut self.server.holder {
            Some(hold) if hold.owner == owner => {
                hold.left = LEASE; // `extend_hold`; never shorter, because all leases are alike
                return What::Granted {
                    token: self.server.token,
                };
            }
            Some(_) => return self.enter(owner, newcomer),
            None => {}
        }
        if self.first(0).is_some() && !self.hand_off(rules, Some(owner)) {
            return self.enter(owner, newcomer);
        }
        self.grant(owner)
    }

    /// `lua/release.lua`, and the fast path `part/fast_head.lua` with `part/fast_publish.lua`,
    /// which has the same effect.
    pub(super) fn release(&mut self, rules: Rules, owner: u8) {
        let released = self
            .server
            .holder
            .take_if(|hold| hold.owner == owner)
            .is_some();
        let left = !released && self.leave(owner);
        if released || left && self.server.holder.is_none() {
            self.hand_off(rules, None);
        }
    }

    /// `hand_off` in `lua/part/hand_off.lua`. Returns whether the caller may have the lock because
    /// no waiter got it.
    fn hand_off(&mut self, rules: Rules, caller: Option<u8>) -> bool {
        let mut skip = 0;
        while let Some(owner) = self.first(skip) {
            if Some(owner) == caller {
                return true;
            }
            let heard_at = self.clients[usize::from(owner)].inbox;
            if !rules.publish_last {
                // As decided in 0012, before 0019: the token first, and withdrawn if there were no
                // listeners.
                let token = self.server.token + 1;
                self.publish(owner, |via| What::Token { token, via });
                if heard_at == Inbox::Primary {
                    self.grant(owner);
                    return false;
                }
                self.server.token += 1;
            } else if !rules.count_listeners || heard_at == Inbox::Primary {
                let What::Granted { token } = self.grant(owner) else {
                    return false;
                };
                self.publish(owner, |via| What::Token { token, via });
                return false;
            } else {
                self.publish(owner, |via| What::PassedOver { via });
            }
            skip += 1;
        }
        true
    }

    /// `first` in `lua/part/queue.lua`: the first live waiter, after `skip` of them. Removes the
    /// dead ones before it.
    fn first(&mut self, skip: usize) -> Option<u8> {
        while let Some(place) = self.server.queue.get(skip) {
            if place.left > 0 {
                return Some(place.owner);
            }
            self.server.queue.remove(skip);
        }
        None
    }

    /// `enter` in `lua/part/enter.lua`, and the answer of `wait` in `part/wait_if_blocked.lua`.
    fn enter(&mut self, owner: u8, newcomer: bool) -> What {
        let own = |place: &&mut Place| place.owner == owner;
        match self.server.queue.iter_mut().find(own) {
            Some(place) => place.left = PLACE,
            None => self.server.queue.push(Place { owner, left: PLACE }),
        }
        let fence = if newcomer { 0 } else { self.server.token };
        What::Queued { fence }
    }

    fn leave(&mut self, owner: u8) -> bool {
        let before = self.server.queue.len();
        self.server.queue.retain(|place| place.owner != owner);
        self.server.queue.len() < before
    }

    /// `reserve`, `leave` and `take`.
    fn grant(&mut self, owner: u8) -> What {
        self.server.token += 1;
        self.leave(owner);
        self.server.holder = Some(Hold { owner, left: LEASE });
        What::Granted {
            token: self.server.token,
        }
    }

    /// Every subscriber hears it, through the replica too.
    fn publish(&mut self, owner: u8, word: impl Fn(Inbox) -> What) {
        let via = self.clients[usize::from(owner)].inbox;
        if via != Inbox::Nowhere {
            self.send(owner, word(via));
        }
    }
}
