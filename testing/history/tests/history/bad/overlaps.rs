//! Two holders at once, or more permits than exist.

use locktopus_history::{Mode, Property};

use crate::lives::{assert_failed, check, fault, life, rules};

#[test]
fn two_holders_valid_at_once() {
    let verdict = check([
        life(1).got(10, 100, 1).releases(100, 101),
        life(2).asks(20).gets(60, 90, 2).releases(90, 91),
        life(3).asks(20).gets(95, 200, 3).releases(150, 151),
    ]);
    assert_failed(&verdict, &[(Property::ValidityOverlap, 2)]);
    let found = &verdict.validity;
    assert_eq!((found.longest_ns, found.total_ns), (30, 35));
    assert_eq!(found.checked, 3);
    let first = &found.examples[0];
    assert_eq!((first.at_ns, first.length_ns), (60, 30));
    assert_eq!(
        (first.first, first.second),
        (life(1).id(), Some(life(2).id()))
    );
    assert_eq!(found.examples[1].length_ns, 5);
}

#[test]
fn a_worker_granted_twice_without_entering_again() {
    let verdict = check([
        life(1).got(10, 100, 1),
        life(1).attempt(1).asks(20).gets(60, 90, 2),
    ]);
    assert_failed(&verdict, &[(Property::ValidityOverlap, 1)]);
}

#[test]
fn a_writer_among_readers() {
    let verdict = check([
        life(1).mode(Mode::Shared).got(10, 100, None),
        life(2).mode(Mode::Shared).got(20, 80, None),
        life(3).got(70, 120, 9),
    ]);
    assert_failed(&verdict, &[(Property::ValidityOverlap, 2)]);
    assert_eq!(
        (verdict.validity.longest_ns, verdict.validity.total_ns),
        (30, 30)
    );
}

#[test]
fn readers_beside_a_writer() {
    let reader = |worker| life(worker).mode(Mode::Shared).asks(0);
    let verdict = check([
        life(1).got(10, 100, 9).uses(11, 80),
        // One enters during the writer, the other one stays when the next writer comes.
        reader(2).gets(90, 120, None).uses(91, 100),
        reader(3).gets(100, 150, None).uses(101, 145),
        life(4).asks(105).gets(140, 200, 10).uses(141, 160),
    ]);
    assert_failed(
        &verdict,
        &[(Property::ValidityOverlap, 2), (Property::UseOverlap, 1)],
    );
    assert_eq!(
        (verdict.validity.longest_ns, verdict.in_use.longest_ns),
        (10, 4)
    );
    assert_eq!(verdict.validity.checked, 4);
}

#[test]
fn readers_after_a_failover_are_no_double_grant_and_a_writer_is() {
    let doubles = |mode, token| {
        let reader = |worker| life(worker).mode(Mode::Shared);
        let verdict = check([
            reader(1).got(10, 100, None),
            reader(2).got(12, 100, None),
            fault(20, "kill-primary"),
            life(3).mode(mode).asks(25).gets(40, 100, token),
        ]);
        let doubles = verdict.outage.faults[0].double_grants;
        (doubles, verdict.validity.count)
    };
    assert_eq!(doubles(Mode::Shared, None), (0, 0));
    assert_eq!(doubles(Mode::Exclusive, Some(7)), (1, 2));
}

#[test]
fn two_holders_inside_at_once() {
    // Inside after its validity: the only way for two uses to overlap when the validities do not.
    let verdict = check([
        life(1).got(10, 50, 1).uses(20, 90).releases(91, 92),
        life(2).got(60, 200, 2).uses(70, 100).releases(110, 111),
    ]);
    let expected = [(Property::UseOverlap, 1), (Property::UseAfterEnd, 1)];
    assert_failed(&verdict, &expected);
    assert_eq!(
        (verdict.in_use.longest_ns, verdict.in_use.total_ns),
        (20, 20)
    );
    assert_eq!(verdict.after_end.longest_ns, 40);
}

#[test]
fn an_unfinished_use_counts_as_far_as_it_is_certain() {
    // Worker 1 was killed inside. At 65 it was still alive, as another record of it shows.
    let killed = || life(1).got(10, 50, 1).enters(20);
    let next = || life(2).got(60, 200, 2).uses(62, 100).releases(110, 111);
    let alive = life(1).attempt(1).lock("b").asks(65);
    let verdict = check([killed(), alive, next()]);
    assert_failed(
        &verdict,
        &[(Property::UseOverlap, 1), (Property::UseAfterEnd, 1)],
    );
    assert_eq!(verdict.in_use.longest_ns, 3);
    assert_failed(&check([killed(), next()]), &[]);
}

#[test]
fn more_permits_valid_than_there_are() {
    let verdict = check([
        rules(Some(5), false),
        fault(50, "kill"),
        life(1).permits(2).got(10, 100, None),
        life(2).permits(3).got(20, 90, None),
        life(3).permits(1).got(60, 120, None),
        life(4).permits(1).got(95, 99, None),
    ]);
    assert_failed(&verdict, &[(Property::PermitValidity, 1)]);
    let found = &verdict.permit_validity;
    assert_eq!(
        (found.longest_ns, found.total_ns, found.checked),
        (30, 30, 4)
    );
    assert_eq!(found.examples[0].first, life(3).id());
    let kill = &verdict.outage.faults[0];
    assert_eq!((kill.double_grants, kill.longest_overlap_ns), (1, 30));
}

#[test]
fn more_permits_in_use_than_there_are() {
    let verdict = check([
        rules(Some(1), false),
        life(1).permits(1).got(10, 50, None).uses(11, 70),
        life(2).permits(1).got(50, 90, None).uses(60, 80),
    ]);
    assert_failed(
        &verdict,
        &[(Property::PermitUse, 1), (Property::UseAfterEnd, 1)],
    );
    assert_eq!(verdict.permit_use.longest_ns, 10);
}
