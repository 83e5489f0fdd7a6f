//! The runs of the hand-off.

use super::{Case, visit};
use crate::explore::Outcome;
use crate::hand_off::{Bounds, Faults, HandOff, Rules};

const NAME: &str = "hand-off";
const RULES: Rules = Rules::SHIPPED;
/// No faults, futures dropped, waits counted.
const PLAIN: Bounds = Bounds {
    clients: 3,
    faults: 0,
    sort: Faults::Any,
    drops: true,
    waits: true,
};

fn run(rules: Rules, bounds: Bounds) -> Outcome {
    visit(HandOff::new(rules, bounds))
}

const fn faults(clients: u8, faults: u8, sort: Faults) -> Bounds {
    Bounds {
        clients,
        faults,
        sort,
        ..PLAIN
    }
}

const fn only_safety(bounds: Bounds) -> Bounds {
    Bounds {
        drops: false,
        waits: false,
        ..bounds
    }
}

const HOLDER: &str = "the server agrees for at least as long";
const LEFT: &str = "a client that left leaves nothing";
const WAITS: &str = "no client waits for a free lock";
const NO_FAULTS: &[&str] = &[
    "SubscribeAtReplica",
    "Lose",
    "Double",
    "Disconnect",
    "Crash",
    "CrashSilently",
];

pub(super) const CASES: &[Case] = &[
    Case::shipped(NAME, "3 clients, no faults, futures dropped", || {
        run(RULES, PLAIN)
    })
    .cannot(NO_FAULTS),
    Case::shipped(
        NAME,
        "2 clients, 2 faults of any sort, futures dropped",
        || run(RULES, faults(2, 2, Faults::Any)),
    ),
    Case::shipped(NAME, "3 clients, a subscription fault", || {
        run(RULES, only_safety(faults(3, 1, Faults::Subscriptions)))
    })
    .cannot(&["Drop", "Lose", "Double", "Crash", "CrashSilently"]),
    Case::shipped(NAME, "3 clients, a process that ends", || {
        let bounds = faults(3, 1, Faults::Crashes);
        run(
            RULES,
            Bounds {
                drops: false,
                ..bounds
            },
        )
    })
    .cannot(&["SubscribeAtReplica", "Drop", "Lose", "Double", "Disconnect"]),
    Case::shipped(NAME, "3 clients, a message lost, late or doubled", || {
        run(RULES, only_safety(faults(3, 1, Faults::Messages)))
    })
    .cannot(&[
        "SubscribeAtReplica",
        "Drop",
        "Disconnect",
        "Crash",
        "CrashSilently",
    ]),
    without!(publish_last: false, "a grant is published last", HOLDER,
        "3 clients, a subscription fault",
        run(only_safety(faults(3, 1, Faults::Subscriptions)))),
    without!(count_listeners: false, "listeners are counted first", WAITS,
        "3 clients, a process that ends",
        run(Bounds { drops: false, ..faults(3, 1, Faults::Crashes) })),
    without!(token_above_fence: false, "a pushed token is newer than the last answer", HOLDER,
        "3 clients, 2 messages lost, late or doubled",
        run(only_safety(faults(3, 2, Faults::Messages)))),
    without!(validity_from_sending: false, "validity counts from sending", HOLDER,
        "3 clients, no faults", run(only_safety(PLAIN))),
    without!(look_after_subscribing: false, "subscribe, then try again", WAITS,
        "2 clients, no faults, futures dropped", run(Bounds { clients: 2, ..PLAIN })),
    without!(heartbeats: false, "waiters poll", WAITS,
        "2 clients, a process that ends, futures dropped", run(faults(2, 1, Faults::Crashes))),
    without!(refuse_late: false, "late attempts are refused", LEFT,
        "2 clients, a message lost, late or doubled, futures dropped",
        run(faults(2, 1, Faults::Messages))),
    without!(release_twice: false, "a release is repeated if an attempt may still arrive", LEFT,
        "2 clients, no faults, futures dropped", run(Bounds { clients: 2, ..PLAIN })),
];
