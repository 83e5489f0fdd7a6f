//! Histories that break one property each: it is found, counted right, and nothing else is.

use std::time::Duration;

use super::lives::{Life, assert_failed, check, check_with, fault, history, life, rules, strict};
use locktopus_history::{
    Checker, Leftovers, LostUpdates, Mode, Options, Property, SetLoss, WriteOutcome,
};

use WriteOutcome::{Accepted, Rejected, Unknown};

#[test]
fn two_holders_valid_at_once() {
    let verdict = check([
        life(1).asks(0).gets(10, 100, 1).releases(100, 101),
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
        life(1).asks(0).gets(10, 100, 1),
        life(1).attempt(1).asks(20).gets(60, 90, 2),
    ]);
    assert_failed(&verdict, &[(Property::ValidityOverlap, 1)]);
}

#[test]
fn a_writer_among_readers() {
    let verdict = check([
        life(1).mode(Mode::Shared).asks(0).gets(10, 100, None),
        life(2).mode(Mode::Shared).asks(0).gets(20, 80, None),
        life(3).asks(0).gets(70, 120, 9),
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
        life(1).asks(0).gets(10, 100, 9).uses(11, 80),
        // One comes in while the writer is there, the other one stays when the next writer comes.
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
            reader(1).asks(0).gets(10, 100, None),
            reader(2).asks(0).gets(12, 100, None),
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
    // Inside after its validity: the only way to be there together without being valid together.
    let verdict = check([
        life(1)
            .asks(0)
            .gets(10, 50, 1)
            .uses(20, 90)
            .releases(91, 92),
        life(2)
            .asks(0)
            .gets(60, 200, 2)
            .uses(70, 100)
            .releases(110, 111),
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
    // Worker 1 was killed inside. At 65 it was still there, as another record of it shows.
    let killed = || life(1).asks(0).gets(10, 50, 1).enters(20);
    let next = || {
        life(2)
            .asks(0)
            .gets(60, 200, 2)
            .uses(62, 100)
            .releases(110, 111)
    };
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
        life(1).permits(2).asks(0).gets(10, 100, None),
        life(2).permits(3).asks(0).gets(20, 90, None),
        life(3).permits(1).asks(0).gets(60, 120, None),
        life(4).permits(1).asks(0).gets(95, 99, None),
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
        life(1).permits(1).asks(0).gets(10, 50, None).uses(11, 70),
        life(2).permits(1).asks(0).gets(50, 90, None).uses(60, 80),
    ]);
    assert_failed(
        &verdict,
        &[(Property::PermitUse, 1), (Property::UseAfterEnd, 1)],
    );
    assert_eq!(verdict.permit_use.longest_ns, 10);
}

#[test]
fn a_token_granted_again() {
    let verdict = check([
        life(1).asks(0).gets(10, 100, 7).releases(20, 21),
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
        life(1).holder(5).asks(0).gets(10, 100, 7).releases(20, 21),
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
        life(1).asks(0).gets(10, 100, 9).releases(20, 21),
        life(2).asks(30).gets(40, 100, 8).releases(50, 51),
        life(3).asks(60).gets(70, 100, 10).releases(80, 81),
    ]);
    assert_failed(&verdict, &[(Property::FallingTokens, 1)]);
    assert_eq!(verdict.tokens.fall_examples[0].note, "9, then 8");
}

#[test]
fn tokens_that_fall_along_the_queue() {
    let first = || life(1).asks(0).gets(10, 100, 5).releases(20, 21);
    // It was asked for while the first one waited, or held: only the order of the grants tells.
    let second = |until| life(2).asks(5).gets(30, until, 4).releases(40, 41);
    let verdict = check([first(), second(100)]);
    assert_failed(&verdict, &[(Property::FallingTokens, 1)]);
    assert_eq!(verdict.tokens.fall_examples[0].note, "5, then 4");
    // A reply that came after its lease was over may have been on its way since before the other grant.
    assert_failed(&check([first(), second(30)]), &[]);
    // A failover may have taken the lock from the second before the first was granted it.
    let failover = fault(8, "kill-primary");
    assert_failed(&check([first(), failover, second(100)]), &[]);
    // One that was over before it asked, or came after it had the lock, took nothing from it.
    for harmless in [4, 31] {
        let verdict = check([first(), fault(harmless, "kill-primary"), second(100)]);
        assert_eq!(verdict.tokens.falls, 1, "a fault at {harmless}");
    }
}

#[test]
fn a_stale_write_accepted() {
    let stale = |worker| life(worker).asks(0).gets(10, 100, 1).releases(20, 21);
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
    // In time the two writes overlap; the resource says which came first.
    let lives = |first, second| {
        [
            life(1)
                .asks(0)
                .gets(10, 20, 1)
                .writes_nth(50, 70, 1, Accepted, first),
            life(2)
                .asks(0)
                .gets(30, 200, 2)
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
    // The second holder was given the same token, so the resource could not know better.
    let verdict = check([
        life(1).asks(0).gets(10, 20, 5).writes(60, 61, 5, Accepted),
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
        life(1).asks(0).gets(10, 20, 9).writes(12, 15, 9, Accepted),
        life(2)
            .asks(30)
            .gets(40, 200, 8)
            .writes(50, 55, 8, Rejected),
    ]);
    let expected = [(Property::FallingTokens, 1), (Property::GoodWrites, 1)];
    assert_failed(&verdict, &expected);
    assert_eq!(verdict.fenced.stale_issued, 0);
    // Nobody else was there at all.
    let verdict = check([life(1).asks(0).gets(10, 20, 9).writes(12, 15, 9, Rejected)]);
    assert_failed(&verdict, &[(Property::GoodWrites, 1)]);
}

#[test]
fn use_after_the_end_of_validity() {
    let verdict = check([
        life(1).asks(0).gets(10, 50, 1).uses(40, 70),
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
    let lives = || {
        [life(1)
            .asks(0)
            .gets(10, 500, 1)
            .enters(40)
            .loses(50, 45)
            .leaves(70)]
    };
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
        .asks(0)
        .gets(10, 500, 1)
        .enters(40)
        .releases(50, 55)
        .leaves(56)]);
    assert_failed(&verdict, &[(Property::UseAfterEnd, 1)]);
    assert_eq!(verdict.after_end.longest_ns, 6);
}

#[test]
fn extensions_when_it_is_over() {
    let cases: [Life; 4] = [
        life(1).asks(0).gets(10, 50, 1).extends(51, 100),
        life(1)
            .asks(0)
            .gets(10, 50, 1)
            .loses(30, 30)
            .extends(31, 100),
        life(1)
            .asks(0)
            .gets(10, 50, 1)
            .releases(20, 30)
            .extends(31, 100),
        life(1)
            .asks(0)
            .gets(10, 50, 1)
            .loses(30, 30)
            .observes(35, 51),
    ];
    for case in cases {
        assert_failed(&check([case]), &[(Property::ExtensionAfterEnd, 1)]);
    }
}

#[test]
fn a_late_extension_is_believed_in() {
    let verdict = check([
        life(1).asks(0).gets(10, 50, 1).extends(80, 100),
        life(2).asks(0).gets(60, 90, 2),
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
        life(1).asks(0).gets(10, 100, 1).observes(20, 5),
        life(2).asks(0).gets(15, 90, 2),
    ]);
    assert_failed(&verdict, &[(Property::ValidityOverlap, 1)]);
    assert_eq!(verdict.validity.longest_ns, 5);
}

#[test]
fn a_loss_tells_of_extensions_that_were_not_recorded() {
    let verdict = check([
        life(1).asks(0).gets(10, 50, 1).loses(95, 90),
        life(2).asks(0).gets(60, 200, 2),
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
    // Told before the end, told 30 after it, and never told.
    lives.push(life(200).lock("b").asks(0).gets(1, 50, 1).loses(40, 50));
    lives.push(life(201).lock("b").asks(0).gets(60, 90, 2).loses(120, 90));
    lives.push(
        life(202)
            .lock("b")
            .asks(0)
            .gets(130, 140, 3)
            .releases(171, 172),
    );
    // Given back in time, though the answer came after the end.
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

#[test]
fn a_fair_lock_out_of_order() {
    // 3 and 4 came when 1 and 2 were known to wait, and were granted before them. 1 was granted
    // before 2, but began before 2 was known; 5 came when nobody was left.
    let verdict = check([
        rules(None, true),
        life(1).asks(0).queued(5).gets(60, 70, 4).releases(70, 71),
        life(2).asks(1).queued(6).fails(90, Some(80)),
        life(3).asks(7).gets(40, 50, 2).releases(45, 46),
        life(4).asks(7).queued(8).gets(50, 58, 3).releases(55, 56),
        life(5).asks(81).gets(85, 95, 5),
    ]);
    assert_failed(&verdict, &[(Property::FairOrder, 2)]);
    let found = &verdict.order;
    assert_eq!(
        (found.fair_locks, found.waits, found.overtakings),
        (1, 3, 2)
    );
    assert_eq!(found.examples[0].second, Some(life(3).id()));
    assert_eq!(found.examples[1].second, Some(life(4).id()));
}

#[test]
fn readers_and_permits_out_of_order() {
    for mode in [Mode::Shared, Mode::Permits(1)] {
        let lives = |late| {
            [
                rules(Some(9), true),
                life(1).mode(mode).asks(0).queued(5).gets(late, 100, None),
                life(2).mode(mode).asks(7).gets(40, 50, None),
            ]
        };
        // Replies of grants that were given together may come in any order.
        assert_failed(&check(lives(45)), &[]);
        assert_failed(&check(lives(46)), &[(Property::FairOrder, 1)]);
    }
}

#[test]
fn things_left_behind() {
    let left = Leftovers {
        keys: vec!["lock:{a}".to_owned()],
        waiters: vec!["queue:{a} 17".to_owned(), "queue:{a} 18".to_owned()],
        tasks: Vec::new(),
    };
    let verdict = Checker::new().leftovers(left).check(&history([]));
    assert_failed(&verdict, &[(Property::Leftovers, 3)]);
    let clean = Checker::new().leftovers(Leftovers::default());
    assert!(clean.check(&history([])).passed(Property::Leftovers));
}

#[test]
fn an_outage_beyond_the_limit() {
    let options = |limit_ns| Options {
        outage_limit: Some(Duration::from_nanos(limit_ns)),
        ..strict()
    };
    let lives = || {
        [
            life(1).asks(0).gets(10, 12, 1),
            fault(20, "kill"),
            fault(25, "promote"),
            // Tries again and again, with pauses that are too short to count.
            life(2).asks(15).fails(30, None),
            life(2).attempt(1).asks(35).fails(60, None),
            life(2).attempt(2).asks(64).gets(80, 90, 2),
            fault(100, "kill"),
            // Wanted by nobody from 80 to 120.
            life(3).asks(120).gets(130, 140, 3),
        ]
    };
    let verdict = check_with(options(64), lives());
    assert_failed(&verdict, &[(Property::Outage, 1)]);
    assert_eq!((verdict.outage.longest_ns, verdict.outage.gaps), (65, 3));
    let outages: Vec<_> = verdict
        .outage
        .faults
        .iter()
        .map(|fault| fault.outage_ns)
        .collect();
    assert_eq!(outages, [Some(60), Some(55), Some(10)]);
    let kill = &verdict.outage.verbs[0];
    assert_eq!((kill.verb.as_str(), kill.outage.count), ("kill", 2));
    assert_eq!((kill.outage.p50_ns, kill.outage.max_ns), (10, 60));
    assert!(check_with(options(65), lives()).passed(Property::Outage));
}

#[test]
fn an_outage_to_the_end() {
    let options = Options {
        outage_limit: Some(Duration::from_nanos(50)),
        ..strict()
    };
    let verdict = check_with(
        options,
        [fault(10, "kill"), life(1).asks(5).fails(500, None)],
    );
    assert_failed(&verdict, &[(Property::Outage, 1)]);
    assert_eq!(verdict.outage.faults[0].outage_ns, Some(490));
}

#[test]
fn double_grants_are_blamed_on_their_fault() {
    let pair = |from: u64, worker, token| {
        [
            life(worker)
                .asks(from)
                .gets(from + 1, from + 50, token)
                .releases(from + 50, from + 51),
            life(worker + 1)
                .asks(from)
                .gets(from + 20, from + 60, token + 1),
        ]
    };
    let mut lives = vec![fault(90, "kill"), fault(190, "kill"), fault(195, "promote")];
    lives.extend(pair(100, 1, 1));
    lives.extend(pair(10, 3, 3));
    lives.push(fault(300, "kill"));
    let verdict = check(lives);
    let hits = |verb: &str| {
        let mut verbs = verdict.outage.verbs.iter();
        let effect = verbs.find(|effect| effect.verb == verb).unwrap();
        (effect.double_grants.hits, effect.double_grants.trials)
    };
    // The one at 10 was before any fault.
    assert_eq!((hits("kill"), hits("promote")), ((1, 3), (0, 1)));
    let first = &verdict.outage.faults[0];
    assert_eq!((first.double_grants, first.longest_overlap_ns), (1, 30));
    assert_eq!(verdict.validity.count, 2);
}

#[test]
fn updates_lost_despite_tokens() {
    let lost = |unchecked, checked| LostUpdates {
        unchecked: SetLoss {
            acknowledged: 100,
            lost: unchecked,
            ..SetLoss::default()
        },
        checked: SetLoss {
            acknowledged: 100,
            lost: checked,
            ..SetLoss::default()
        },
    };
    let check = |lost| Checker::new().lost_updates(lost).check(&history([]));
    assert_failed(&check(lost(9, 2)), &[(Property::LostUpdates, 2)]);
    assert!(check(lost(9, 0)).passed(Property::LostUpdates));
}

#[test]
fn every_violation_has_words() {
    let verdict = check([
        life(1).asks(0).gets(10, 100, 1),
        life(2).asks(20).gets(60, 90, 1),
    ]);
    let violations = verdict.violations();
    assert_eq!(violations.len(), 2);
    let text = verdict.to_string();
    for violation in violations {
        assert!(text.contains(&violation.text), "{text}");
        assert!(
            violation.text.contains("worker 1 attempt 0"),
            "{}",
            violation.text
        );
    }
    assert!(text.contains("validity              FAILED"), "{text}");
    let json = serde_json::to_value(&verdict).unwrap();
    assert_eq!(json["validity"]["count"], 1);
    assert_eq!(json["judgements"][1]["outcome"], "failed");
}
