//! Mistakes of clients.

use crate::sim::rules::Flaw;

pub(super) const FLAWS: &[(&str, Flaw)] = &[
    (
        "validity of a grant counts from its answer",
        Flaw::ValidFromAnswer,
    ),
    (
        "validity of a renewal counts from its answer",
        Flaw::RenewedFromAnswer,
    ),
    ("validity is the whole lease", Flaw::NoMargin),
    (
        "a pushed grant is valid from its arrival",
        Flaw::ValidFromPush,
    ),
    (
        "a pushed grant is believed whatever its token",
        Flaw::OldPush,
    ),
    (
        "an answer is believed after its call's time",
        Flaw::LateAnswer,
    ),
    (
        "the lock is believed in until it is known to be lost",
        Flaw::NeverExpires,
    ),
    ("a cancelled attempt is not given back", Flaw::NeverCancels),
    ("a background release is not repeated", Flaw::CancelsOnce),
    ("no second look for a late attempt", Flaw::NoSecondLook),
    ("a dropped guard gives nothing back", Flaw::DropsNothing),
    ("no look after subscribing", Flaw::NoLookAfterSubscribing),
    ("no look after messages may be lost", Flaw::NoResync),
    (
        "a place is kept for less than a heartbeat",
        Flaw::ShortPlace,
    ),
    ("an owner id is used again", Flaw::SameOwner),
    ("no heartbeats in the queue", Flaw::NoHeartbeat),
    (
        "a kept lease is handed out after its end",
        Flaw::KeepsExpired,
    ),
    (
        "a kept lease is handed out with its old token",
        Flaw::KeepsToken,
    ),
    ("a lease is kept although others want it", Flaw::KeepsWanted),
];
