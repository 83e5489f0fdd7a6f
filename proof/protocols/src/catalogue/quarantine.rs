//! The runs of quarantine.

use super::{Case, visit};
use crate::explore::Outcome;
use crate::quarantine::{Bounds, Quarantine, Rules, Wait};

const NAME: &str = "quarantine";
const RULES: Rules = Rules::SHIPPED;
const ONE: &str = "one client at most believes";

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
    Case::without(
        NAME,
        ("anybody waits (mode plain)", ONE),
        "2 clients, 1 failover",
        || {
            run(
                Rules {
                    wait: Wait::Nobody,
                    ..RULES
                },
                2,
                1,
            )
        },
    ),
    Case::without(
        NAME,
        ("the wait is the longest lease", ONE),
        "2 clients, 1 failover",
        || {
            run(
                Rules {
                    wait: Wait::ServerTooShort,
                    ..RULES
                },
                2,
                1,
            )
        },
    ),
    Case::without(
        NAME,
        ("the server waits, not each client", ONE),
        "2 clients, 1 failover",
        || {
            run(
                Rules {
                    wait: Wait::Client,
                    ..RULES
                },
                2,
                1,
            )
        },
    ),
    Case::without(
        NAME,
        ("an id never returns", ONE),
        "2 clients, 2 failovers",
        || {
            run(
                Rules {
                    ids_are_new: false,
                    ..RULES
                },
                2,
                2,
            )
        },
    ),
    Case::without(
        NAME,
        ("a client's word is about this history", ONE),
        "2 clients, 1 failover",
        || {
            run(
                Rules {
                    vouches_for_this: false,
                    ..RULES
                },
                2,
                1,
            )
        },
    ),
    Case::without(
        NAME,
        ("epochs tell who was promoted again", ONE),
        "2 clients, 2 failovers",
        || {
            run(
                Rules {
                    epochs_tell: false,
                    ..RULES
                },
                2,
                2,
            )
        },
    ),
    Case::without(
        NAME,
        ("no lease is longer than the longest", ONE),
        "2 clients, 1 failover",
        || {
            run(
                Rules {
                    longest_is_longest: false,
                    ..RULES
                },
                2,
                1,
            )
        },
    ),
    Case::without(
        NAME,
        ("a replaced primary grants nothing", ONE),
        "2 clients, 1 failover",
        || {
            run(
                Rules {
                    old_primary_stops: false,
                    ..RULES
                },
                2,
                1,
            )
        },
    ),
];
