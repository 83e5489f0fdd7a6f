//! Order, leftovers, outages and lost updates; and the words of violations.

use std::time::Duration;

use locktopus_history::{Checker, Leftovers, LostUpdates, Mode, Options, Property, SetLoss};

use crate::lives::{assert_failed, check, check_with, fault, history, life, rules, strict};

#[test]
fn a_fair_lock_out_of_order() {
    // 3 and 4 came when 1 and 2 were known to wait, and were granted before them. 1 was granted
    // before 2, but started before 2 was known; 5 came when no one was left.
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
        // Replies of grants that coexist may come in any order.
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
            life(1).got(10, 12, 1),
            fault(20, "kill"),
            fault(25, "promote"),
            // Tries again and again, with pauses that are too short to count.
            life(2).asks(15).fails(30, None),
            life(2).attempt(1).asks(35).fails(60, None),
            life(2).attempt(2).asks(64).gets(80, 90, 2),
            fault(100, "kill"),
            // Not wanted from 80 to 120.
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
    let verdict = check([life(1).got(10, 100, 1), life(2).asks(20).gets(60, 90, 1)]);
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
