//! The runs of quarantine.

use super::{Case, visit};
use crate::explore::Outcome;
use crate::quarantine::{Bounds, Quarantine, Rules, Wait};

const NAME: &str = "quarantine";
const RULES: Rules = Rules::SHIPPED;
const ONE: &str = "at most one client believes";

fn run(rules: Rules, clients: u8, failovers: u8) -> Outcome {
    visit(Quarantine::new(rules, Bounds { clients, failovers }))
}

pub(super) const CASES: &[Case] = &[
    Case::shipped(NAME, "2 clients, 2 failovers or restarts", || {
        run(RULES, 2, 2)
    }),
    Case::shipped(NAME, "2 clients, 3 failovers or restarts", || {
        run(RULES, 2, 3)
    })
    .long(),
    without!(wait: Wait::Nobody, "a wait after a failover (mode plain has none)", ONE,
        "2 clients, 1 failover", run(2, 1)),
    without!(wait: Wait::ServerTooShort, "the wait lasts for the longest lease", ONE,
        "2 clients, 1 failover", run(2, 1)),
    without!(wait: Wait::Client, "the server waits, not each client", ONE, "2 clients, 1 failover",
        run(2, 1)),
    without!(ids_are_new: false, "an id never returns", ONE, "2 clients, 2 failovers", run(2, 2)),
    without!(vouches_for_this: false, "a client vouches only for this history", ONE,
        "2 clients, 1 failover", run(2, 1)),
    without!(epochs_tell: false, "epochs show a primary that was promoted again", ONE,
        "2 clients, 2 failovers", run(2, 2)),
    without!(longest_is_longest: false, "no lease is longer than the longest", ONE,
        "2 clients, 1 failover", run(2, 1)),
    without!(old_primary_stops: false, "a replaced primary grants nothing", ONE,
        "2 clients, 1 failover", run(2, 1)),
];
