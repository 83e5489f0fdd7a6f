//! Tokens that do not grow, and writes that tokens should have kept out or let in.

use WriteOutcome::{Accepted, Rejected, Unknown};
use locktopus_history::{Property, WriteOutcome};

use crate::lives::{assert_failed, check, fault, life};

#[test]
fn a_token_granted_again() {
    let verdict = check([
        life(1).got(10, 100, 7).releases(20, 21),
        life(2).asks(30).gets(40, 100, 7).releases(50, 51),
        life(3).asks(60).gets(70, 100, 7).releases(80, 81),
        life(4).asks(60).gets(85, 100, 8).releases(90, 91),
    ]);
    assert_failed(&verdict, &[(Property::DuplicateTokens, 2)]);
    assert_eq!(verdict.tokens.checked, 4);
    assert_eq!(
        verdict.tokens.duplicate_examples[0].second,
        Some(life(2).id())
    );
}

#[test]
fn a_holder_who_left_may_not_come_back_with_the_same_token() {
    let verdict = check([
        life(1).holder(5).got(10, 100, 7).releases(20, 21),
        life(1)
            .attempt(1)
            .holder(5)
            .asks(30)
            .gets(40, 100, 7)
            .releases(50, 51),
    ]);
    assert_failed(&verdict, &[(Property::DuplicateTokens, 1)]);
}

#[test]
fn tokens_that_fall() {
    let verdict = check([
        life(1).got(10, 100, 9).releases(20, 21),
        life(2).asks(30).gets(40, 100, 8).releases(50, 51),
        life(3).asks(60).gets(70, 100, 10).releases(80, 81),
    ]);
    assert_failed(&verdict, &[(Property::FallingTokens, 1)]);
    assert_eq!(verdict.tokens.fall_examples[0].note, "9, then 8");
}

#[test]
fn tokens_that_fall_along_the_queue() {
    let first = || life(1).got(10, 100, 5).releases(20, 21);
    // It was requested while the first one waited, or held: only the order of the grants tells.
    let second = |until| life(2).asks(5).gets(30, until, 4).releases(40, 41);
    let verdict = check([first(), second(100)]);
    assert_failed(&verdict, &[(Property::FallingTokens, 1)]);
    assert_eq!(verdict.tokens.fall_examples[0].note, "5, then 4");
    // A reply that came after the end of its lease may be from before the other grant.
    assert_failed(&check([first(), second(30)]), &[]);
    // A failover may have taken the lock from the second before the first was granted it.
    let failover = fault(8, "kill-primary");
    assert_failed(&check([first(), failover, second(100)]), &[]);
    // A fault before its request, or after its grant was received, took nothing from it.
    for harmless in [4, 31] {
        let verdict = check([first(), fault(harmless, "kill-primary"), second(100)]);
        assert_eq!(verdict.tokens.falls, 1, "a fault at {harmless}");
    }
}

#[test]
fn a_stale_write_accepted() {
    let stale = |worker| life(worker).got(10, 100, 1).releases(20, 21);
    let verdict = check([
        stale(1)
            .writes(60, 61, 1, Accepted)
            .writes(62, 63, 1, Rejected)
            .writes(64, 65, 1, Unknown)
            .closes(300),
        life(2)
            .asks(30)
            .gets(40, 200, 2)
            .writes(50, 55, 2, Accepted)
            .releases(200, 201)
            .closes(300),
    ]);
    assert_failed(&verdict, &[(Property::StaleWrites, 1)]);
    let found = &verdict.fenced;
    assert_eq!(
        (found.stale_issued, found.stale_caught, found.stale_missed),
        (3, 1, 1)
    );
    assert_eq!((found.writes, found.accepted), (4, 2));
    assert_eq!((found.rejected, found.unknown), (1, 1));
    assert_eq!(found.missed_examples[0].at_ns, 60);
}

#[test]
fn a_stale_write_accepted_by_the_resources_own_count() {
    // The two writes overlap in time; the resource says which came first.
    let lives = |first, second| {
        [
            life(1)
                .got(10, 20, 1)
                .writes_nth(50, 70, 1, Accepted, first),
            life(2)
                .got(30, 200, 2)
                .writes_nth(50, 70, 2, Accepted, second),
        ]
    };
    assert_failed(&check(lives(Some(1), Some(2))), &[]);
    assert_failed(&check(lives(None, None)), &[]);
    let verdict = check(lives(Some(2), Some(1)));
    assert_failed(&verdict, &[(Property::StaleWrites, 1)]);
}

#[test]
fn a_stale_write_that_its_token_does_not_show() {
    // The second holder has the same token, so the resource could not tell them apart.
    let verdict = check([
        life(1).got(10, 20, 5).writes(60, 61, 5, Accepted),
        life(2)
            .asks(30)
            .gets(40, 200, 5)
            .writes(50, 55, 5, Accepted),
    ]);
    let expected = [(Property::DuplicateTokens, 1), (Property::StaleWrites, 1)];
    assert_failed(&verdict, &expected);
}

#[test]
fn a_good_write_rejected() {
    // Tokens fell: the resource saw 9 and refuses the 8 of the later holder.
    let verdict = check([
        life(1).got(10, 20, 9).writes(12, 15, 9, Accepted),
        life(2)
            .asks(30)
            .gets(40, 200, 8)
            .writes(50, 55, 8, Rejected),
    ]);
    let expected = [(Property::FallingTokens, 1), (Property::GoodWrites, 1)];
    assert_failed(&verdict, &expected);
    assert_eq!(verdict.fenced.stale_issued, 0);
    // There was no other holder at all.
    let verdict = check([life(1).got(10, 20, 9).writes(12, 15, 9, Rejected)]);
    assert_failed(&verdict, &[(Property::GoodWrites, 1)]);
}
