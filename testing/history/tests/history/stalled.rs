//! Lateness of a worker that the machine did not run is counted, but is no violation.

use std::time::Duration;

use locktopus_history::{Mode, Options, Property, Verdict};

use crate::lives::{Life, assert_failed, check_with, fault, life, rules, stall, strict};

fn with_limit(nanos: u64) -> Options {
    Options {
        use_limit: Duration::from_nanos(nanos),
        ..strict()
    }
}

/// The first holder is inside until `until`, though its validity ends at 20; the second one comes
/// at 30.
fn overrun(until: u64, more: impl IntoIterator<Item = Life>) -> Verdict {
    let lives = [
        life(1).got(10, 20, 1).uses(11, until),
        life(2).asks(5).gets(30, 100, 2).uses(31, 50),
    ];
    check_with(with_limit(5), lives.into_iter().chain(more))
}

const OVERRUN: &[(Property, u64)] = &[(Property::UseOverlap, 1), (Property::UseAfterEnd, 1)];

#[test]
fn a_holder_that_slept_through_its_end_is_excused_for_as_long_as_it_slept() {
    let found = overrun(40, []);
    assert_failed(&found, OVERRUN);
    assert_eq!(found.in_use.examples.len(), 1);
    let found = overrun(40, [stall(1, 18, 36, false)]);
    assert_failed(&found, &[]);
    // It is still counted, but not listed as an example.
    assert_eq!((found.after_end.uses, found.after_end.longest_ns), (1, 20));
    assert_eq!((found.in_use.count, found.in_use.excused), (1, 1));
    assert!(found.in_use.examples.is_empty() && found.after_end.use_examples.is_empty());
    // Awake for 6 of them.
    assert_failed(&overrun(40, [stall(1, 18, 34, false)]), OVERRUN);
    // Overlapping stalls count as one.
    let twice = [stall(1, 18, 30, false), stall(1, 20, 34, false)];
    assert_failed(&overrun(40, twice), OVERRUN);
    // Stalls of others do not matter, unless everyone waits for them.
    assert_failed(&overrun(40, [stall(2, 18, 36, false)]), OVERRUN);
    assert_failed(&overrun(40, [stall(9, 18, 36, true)]), &[]);
    // Nor does a stall before the end help.
    assert_failed(&overrun(40, [stall(1, 1, 19, false)]), OVERRUN);
}

#[test]
fn a_moment_after_the_end_is_within_the_limit() {
    let lives = |until| {
        [
            life(1).got(10, 20, 1).uses(11, until),
            life(2).asks(5).gets(22, 100, 2).uses(22, 50),
        ]
    };
    assert_failed(&check_with(with_limit(5), lives(25)), &[]);
    assert_failed(&check_with(with_limit(5), lives(26)), OVERRUN);
}

#[test]
fn validity_is_never_excused() {
    let lives = [
        life(1).got(10, 60, 1),
        life(2).asks(5).gets(30, 100, 2),
        stall(1, 0, 100, false),
        stall(9, 0, 100, true),
    ];
    let verdict = check_with(with_limit(50), lives);
    assert_failed(&verdict, &[(Property::ValidityOverlap, 1)]);
}

#[test]
fn permits_in_use_by_one_who_slept() {
    let lives = |stalled: u64| {
        let permit = |worker| life(worker).mode(Mode::Permits(1)).asks(0);
        [
            rules(Some(1), false),
            permit(1).gets(10, 20, None).uses(11, 40),
            permit(2).gets(30, 100, None).uses(31, 50),
            stall(1, 40 - stalled, 40, false),
        ]
    };
    assert_failed(&check_with(with_limit(5), lives(15)), &[]);
    let expected = [(Property::PermitUse, 1), (Property::UseAfterEnd, 1)];
    assert_failed(&check_with(with_limit(5), lives(14)), &expected);
}

#[test]
fn signals_that_a_stall_held_up() {
    let options = || Options {
        lateness_limit: Some(Duration::from_nanos(10)),
        ..strict()
    };
    let told = |more: Vec<Life>| {
        let life = life(1).got(10, 100, 1).loses(130, 100);
        check_with(options(), more.into_iter().chain([life]))
    };
    let late = [(Property::LossSignal, 1)];
    assert_failed(&told(vec![]), &late);
    assert_failed(&told(vec![stall(1, 105, 125, false)]), &[]);
    assert_failed(&told(vec![stall(1, 105, 124, false)]), &late);
    let never = |more: Vec<Life>| {
        let life = life(1).got(10, 100, 1).releases(130, 131);
        check_with(options(), more.into_iter().chain([life]))
    };
    assert_failed(&never(vec![]), &late);
    assert_failed(&never(vec![stall(1, 105, 125, false)]), &[]);
}

#[test]
fn outages_of_one_who_did_not_ask() {
    let options = || Options {
        outage_limit: Some(Duration::from_nanos(50)),
        ..strict()
    };
    let lives = |more: Vec<Life>| {
        let life = life(1).got(70, 100, 1);
        check_with(options(), more.into_iter().chain([life]))
    };
    assert_failed(&lives(vec![]), &[(Property::Outage, 1)]);
    assert_failed(&lives(vec![stall(1, 10, 30, false)]), &[]);
    assert_failed(
        &lives(vec![stall(1, 10, 29, false)]),
        &[(Property::Outage, 1)],
    );
}

/// Several want a lock without a break. The first one may have been served and gone by the time
/// that grants stop.
#[test]
fn outages_are_those_of_whoever_waits() {
    let options = || Options {
        outage_limit: Some(Duration::from_nanos(50)),
        ..strict()
    };
    // Not granted from 5 to 70, while the second one waits.
    let lives = |more: Vec<Life>| {
        let lives = [life(1).got(5, 10, 1), life(2).asks(2).gets(70, 100, 2)];
        check_with(options(), lives.into_iter().chain(more))
    };
    let outage = [(Property::Outage, 1)];
    assert_failed(&lives(vec![]), &outage);
    assert_failed(&lives(vec![stall(2, 10, 30, false)]), &[]);
    assert_failed(&lives(vec![stall(9, 10, 30, true)]), &[]);
    // The worker that was served long ago was stalled.
    assert_failed(&lives(vec![stall(1, 10, 60, false)]), &outage);
    // Two wait, and one of them is awake at a time.
    let both = |mut more: Vec<Life>| {
        more.push(life(3).asks(3).gets(140, 150, 3));
        more.push(stall(3, 80, 110, false));
        lives(more)
    };
    let in_turn = vec![stall(2, 10, 40, false), stall(3, 40, 70, false)];
    assert_failed(&both(in_turn), &outage);
    let together = vec![stall(2, 10, 30, false), stall(3, 10, 30, false)];
    assert_failed(&both(together), &[]);
}

#[test]
fn waits_in_which_a_place_may_have_been_lost() {
    let options = |recovery: Option<u64>| Options {
        stalled_waiter: Duration::from_nanos(20),
        order_recovery: recovery.map(Duration::from_nanos),
        ..strict()
    };
    // The second one is granted it before the first one, which waits from 5 to 60.
    let lives = |options, more: Vec<Life>| {
        let lives = [
            rules(None, true),
            life(1).asks(0).queued(5).gets(60, 70, 2),
            life(2).asks(7).gets(40, 50, 1),
        ];
        check_with(options, lives.into_iter().chain(more))
    };
    let overtaken = [(Property::FairOrder, 1)];
    assert_failed(&lives(options(None), vec![]), &overtaken);
    let verdict = lives(options(None), vec![stall(1, 10, 30, false)]);
    assert_failed(&verdict, &[]);
    assert_eq!((verdict.order.waits, verdict.order.disturbed), (0, 1));
    let short = vec![stall(1, 10, 29, false)];
    assert_failed(&lives(options(None), short), &overtaken);
    // Faults are an excuse only with that option, and for a while.
    let with_fault = |at, recovery| lives(options(recovery), vec![fault(at, "cut")]);
    assert_failed(&with_fault(20, None), &overtaken);
    assert_failed(&with_fault(20, Some(0)), &[]);
    assert_failed(&with_fault(60, Some(0)), &overtaken);
    assert_failed(&with_fault(3, Some(1)), &overtaken);
    assert_failed(&with_fault(3, Some(2)), &[]);
}

#[test]
fn a_place_that_was_lost_before_its_waiter_read_that_it_has_it() {
    let options = Options {
        stalled_waiter: Duration::from_nanos(20),
        ..strict()
    };
    // The second one requests it after the first one knew that it was in the queue, and is granted
    // it before.
    let lives = |stalled| {
        let lives = [
            rules(None, true),
            life(1).asks(0).queued(26).gets(60, 70, 2),
            life(2).asks(30).gets(40, 50, 1),
            stalled,
        ];
        check_with(options.clone(), lives)
    };
    assert_failed(&lives(stall(1, 2, 22, false)), &[]);
    assert_failed(&lives(stall(1, 2, 21, false)), &[(Property::FairOrder, 1)]);
}
