//! One node.

use super::rules::{DRIFT, LEASE, Rules};
use super::state::Node;

/// The clock of a restarted server, compared with the right time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offset {
    /// As far behind as [`Rules::clocks_agree`] allows.
    Behind,
    /// The right time.
    None,
    /// Above any token that was given.
    Ahead,
}

impl Node {
    /// Its server is back, with or without its data. A fast clock counts more time than passes.
    pub(super) fn restart(&mut self, fast: bool, lost: Option<(Offset, u8)>) {
        self.up = if fast { DRIFT } else { 0 };
        if let Some((offset, right_time)) = lost {
            self.hold = None;
            self.behind = offset == Offset::Behind;
            self.token = match offset {
                Offset::Behind => 0,
                Offset::None => right_time,
                Offset::Ahead => right_time + 1,
            };
        }
    }

    /// Runs before an attempt: by now the node's clock is above the token of the last holder.
    pub(super) fn read_clock(&mut self, rules: Rules, last: u8) {
        if self.behind && self.hold.is_none() && rules.clocks_agree {
            self.token = self.token.max(last);
        }
    }

    /// Whether it votes (`judge` in `eligibility.rs`) in a round that started `age` ago. Without
    /// `same_node` a client asks only before the call, and misses a later restart.
    pub(super) fn votes(&self, rules: Rules, age: u8) -> bool {
        self.up >= LEASE || !rules.restarted_wait || !rules.same_node && self.up <= age
    }

    /// `lua/acquire.lua`: the token, or nothing if another owner holds it. The node's clock may
    /// make the lease shorter.
    pub(super) fn acquire(
        &mut self,
        owner: u8,
        floor: u8,
        (tokens, lease): (bool, u8),
    ) -> Option<u8> {
        match &mut self.hold {
            Some((holder, left)) if *holder == owner => {
                // `reserved` in `lua/part/token.lua`: the same token again, raised to the floor at
                // most.
                *left = (*left).max(lease);
                self.token = self.token.max(floor);
            }
            Some(_) => return None,
            None => {
                if tokens {
                    self.token = (self.token + 1).max(floor);
                }
                self.hold = Some((owner, lease));
            }
        }
        Some(self.token)
    }

    /// `lua/release.lua`.
    pub(super) fn release(&mut self, owner: u8) {
        self.hold.take_if(|(holder, _)| *holder == owner);
    }
}
