//! The runs of the quorum.

use super::{Case, visit};
use crate::explore::Outcome;
use crate::quorum::{Bounds, Quorum, Rules};

const NAME: &str = "quorum";
const RULES: Rules = Rules::SHIPPED;
const ONE: &str = "at most one client believes";
const GROW: &str = "tokens grow";
const LEFT: &str = "a client that left leaves nothing";
/// Three nodes, a restart, slow answers, no tokens.
const THREE: Bounds = Bounds {
    nodes: 3,
    clients: 2,
    restarts: 1,
    tokens: false,
    slow_answers: true,
    drops: true,
};
/// Three nodes with tokens, answers at once.
const TOKENS: Bounds = Bounds {
    restarts: 0,
    tokens: true,
    slow_answers: false,
    drops: false,
    ..THREE
};
/// Five nodes, answers at once.
const FIVE: Bounds = Bounds {
    nodes: 5,
    slow_answers: false,
    drops: false,
    ..THREE
};

fn run(rules: Rules, bounds: Bounds) -> Outcome {
    visit(Quorum::new(rules, bounds))
}

pub(super) const CASES: &[Case] = &[
    Case::shipped(
        NAME,
        "3 nodes, 2 clients, a restart, answers that take time, rounds dropped",
        || run(RULES, THREE),
    )
    .cannot(&["wrote back"]),
    Case::shipped(NAME, "3 nodes, 2 clients, tokens, a restart", || {
        run(
            RULES,
            Bounds {
                restarts: 1,
                ..TOKENS
            },
        )
    })
    .cannot(&["Hear", "Drop"]),
    Case::shipped(NAME, "5 nodes, 2 clients", || {
        run(
            RULES,
            Bounds {
                restarts: 0,
                ..FIVE
            },
        )
    })
    .cannot(&["Hear", "Drop", "Restart", "wrote back"]),
    Case::shipped(NAME, "5 nodes, 2 clients, a restart", || run(RULES, FIVE))
        .cannot(&["Hear", "Drop", "wrote back"])
        .long(),
    without!(majority: false, "more than half agree", ONE,
        "5 nodes, 2 clients", run(FIVE)),
    without!(validity_from_sending: false, "validity counts from sending", ONE,
        "3 nodes, 2 clients", run(THREE)),
    without!(margin: false, "validity is shorter than the lease by the drift", ONE,
        "3 nodes, 2 clients", run(THREE)),
    without!(restarted_wait: false, "a restarted node waits before it votes", ONE,
        "3 nodes, 2 clients, a restart", run(THREE)),
    without!(same_node: false,
        "an answer counts only if the node did not restart", ONE,
        "3 nodes, 2 clients, a restart", run(THREE)),
    without!(clocks_agree: false,
        "clocks differ by less than the time between two holders", GROW,
        "3 nodes, 2 clients, tokens, a restart", run(Bounds { restarts: 1, ..TOKENS })),
    without!(write_back: false, "tokens are written back to a majority", GROW,
        "3 nodes, 3 clients, tokens", run(Bounds { clients: 3, ..TOKENS })),
    without!(refuse_late: false, "late attempts are refused", LEFT,
        "3 nodes, 2 clients", run(THREE)),
    without!(failed_rounds_give_back: false, "failed rounds give back", LEFT,
        "3 nodes, 2 clients", run(THREE)),
];
