//! One node.

use super::rules::{LEASE, Rules};
use super::state::Node;

impl Node {
    /// Whether it votes (`judge` in `eligibility.rs`) in a round that began `age` ago. Who asks only before the call does not
    /// see that it was restarted since.
    pub(super) fn votes(&self, rules: Rules, age: u8) -> bool {
        self.up >= LEASE || !rules.restarted_wait || !rules.same_node && self.up <= age
    }

    /// `lua/acquire.lua`: the token, or nothing if somebody else holds it. The node's clock may make the lease shorter.
    pub(super) fn acquire(
        &mut self,
        owner: u8,
        floor: u8,
        (tokens, lease): (bool, u8),
    ) -> Option<u8> {
        match &mut self.hold {
            Some((holder, left)) if *holder == owner => {
                // `reserved` in `lua/part/token.lua`: the same token again, raised to the floor and to nothing above it.
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
