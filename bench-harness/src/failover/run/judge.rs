//! From histories to figures and promises.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use locktopus_history::{
    Checker, Event, History, Leftovers, LostUpdates, Outcome, Property, Quantiles, Verdict,
};

use super::deployment_run::DeploymentRun;
use super::kept::{self, Kept};
use super::{RunError, required};
use crate::failover::model::{CellReport, Figures, Signals, Writes};
use crate::failover::plan::Cell;
use crate::failover::resource;

pub(super) fn judge(cell: &Cell, result: &[DeploymentRun]) -> Result<CellReport, RunError> {
    let mut leftovers = Some(Leftovers::default());
    let mut lost = LostUpdates::default();
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    let mut outages = Vec::new();
    let (mut faults, mut doubles) = (0, 0);
    let mut happened = BTreeMap::new();
    for one in result {
        let history = read(&one.histories)?;
        let effects = Checker::new().check(&history).outage.faults;
        let effects = effects
            .iter()
            .filter(|effect| effect.verb == cell.scenario.fault.name());
        for effect in effects {
            faults += 1;
            doubles += u64::from(effect.double_grants > 0);
        }
        // Only locks with brief holds show an outage: where holds are long, no grant is due.
        let brief = of_groups(&history, cell, &one.prefix);
        let effects = Checker::new().check(&brief).outage.faults;
        outages.extend(effects.iter().filter_map(|effect| effect.outage_ns));
        leftovers = leftovers.zip(one.leftovers.clone()).map(|(mut all, one)| {
            all.keys.extend(one.keys);
            all.waiters.extend(one.waiters);
            all
        });
        if let Some(all) = &mut leftovers
            && one.finished.abandoned > 0
        {
            all.tasks
                .push(format!("{} releases or tasks", one.finished.abandoned));
        }
        resource::add(&mut lost.unchecked, one.lost.unchecked.clone());
        resource::add(&mut lost.checked, one.lost.checked.clone());
        for (kind, count) in &one.finished.errors {
            *errors.entry(kind.clone()).or_default() += count;
        }
        for (what, times) in &one.happened {
            *happened.entry(what.clone()).or_default() += times;
        }
    }
    let all = result.iter().flat_map(|one| &one.histories);
    let history = read(all)?;
    let mut checker = Checker::new()
        .options(required::options(cell))
        .lost_updates(lost.clone());
    if let Some(left) = leftovers {
        checker = checker.leftovers(left);
    }
    let verdict = checker.check(&history);
    let outcomes = verdict.judgements.iter();
    let outcomes =
        outcomes.map(|one| (one.property.to_string(), kept::word(one.outcome).to_owned()));
    let outcomes = outcomes.collect();
    let mut figures = figures(&verdict, &lost);
    figures.faults = faults;
    figures.faults_with_double_grants = doubles;
    figures.outage = Quantiles::of(outages).into();
    let trouble = result.iter().flat_map(|one| one.trouble.clone());
    let trouble = trouble.chain(required::untried(cell, &verdict));
    Ok(CellReport {
        scenario: cell.scenario.name.clone(),
        about: cell.scenario.about.clone(),
        fault: cell.scenario.fault,
        topology: cell.place,
        provider: String::new(),
        server: result
            .first()
            .map(|one| one.server.clone())
            .unwrap_or_default(),
        mode: cell.mode_name.clone(),
        exclusive: cell.mode.exclusive,
        client: cell.client.name().to_owned(),
        subject: cell.subject,
        deployments: 0,
        planned_faults: 0,
        took_ns: 0,
        figures,
        broken_promises: required::broken_promises(cell, &verdict),
        not_required: required::not_required(cell, &verdict),
        caught: caught(cell, &verdict),
        outcomes,
        errors,
        machine: None,
        trouble: trouble.collect(),
        happened,
    })
}

/// The data that a later judge needs.
pub(super) fn kept(cell: &Cell, seed: u64, report: &CellReport) -> Kept {
    let mut kept = Kept::new(cell.describe(), seed, &required::options(cell));
    kept.excused = required::excused(cell);
    kept.outcomes.clone_from(&report.outcomes);
    kept
}

fn read<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<History, RunError> {
    History::read(paths).map_err(|error| RunError::History(error.to_string()))
}

/// The records of the locks whose outage counts.
fn of_groups(history: &History, cell: &Cell, prefix: &str) -> History {
    let groups = cell.scenario.groups.iter().filter(|group| group.outage);
    let locks: HashSet<String> = groups.flat_map(|group| group.lock_names(prefix)).collect();
    let mut kept = HashSet::new();
    let mut records = Vec::new();
    for record in history.records() {
        let keep = match &record.event {
            Event::Started { attempt, lock, .. } => {
                let keep = locks.contains(lock);
                if keep {
                    kept.insert((record.worker, *attempt));
                }
                keep
            }
            event => event
                .attempt()
                .is_none_or(|attempt| kept.contains(&(record.worker, attempt))),
        };
        if keep {
            records.push(record.clone());
        }
    }
    History::from_records(records)
}

fn figures(verdict: &Verdict, lost: &LostUpdates) -> Figures {
    let (fenced, after) = (&verdict.fenced, &verdict.after_end);
    let violations = |property| verdict.judgement(property).violations;
    Figures {
        attempts: verdict.facts.attempts as u64,
        granted: verdict.facts.granted as u64,
        validity: (&verdict.validity).into(),
        in_use: (&verdict.in_use).into(),
        duplicate_tokens: verdict.tokens.duplicates,
        falling_tokens: verdict.tokens.falls,
        unordered_tokens: verdict.tokens.unordered,
        writes: Writes {
            all: fenced.writes,
            stale: fenced.stale_issued,
            caught: fenced.stale_caught,
            missed: fenced.stale_missed,
            good_refused: fenced.good_rejected,
        },
        uses_after_end: after.uses,
        longest_after_end_ns: after.longest_ns,
        extensions_after_end: after.extensions,
        signals: Signals {
            lateness: verdict.loss_signal.lateness.into(),
            never: verdict.loss_signal.unsignalled,
        },
        leftovers: violations(Property::Leftovers),
        fair_waits: verdict.order.waits,
        out_of_order: verdict.order.overtakings,
        permits_checked: verdict.permit_validity.checked,
        permits_over: verdict.permit_validity.count,
        lost_unchecked: (&lost.unchecked).into(),
        lost_checked: (&lost.checked).into(),
        ..Figures::default()
    }
}

/// The properties that gave a broken lock away.
fn caught(cell: &Cell, verdict: &Verdict) -> Vec<String> {
    if !cell.subject.is_broken() {
        return Vec::new();
    }
    let judgements = verdict.judgements.iter();
    judgements
        .filter(|judgement| judgement.outcome == Outcome::Failed)
        .map(|judgement| format!("{}: {}", judgement.property, judgement.violations))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failover::plan::{Choice, PlanFile};

    const PLAN: &str = r#"
[mode.plain]
[[scenario]]
name = "one"
about = "x"
topologies = ["standalone"]
modes = ["plain"]
clients = ["redis-rs"]
fault = "nothing"
pause = ["0s", "0s"]
lock_group = [{ name = "permits", kind = "semaphore", hold = ["1s", "2s"], lease = "5s" }]
"#;

    #[test]
    fn what_the_plan_did_not_get_to_is_trouble_as_what_stopped_is() {
        let plan = PlanFile::parse(PLAN, "x").unwrap();
        let cells = plan.cells(&Choice::default()).unwrap();
        let run = |trouble: &str| DeploymentRun {
            trouble: vec![trouble.to_owned()],
            ..DeploymentRun::default()
        };
        let report = judge(&cells[0], &[run("one stopped"), run("another one too")]).unwrap();
        let [one, another, permits, uses] = report.trouble.as_slice() else {
            panic!("{:?}", report.trouble);
        };
        assert_eq!([one, another], ["one stopped", "another one too"]);
        for untried in [permits, uses] {
            assert!(untried.contains("was not judged"), "{untried}");
        }
    }
}
