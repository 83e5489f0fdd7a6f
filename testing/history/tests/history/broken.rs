//! A correct lock passes, sleeping holders and failovers included; each classic mistake is found.

use locktopus_history::{Property, Verdict};

use super::simulation::{Mistakes, run};

const SEEDS: std::ops::Range<u64> = 0..5;

fn all(mistakes: Mistakes) -> Vec<Verdict> {
    SEEDS.map(|seed| run(mistakes, seed)).collect()
}

#[track_caller]
fn found(verdicts: &[Verdict], property: Property) {
    let failed = |verdict: &&Verdict| verdict.judgement(property).violations > 0;
    let failing = verdicts.iter().filter(failed).count();
    assert_eq!(failing, verdicts.len(), "{property}:\n{}", verdicts[0]);
}

#[track_caller]
fn held(verdicts: &[Verdict], properties: &[Property]) {
    for verdict in verdicts {
        for &property in properties {
            assert!(verdict.passed(property), "{property}:\n{verdict}");
        }
    }
}

#[test]
fn the_right_lock_passes() {
    let verdicts = all(Mistakes::default());
    let properties = [
        Property::WellFormed,
        Property::ValidityOverlap,
        Property::DuplicateTokens,
        Property::FallingTokens,
        Property::StaleWrites,
        Property::GoodWrites,
        Property::ExtensionAfterEnd,
        Property::LostUpdates,
    ];
    held(&verdicts, &properties);
    // The lock cannot wake sleeping holders: they are inside with others, and tokens stop their
    // writes.
    found(&verdicts, Property::UseAfterEnd);
    found(&verdicts, Property::UseOverlap);
    for verdict in &verdicts {
        assert!(verdict.fenced.stale_caught > 5, "{verdict}");
        let lost = verdict.lost_updates.as_ref().unwrap();
        assert!(lost.unchecked.lost > 5, "{verdict}");
        assert!(
            verdict.facts.faults > 40 && verdict.facts.granted > 800,
            "{verdict}"
        );
        let kills = &verdict.outage.verbs[0];
        assert_eq!(kills.double_grants.hits, 0);
        // There are no grants for a lease after a failover.
        assert!(kills.outage.p50_ns >= 1_000, "{verdict}");
    }
}

#[test]
fn a_release_without_a_look_at_the_owner() {
    let mistakes = Mistakes {
        release_of_anybody: true,
        ..Mistakes::default()
    };
    let verdicts = all(mistakes);
    found(&verdicts, Property::ValidityOverlap);
    // FallingTokens is not judged: it infers the order of grants from exclusion, which this lock
    // does not keep.
    held(&verdicts, &[Property::DuplicateTokens]);
}

#[test]
fn validity_counted_from_the_reply() {
    let mistakes = Mistakes {
        validity_from_reply: true,
        ..Mistakes::default()
    };
    let verdicts = all(mistakes);
    found(&verdicts, Property::ValidityOverlap);
    held(
        &verdicts,
        &[Property::DuplicateTokens, Property::FallingTokens],
    );
}

#[test]
fn tokens_that_are_only_counted() {
    let mistakes = Mistakes {
        counted_tokens: true,
        ..Mistakes::default()
    };
    let verdicts = all(mistakes);
    found(&verdicts, Property::DuplicateTokens);
    held(&verdicts, &[Property::ValidityOverlap]);
}

#[test]
fn grants_right_after_a_failover() {
    let mistakes = Mistakes {
        no_rejoin_delay: true,
        ..Mistakes::default()
    };
    let verdicts = all(mistakes);
    found(&verdicts, Property::ValidityOverlap);
    held(
        &verdicts,
        &[
            Property::DuplicateTokens,
            Property::FallingTokens,
            Property::StaleWrites,
        ],
    );
    for verdict in &verdicts {
        let kills = &verdict.outage.verbs[0];
        assert!(kills.double_grants.hits > 0, "{verdict}");
        assert!(kills.double_grants.low_per_1000 > 0.0, "{verdict}");
    }
}

#[test]
fn both_together_let_stale_writes_through() {
    let mistakes = Mistakes {
        counted_tokens: true,
        no_rejoin_delay: true,
        ..Mistakes::default()
    };
    let verdicts: Vec<_> = (0..20).map(|seed| run(mistakes, seed)).collect();
    let missed: u64 = verdicts
        .iter()
        .map(|verdict| verdict.fenced.stale_missed)
        .sum();
    assert!(missed > 0, "{}", verdicts[0]);
}
