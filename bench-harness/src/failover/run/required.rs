//! Decides which properties a lock must satisfy in a cell, and how strictly, and why some are not
//! required.
//!
//! Every property is required wherever the fault and the mode leave it any meaning, so a report
//! that says nothing about a property gives the reason. The limits do not depend on the machine: if
//! the machine did not run a worker in time, the history says so
//! ([`Event::Stalled`](locktopus_history::Event::Stalled)), and the delay is not counted against
//! the lock.

use std::collections::BTreeMap;
use std::time::Duration;

use locktopus::LockKind;
use locktopus_history::{Options, Outcome, Property, Verdict};

use crate::failover::plan::{Cell, Subject, Verb};

/// How long after the end of its lease a holder may still be inside, and may learn of the loss.
/// Both follow from local clocks, so the distance to the servers does not matter.
const REACTION: Duration = Duration::from_millis(100);
/// A waiter that misses a notification finds out within three heartbeats of one second each.
const HEARTBEATS: Duration = Duration::from_secs(5);
/// A waiter that is silent for this long may be passed over.
const DEAD: Duration = Duration::from_secs(2);
/// The time of an election, or of a server's start, beyond its own timeouts.
const SERVERS: Duration = Duration::from_secs(8);
/// Sequential round trips to servers between the end of an outage and the next grant.
const ROUND_TRIPS: u32 = 20;

/// How strict the judge is in this cell.
pub(super) fn options(cell: &Cell) -> Options {
    Options {
        exclusive: promises_exclusion(cell),
        use_limit: REACTION,
        lateness_limit: Some(REACTION),
        outage_limit: Some(longest_outage(cell)),
        stalled_waiter: stalled_waiter(cell),
        order_recovery: order_recovery(cell),
        ..Options::default()
    }
}

/// The promises that this cell broke, in words.
pub(super) fn broken_promises(cell: &Cell, verdict: &Verdict) -> Vec<String> {
    let violations = verdict.violations().into_iter();
    violations
        .filter(|violation| excuse(cell, violation.property).is_none())
        .map(|violation| format!("{}: {}", violation.property, violation.text))
        .collect()
}

/// The properties that this cell says nothing about, each with the reason.
pub(super) fn not_required(cell: &Cell, verdict: &Verdict) -> Vec<String> {
    let judgements = verdict.judgements.iter();
    judgements
        .filter_map(|judgement| {
            let property = judgement.property;
            let untested = || {
                let untested = judgement.outcome == Outcome::NotJudged;
                untested.then(|| untested_because(cell, property, verdict))
            };
            let why = excuse(cell, property).or_else(untested)?;
            Some(format!("{property}: {why}"))
        })
        .collect()
}

/// Properties that the cell's plan is meant to test and nothing tested, a sentence each: the cell
/// would pass without a trial. Every report must show the properties that any grant tests
/// ([`completeness`](crate::failover::completeness)).
pub(super) fn untried(cell: &Cell, verdict: &Verdict) -> Vec<String> {
    if cell.subject != Subject::Locktopus {
        return Vec::new();
    }
    let permits = has(cell, &LockKind::Semaphore);
    // Only where neither a fault nor a stall cost a waiter its place.
    let order = has(cell, &LockKind::Fair)
        && order_recovery(cell).is_none()
        && verdict.order.disturbed == 0;
    let due = [
        (permits, Property::PermitValidity, "a semaphore"),
        (permits, Property::PermitUse, "a semaphore"),
        (order, Property::FairOrder, "a fair lock"),
    ];
    due.into_iter()
        .filter(|(due, property, _)| {
            *due && verdict.judgement(*property).outcome == Outcome::NotJudged
        })
        .map(|(_, property, kind)| format!("{property} was not judged, though the plan has {kind}"))
        .collect()
}

fn has(cell: &Cell, kind: &LockKind) -> bool {
    cell.scenario.groups.iter().any(|group| group.kind == *kind)
}

/// Why a property is not required, if it is not.
fn excuse(cell: &Cell, property: Property) -> Option<&'static str> {
    if cell.subject.is_broken() {
        return Some("this lock is broken on purpose");
    }
    if property == Property::WellFormed {
        return None;
    }
    if cell.subject != Subject::Locktopus {
        return Some("what other libraries do is shown, not judged");
    }
    let about_exclusion = matches!(
        property,
        Property::ValidityOverlap
            | Property::UseOverlap
            | Property::PermitValidity
            | Property::PermitUse
    );
    (about_exclusion && !promises_exclusion(cell)).then_some(
        "after this fault servers may have forgotten locks, and the mode promises no more",
    )
}

/// The properties that are not required in this cell, each with the reason.
pub(super) fn excused(cell: &Cell) -> BTreeMap<String, String> {
    let all = Property::ALL.into_iter();
    all.filter_map(|property| Some((property.to_string(), excuse(cell, property)?.to_owned())))
        .collect()
}

fn untested_because(cell: &Cell, property: Property, verdict: &Verdict) -> &'static str {
    match property {
        Property::PermitValidity | Property::PermitUse if has(cell, &LockKind::Semaphore) => {
            "no permit was held here"
        }
        Property::PermitValidity | Property::PermitUse => "no semaphore here",
        Property::FairOrder if verdict.order.disturbed > 0 => {
            "a fault or a stall may have cost every waiter its place"
        }
        Property::FairOrder => "no worker waited for a fair lock here",
        Property::LossSignal => "no lock was lost here",
        Property::Leftovers => "the servers could not be inspected",
        _ => "nothing happened here that tests it",
    }
}

/// Whether exclusion holds in spite of the fault of the cell: two holders never believe at once.
/// The order of tokens is promised in the same cases; `docs/safety.md` describes both ("What tokens
/// promise").
fn promises_exclusion(cell: &Cell) -> bool {
    let scenario = &cell.scenario;
    cell.mode.exclusive || scenario.keeps_data()
}

/// How long a wanted lock may go without a grant.
fn longest_outage(cell: &Cell) -> Duration {
    let groups = cell.scenario.groups.iter();
    // The holder keeps it that long, or dies right after a renewal.
    let held = groups.map(|group| {
        if group.renewed {
            group.hold.1 + group.lease
        } else {
            group.lease
        }
    });
    // The quarantine starts again when a second server takes over, or when the first comes back.
    let quarantines = 2 * cell.mode.max_lease.unwrap_or_default();
    held.max().unwrap_or_default() + away(cell) + quarantines + HEARTBEATS + distance(cell)
}

/// A stall that costs a waiter its place. After two heartbeats the others take it for dead; a grant
/// that it gets meanwhile has expired if it wakes up a lease later. The factor is there because a
/// stall is noticed some milliseconds late.
fn stalled_waiter(cell: &Cell) -> Duration {
    let shortest = cell.scenario.groups.iter().map(|group| group.lease).min();
    shortest.unwrap_or_default().min(DEAD) * 9 / 10
}

/// For how long after a fault waiters may change places in the queue; `None` if the fault costs no
/// waiter its place.
fn order_recovery(cell: &Cell) -> Option<Duration> {
    // A process that was stopped records the stall itself.
    let keeps = cell.scenario.fault.keeps_order() || cell.scenario.fault == Verb::StopHolder;
    (!keeps).then(|| away(cell) + HEARTBEATS + distance(cell))
}

/// How long the fault may keep clients from servers.
fn away(cell: &Cell) -> Duration {
    let scenario = &cell.scenario;
    let servers = &scenario.servers;
    if scenario.fault.fails_over() {
        let suspicion = servers.node_timeout.max(servers.down_after);
        scenario.lasts + suspicion + 2 * servers.failover_timeout + SERVERS
    } else if scenario.fault.leaves_servers_alone() {
        Duration::ZERO
    } else {
        scenario.lasts + SERVERS
    }
}

fn distance(cell: &Cell) -> Duration {
    ROUND_TRIPS * cell.scenario.servers.round_trip
}

#[cfg(test)]
mod tests {
    use locktopus_history::{Checker, History};

    use super::*;
    use crate::failover::plan::{Choice, PlanFile};

    const PLAN: &str = r#"
[mode.plain]
[mode.quarantine]
exclusive = true
max_lease = "5s"
[[scenario]]
name = "one"
about = "x"
topologies = ["sentinel"]
modes = ["plain", "quarantine"]
clients = ["redis-rs"]
subjects = ["locktopus", "r1", "broken-release"]
fault = "FAULT"
pause = ["0s", "0s"]
lasts = "1s"
servers = { round_trip = "150ms", down_after = "1s", failover_timeout = "2s" }
lock_group = [{ name = "long", hold = ["1s", "2s"], lease = "5s", target = true }]
"#;

    fn cell(fault: &str, mode: &str, subject: Subject) -> Cell {
        let plan = PlanFile::parse(&PLAN.replace("FAULT", fault), "x").unwrap();
        let cells = plan.cells(&Choice::default()).unwrap();
        let wanted = |cell: &&Cell| cell.mode_name == mode && cell.subject == subject;
        cells.iter().find(wanted).unwrap().clone()
    }

    fn excused(cell: &Cell) -> Vec<Property> {
        let all = Property::ALL.into_iter();
        all.filter(|&property| excuse(cell, property).is_some())
            .collect()
    }

    #[test]
    fn only_exclusion_is_not_promised_everywhere() {
        let exclusion = [
            Property::ValidityOverlap,
            Property::UseOverlap,
            Property::PermitValidity,
            Property::PermitUse,
        ];
        let ours = Subject::Locktopus;
        assert_eq!(excused(&cell("kill-primary", "plain", ours)), exclusion);
        assert_eq!(excused(&cell("kill-primary", "quarantine", ours)), []);
        for fault in ["stop-holder", "kill-holder", "kill-connections", "nothing"] {
            assert_eq!(excused(&cell(fault, "plain", ours)), [], "{fault}");
        }
        let all = Property::ALL;
        let of = |subject| excused(&cell("nothing", "plain", subject));
        assert_eq!(of(Subject::R1), all[1..]);
        assert_eq!(of(Subject::BrokenRelease), all);
    }

    #[test]
    fn limits_follow_from_the_plan() {
        let ours = Subject::Locktopus;
        let options_of = |fault, mode| options(&cell(fault, mode, ours));
        let seconds = |options: &Options| options.outage_limit.unwrap().as_secs();
        // The lease, three heartbeats, and 20 round trips of 150 ms.
        let quiet = options_of("nothing", "plain");
        assert_eq!(seconds(&quiet), 5 + 5 + 3);
        assert_eq!((quiet.exclusive, quiet.order_recovery), (true, None));
        assert_eq!(quiet.stalled_waiter, Duration::from_millis(1_800));
        // Plus the election.
        let failover = options_of("kill-primary", "plain");
        assert_eq!(seconds(&failover), 13 + (1 + 1 + 4 + 8));
        assert!(!failover.exclusive && failover.order_recovery.is_some());
        // Plus the quarantine.
        let quarantine = options_of("kill-primary", "quarantine");
        assert_eq!(seconds(&quarantine), 27 + 10);
        assert!(quarantine.exclusive);
        assert_eq!(options_of("stop-holder", "plain").order_recovery, None);
    }

    /// The verdict on a history of nothing, with one outcome changed.
    fn verdict(property: Property, outcome: Outcome) -> Verdict {
        let mut verdict = Checker::new().check(&History::from_records(Vec::new()));
        let mut judgements = verdict.judgements.iter_mut();
        let judgement = judgements.find(|judgement| judgement.property == property);
        judgement.expect("every property has one").outcome = outcome;
        verdict
    }

    #[test]
    fn what_is_required_and_violated_is_a_broken_promise() {
        let cell = cell("nothing", "plain", Subject::Locktopus);
        for property in Property::ALL {
            let failed = verdict(property, Outcome::Failed);
            let broken = broken_promises(&cell, &failed);
            let name = format!("{property}:");
            assert!(
                broken.len() == 1 && broken[0].starts_with(&name),
                "{broken:?}"
            );
            // No other property is left out silently.
            let silent = not_required(&cell, &failed);
            assert_eq!(silent.len(), Property::ALL.len() - 1, "{silent:?}");
        }
        let nothing = verdict(Property::Outage, Outcome::Passed);
        assert_eq!(broken_promises(&cell, &nothing), Vec::<String>::new());
    }

    /// A semaphore that never granted a permit passes every check.
    #[test]
    fn permits_of_the_plan_must_be_tried() {
        let mut cell = cell("nothing", "plain", Subject::Locktopus);
        let nothing = verdict(Property::PermitUse, Outcome::NotJudged);
        let says = |cell: &Cell, why: &str| {
            let silent = not_required(cell, &nothing);
            silent.iter().filter(|text| text.ends_with(why)).count()
        };
        assert_eq!(untried(&cell, &nothing), Vec::<String>::new());
        assert_eq!(says(&cell, "no semaphore here"), 2);
        cell.scenario.groups[0].kind = LockKind::Semaphore;
        let names = [Property::PermitValidity, Property::PermitUse];
        let untold = names
            .map(|property| format!("{property} was not judged, though the plan has a semaphore"));
        assert_eq!(untried(&cell, &nothing), untold);
        assert_eq!(says(&cell, "no semaphore here"), 0);
        let half = verdict(Property::PermitUse, Outcome::Passed);
        assert_eq!(untried(&cell, &half), untold[..1]);
        // Other subjects have no permits.
        cell.subject = Subject::R1;
        assert_eq!(untried(&cell, &nothing), Vec::<String>::new());
    }

    /// So does a fair lock that no one waits for, unless a fault or a stall may have cost every
    /// waiter its place.
    #[test]
    fn the_order_of_a_fair_lock_of_the_plan_must_be_tried() {
        let with_fair_lock = |fault| {
            let mut cell = cell(fault, "plain", Subject::Locktopus);
            cell.scenario.groups[0].kind = LockKind::Fair;
            cell
        };
        let mut nothing = verdict(Property::FairOrder, Outcome::NotJudged);
        let untold = ["fair order was not judged, though the plan has a fair lock"];
        for keeps in ["nothing", "flush-scripts", "kill-waiter", "stop-holder"] {
            assert_eq!(untried(&with_fair_lock(keeps), &nothing), untold, "{keeps}");
        }
        let none = Vec::<String>::new();
        assert_eq!(untried(&with_fair_lock("kill-connections"), &nothing), none);
        nothing.order.disturbed = 1;
        assert_eq!(untried(&with_fair_lock("nothing"), &nothing), none);
        let judged = verdict(Property::FairOrder, Outcome::Passed);
        assert_eq!(untried(&with_fair_lock("nothing"), &judged), none);
    }
}
