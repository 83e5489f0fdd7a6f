//! Actions and beliefs after the end, and late signals of losses.

use std::time::Duration;

use locktopus_history::{Options, Property};

use crate::lives::{Life, assert_failed, check, check_with, life, strict};

#[test]
fn use_after_the_end_of_validity() {
    let verdict = check([
        life(1).got(10, 50, 1).uses(40, 70),
        life(2)
            .asks(60)
            .gets(100, 200, 2)
            .uses(110, 115)
            .uses(190, 201),
    ]);
    assert_failed(&verdict, &[(Property::UseAfterEnd, 2)]);
    let found = &verdict.after_end;
    assert_eq!(
        (found.longest_ns, found.total_ns, found.grants),
        (20, 21, 2)
    );
}

#[test]
fn use_after_the_signal_of_a_loss() {
    let lives = || [life(1).got(10, 500, 1).enters(40).loses(50, 45).leaves(70)];
    assert_failed(&check(lives()), &[(Property::UseAfterEnd, 1)]);
    let reaction = |ns| Options {
        reaction: Duration::from_nanos(ns),
        ..strict()
    };
    assert_failed(
        &check_with(reaction(19), lives()),
        &[(Property::UseAfterEnd, 1)],
    );
    assert_failed(&check_with(reaction(20), lives()), &[]);
}

#[test]
fn use_after_the_release() {
    let verdict = check([life(1)
        .got(10, 500, 1)
        .enters(40)
        .releases(50, 55)
        .leaves(56)]);
    assert_failed(&verdict, &[(Property::UseAfterEnd, 1)]);
    assert_eq!(verdict.after_end.longest_ns, 6);
}

#[test]
fn extensions_when_it_is_over() {
    let cases: [Life; 4] = [
        life(1).got(10, 50, 1).extends(51, 100),
        life(1).got(10, 50, 1).loses(30, 30).extends(31, 100),
        life(1).got(10, 50, 1).releases(20, 30).extends(31, 100),
        life(1).got(10, 50, 1).loses(30, 30).observes(35, 51),
    ];
    for case in cases {
        assert_failed(&check([case]), &[(Property::ExtensionAfterEnd, 1)]);
    }
}

#[test]
fn a_late_extension_is_believed_in() {
    let verdict = check([
        life(1).got(10, 50, 1).extends(80, 100),
        life(2).got(60, 90, 2),
    ]);
    let expected = [
        (Property::ValidityOverlap, 1),
        (Property::ExtensionAfterEnd, 1),
    ];
    assert_failed(&verdict, &expected);
    assert_eq!(verdict.validity.longest_ns, 10);
}

#[test]
fn a_validity_that_shrinks_was_believed_in_until_then() {
    let verdict = check([
        life(1).got(10, 100, 1).observes(20, 5),
        life(2).got(15, 90, 2),
    ]);
    assert_failed(&verdict, &[(Property::ValidityOverlap, 1)]);
    assert_eq!(verdict.validity.longest_ns, 5);
}

#[test]
fn a_loss_tells_of_extensions_that_were_not_recorded() {
    let verdict = check([
        life(1).got(10, 50, 1).loses(95, 90),
        life(2).got(60, 200, 2),
    ]);
    assert_failed(&verdict, &[(Property::ValidityOverlap, 1)]);
    assert_eq!(verdict.validity.longest_ns, 30);
}

#[test]
fn losses_signalled_late_or_never() {
    let options = |limit_ns| Options {
        lateness_limit: Some(Duration::from_nanos(limit_ns)),
        ..strict()
    };
    let mut lives: Vec<Life> = (0..100)
        .map(|n| {
            let from = u64::from(n) * 100;
            life(n)
                .asks(from)
                .gets(from + 1, from + 50, u64::from(n))
                .loses(from + 55, from + 50)
        })
        .collect();
    // Signalled before the end, 30 after it, and never.
    lives.push(life(200).lock("b").got(1, 50, 1).loses(40, 50));
    lives.push(life(201).lock("b").got(60, 90, 2).loses(120, 90));
    lives.push(life(202).lock("b").got(130, 140, 3).releases(171, 172));
    // Released in time, though the answer came after the end.
    let in_time = life(203).lock("b").asks(180).gets(190, 200, 4);
    lives.push(in_time.releases(195, 250));
    let verdict = check_with(options(5), lives);
    assert_failed(&verdict, &[(Property::LossSignal, 2)]);
    let found = &verdict.loss_signal;
    assert_eq!((found.late, found.unsignalled, found.early), (1, 1, 1));
    let lateness = found.lateness;
    assert_eq!((lateness.count, lateness.p50_ns), (102, 5));
    assert_eq!((lateness.p99_ns, lateness.max_ns), (5, 30));
    assert_eq!(found.examples[0].first, life(202).id());
}
