//! Histories without a violation, however close.

use super::lives::{Life, assert_failed, check, check_with, fault, life, rules};
use locktopus_history::{Mode, Options, Property, WriteOutcome};

use WriteOutcome::{Accepted, Rejected, Unknown};

#[track_caller]
fn fine(lives: impl IntoIterator<Item = Life>, proven: &[Property]) {
    let verdict = check(lives);
    assert_failed(&verdict, &[]);
    for &property in proven {
        assert!(
            verdict.passed(property),
            "{property} was not judged:\n{verdict}"
        );
    }
}

#[test]
fn nothing_at_all_proves_nothing() {
    let verdict = check([]);
    assert_failed(&verdict, &[]);
    assert!(
        Property::ALL
            .iter()
            .all(|&property| !verdict.passed(property))
    );
}

#[test]
fn one_after_the_other_without_a_gap() {
    fine(
        [
            life(1).got(10, 100, 1).uses(11, 20).releases(20, 21),
            life(2).got(20, 50, 2).uses(20, 50).releases(50, 52),
            life(3).got(50, 90, 3).uses(50, 60).releases(61, 62),
        ],
        &[
            Property::WellFormed,
            Property::ValidityOverlap,
            Property::UseOverlap,
            Property::DuplicateTokens,
            Property::FallingTokens,
            Property::UseAfterEnd,
        ],
    );
}

#[test]
fn entering_again() {
    let again = |worker, attempt| life(worker).attempt(attempt).holder(7);
    fine(
        [
            again(1, 0)
                .got(10, 100, 5)
                .enters(11)
                .leaves(90)
                .releases(90, 91),
            again(1, 1)
                .asks(20)
                .gets(30, 100, 5)
                .uses(31, 40)
                .releases(40, 41),
            // In another worker, beyond the first one's validity, after an extension.
            again(2, 0)
                .asks(60)
                .gets(70, 150, 5)
                .uses(80, 120)
                .releases(140, 141),
            // The first one has left by now, but not the holder.
            again(2, 1).asks(110).gets(120, 200, 5).releases(125, 126),
            life(3).asks(20).gets(140, 200, 6).uses(141, 150),
        ],
        &[
            Property::ValidityOverlap,
            Property::UseOverlap,
            Property::DuplicateTokens,
        ],
    );
}

#[test]
fn readers_together_and_a_writer_after_them() {
    let reader = |worker| life(worker).mode(Mode::Shared).asks(0);
    fine(
        [
            reader(1).gets(10, 100, None).uses(10, 60).releases(60, 61),
            reader(2).gets(12, 100, None).uses(13, 55).releases(70, 71),
            life(3)
                .asks(5)
                .gets(70, 200, 1)
                .uses(71, 80)
                .releases(80, 81),
            // Downgrade: the writer reads before it releases.
            life(4)
                .holder(1)
                .asks(5)
                .gets(90, 200, 2)
                .uses(91, 120)
                .releases(120, 121),
            life(4)
                .attempt(1)
                .holder(1)
                .mode(Mode::Shared)
                .asks(95)
                .gets(96, 200, None),
            reader(5).gets(130, 200, None).uses(131, 140),
        ],
        &[Property::ValidityOverlap, Property::UseOverlap],
    );
}

#[test]
fn permits_at_the_limit() {
    fine(
        [
            rules(Some(3), false),
            life(1)
                .permits(2)
                .got(10, 100, None)
                .uses(11, 40)
                .releases(40, 41),
            life(2)
                .permits(1)
                .got(12, 90, None)
                .uses(13, 80)
                .releases(80, 81),
            life(3)
                .permits(2)
                .got(40, 90, None)
                .uses(41, 80)
                .releases(90, 91),
        ],
        &[Property::PermitValidity, Property::PermitUse],
    );
}

#[test]
fn unknown_ends_stay_open() {
    fine(
        [
            // Killed inside, in a release, and while waiting.
            life(1).got(10, 30, 1).enters(11),
            life(2)
                .asks(31)
                .gets(40, 300, 2)
                .uses(41, 50)
                .begins_release(60),
            life(3).asks(5),
            life(4)
                .asks(5)
                .gets(70, 100, 3)
                .uses(71, 80)
                .releases(80, 81)
                .closes(200),
        ],
        &[
            Property::ValidityOverlap,
            Property::UseOverlap,
            Property::WellFormed,
        ],
    );
    let verdict = check([life(1).got(10, 30, 1).enters(11), life(3).asks(5)]);
    assert_eq!(
        (verdict.facts.open_attempts, verdict.facts.open_uses),
        (1, 1)
    );
}

#[test]
fn an_early_loss_makes_room() {
    fine(
        [
            life(1).got(10, 100, 1).uses(11, 20).loses(30, 30),
            life(2).got(31, 60, 2).uses(31, 40).releases(50, 51),
        ],
        &[Property::ValidityOverlap, Property::UseAfterEnd],
    );
}

#[test]
fn extensions_in_time() {
    fine(
        [
            life(1)
                .got(10, 50, 1)
                .enters(11)
                .extends(50, 90)
                .extends(80, 130)
                // A watchdog extended it meanwhile, at an unknown time.
                .observes(140, 180)
                .leaves(170)
                .begins_release(175)
                // One more was on its way.
                .extends(176, 300)
                .ends_release(177),
            life(2).got(175, 300, 2).uses(176, 180),
        ],
        &[
            Property::ValidityOverlap,
            Property::UseAfterEnd,
            Property::ExtensionAfterEnd,
        ],
    );
}

#[test]
fn a_lost_guard_may_state_its_old_end() {
    fine(
        [life(1)
            .got(10, 50, 1)
            .uses(11, 20)
            .loses(30, 30)
            .observes(35, 50)],
        &[Property::ExtensionAfterEnd, Property::UseAfterEnd],
    );
}

#[test]
fn a_loss_tells_of_extensions_as_well() {
    // The watchdog had extended it to 90 before it was lost.
    let verdict = check([life(1).got(10, 50, 1).uses(20, 85).loses(90, 90)]);
    assert_failed(&verdict, &[]);
    assert_eq!(verdict.loss_signal.lateness.max_ns, 0);
    assert_eq!(verdict.loss_signal.unsignalled, 0);
}

#[test]
fn grants_at_the_same_time_have_no_order() {
    // 2 was requested before 1 was received, and its reply was late: its smaller token proves
    // nothing.
    fine(
        [life(1).got(10, 15, 9), life(2).asks(10).gets(20, 20, 8)],
        &[Property::FallingTokens],
    );
}

/// Two primaries at once, with a microsecond between their grants: the replies came in the other
/// order.
#[test]
fn where_no_exclusion_is_promised_only_requests_order_tokens() {
    let replies_crossed = || [life(1).got(10, 100, 9), life(2).asks(5).gets(20, 100, 8)];
    let strict = check(replies_crossed());
    assert_eq!((strict.tokens.falls, strict.tokens.unordered), (1, 0));
    let lax = check_with(lax(), replies_crossed());
    assert_eq!(
        (lax.tokens.falls, lax.tokens.unordered),
        (0, 1),
        "measured, not hidden"
    );
    assert!(lax.passed(Property::FallingTokens));
    assert_eq!(lax.tokens.unordered_examples.len(), 1);
}

/// A second grant with the same or a smaller token, requested this many milliseconds after the
/// first was received.
fn later(millis: u64, token: u64) -> [Life; 2] {
    const MS: u64 = 1_000_000;
    let asked = 10 + millis * MS;
    [
        life(1).got(10, 9_000 * MS, 9),
        life(2).asks(asked).gets(asked + 10, 9_000 * MS, token),
    ]
}

#[test]
fn a_token_smaller_than_one_received_before_is_a_fault_in_every_mode() {
    let verdict = check_with(lax(), later(1_001, 8));
    assert_eq!((verdict.tokens.falls, verdict.tokens.unordered), (1, 0));
    assert!(!verdict.passed(Property::FallingTokens));
    // It may have been passed on inside a process, with a token that was reserved before.
    let verdict = check_with(lax(), later(999, 8));
    assert_eq!((verdict.tokens.falls, verdict.tokens.unordered), (0, 1));
}

/// Two primaries may give one token: the blocks that they reserve overlap.
#[test]
fn a_token_given_again_later_is_a_fault_in_every_mode() {
    let verdict = check_with(lax(), later(1_001, 9));
    assert_eq!(
        (verdict.tokens.duplicates, verdict.tokens.unordered),
        (1, 0)
    );
    let verdict = check_with(lax(), later(999, 9));
    assert_eq!(
        (verdict.tokens.duplicates, verdict.tokens.unordered),
        (0, 1)
    );
    let verdict = check(later(999, 9));
    assert_eq!(
        (verdict.tokens.duplicates, verdict.tokens.unordered),
        (1, 0)
    );
}

/// The write of a grant this many milliseconds later is refused. Its token is smaller than one that
/// had written.
fn refused_later(millis: u64) -> [Life; 2] {
    let [first, second] = later(millis, 8);
    let asked = 10 + millis * 1_000_000;
    [
        first.writes(12, 15, 9, WriteOutcome::Accepted),
        second.writes(asked + 20, asked + 25, 8, WriteOutcome::Rejected),
    ]
}

/// The resource's decisions are judged like the tokens: it had to refuse a lock that was passed on
/// with an earlier token.
#[test]
fn a_good_write_refused_for_its_smaller_token_is_a_fault_in_every_mode() {
    let verdict = check_with(lax(), refused_later(1_001));
    assert_eq!(verdict.fenced.good_rejected, 1);
    assert!(!verdict.passed(Property::GoodWrites));
    let verdict = check_with(lax(), refused_later(999));
    assert_eq!(verdict.fenced.good_rejected, 0);
    assert_eq!(verdict.tokens.unordered, 1, "measured, not hidden");
    let verdict = check(refused_later(999));
    assert_eq!(verdict.fenced.good_rejected, 1);
}

fn lax() -> Options {
    Options {
        exclusive: false,
        ..Options::default()
    }
}

#[test]
fn tokens_of_readers_order_nothing() {
    let reader = |worker| life(worker).mode(Mode::Shared);
    fine(
        [
            reader(1).got(10, 15, 9),
            reader(2).asks(20).gets(25, 30, 9),
            reader(3).asks(40).gets(45, 50, 3),
        ],
        &[Property::ValidityOverlap],
    );
}

#[test]
fn tokens_are_counted_for_each_lock() {
    fine(
        [
            life(1).got(10, 100, 9),
            life(2).lock("b").asks(20).gets(30, 100, 9),
            life(3).lock("c").asks(40).gets(50, 100, 3),
        ],
        &[
            Property::DuplicateTokens,
            Property::FallingTokens,
            Property::ValidityOverlap,
        ],
    );
}

#[test]
fn stale_writes_that_are_caught() {
    fine(
        [
            life(1)
                .got(10, 20, 1)
                .writes(12, 13, 1, Accepted)
                // No later holder has written yet.
                .writes(44, 45, 1, Accepted)
                // At the same time as the other's first write: either may come first.
                .writes(50, 60, 1, Rejected)
                .writes(70, 71, 1, Rejected),
            life(2)
                .asks(30)
                .gets(40, 200, 2)
                .writes(50, 55, 2, Accepted)
                .writes(80, 90, 2, Accepted),
        ],
        &[Property::StaleWrites, Property::GoodWrites],
    );
}

#[test]
fn a_refusal_is_right_if_a_killed_holder_may_have_written() {
    let early = || life(1).got(10, 20, 1).writes(60, 65, 1, Rejected);
    let later = || life(2).asks(30).gets(40, 200, 2);
    fine([early(), later()], &[Property::GoodWrites]);
    fine(
        [early(), later().writes(50, 99, 2, Unknown)],
        &[Property::GoodWrites],
    );
    // It says that it did not.
    let verdict = check([early(), later().closes(300)]);
    assert_failed(&verdict, &[(Property::GoodWrites, 1)]);
}

#[test]
fn order_that_cannot_be_known() {
    let waiting = || life(1).asks(0).queued(5);
    let fair = || rules(None, true);
    let overtaker = |asked| life(2).asks(asked).gets(40, 45, 2);
    // It started before the other was known to wait.
    fine(
        [fair(), waiting().gets(50, 60, 3), overtaker(5)],
        &[Property::FairOrder],
    );
    // It is unknown how long the other still waited.
    let verdict = check([fair(), waiting().fails(50, None), overtaker(6)]);
    assert_failed(&verdict, &[]);
    fine(
        [fair(), waiting().fails(50, Some(40)), overtaker(6)],
        &[Property::FairOrder],
    );
    // By its token it was granted first, and a failover took the lock from it; its reply was late.
    let failover = fault(30, "kill-primary");
    fine(
        [fair(), waiting().gets(50, 60, 1), failover, overtaker(6)],
        &[Property::FairOrder],
    );
    // It took a new place, after a failover lost the queue.
    fine(
        [fair(), waiting().queued(8).gets(50, 60, 3), overtaker(7)],
        &[Property::FairOrder],
    );
    // It slept until its grant had ended; the time of the grant is unknown.
    let verdict = check([fair(), waiting().gets(50, 45, 3), overtaker(6)]);
    assert_failed(&verdict, &[]);
    // It was killed while it waited.
    let verdict = check([fair(), waiting(), overtaker(6)]);
    assert_failed(&verdict, &[]);
    // Fairness was not declared.
    let verdict = check([waiting().gets(50, 60, 3), overtaker(6)]);
    assert_failed(&verdict, &[]);
}

#[test]
fn entering_again_overtakes_nobody() {
    fine(
        [
            rules(None, true),
            life(1).holder(3).got(10, 100, 1).releases(60, 61),
            life(2).asks(12).queued(15).gets(60, 100, 2),
            life(1)
                .attempt(1)
                .holder(3)
                .asks(20)
                .gets(30, 100, 1)
                .releases(50, 51),
        ],
        &[Property::FairOrder, Property::ValidityOverlap],
    );
}

#[test]
fn a_grant_that_came_too_late_is_nobodys() {
    // Stopped between the reply and the record; meanwhile the next one had it.
    let verdict = check([
        life(1).got(100, 50, 1),
        life(2).got(60, 200, 2).uses(61, 120).releases(150, 151),
    ]);
    assert_failed(&verdict, &[]);
    assert_eq!(verdict.facts.spent, 1);
}
