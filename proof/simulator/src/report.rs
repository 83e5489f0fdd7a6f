//! Reports a failure so that a person can read and repeat it.

use std::fmt::Write as _;

use crate::flaw::Flaw;
use crate::plan::Plan;
use crate::run::run;
use crate::shrink::shrink;

/// The smallest schedule that breaks the same rule, what happens in it, and how to run the whole
/// one again.
#[must_use]
pub fn report(plan: &Plan, flaw: Option<Flaw>) -> String {
    let broken = |plan: &Plan| {
        let outcome = run(plan, flaw, false);
        outcome.violations.first().map(|violation| violation.rule)
    };
    let Some(rule) = broken(plan) else {
        return format!("seed {}: nothing is wrong", plan.seed);
    };
    let smallest = shrink(plan, |smaller| broken(smaller) == Some(rule));
    let outcome = run(&smallest, flaw, true);
    let mut text = format!(
        "LOCKTOPUS_SIM_SEED={} breaks a rule: {rule}. What it takes:\n",
        plan.seed
    );
    // Writing to a string cannot fail.
    let _ = describe(&mut text, &smallest);
    for line in &outcome.trace {
        let _ = writeln!(text, "{line}");
    }
    for violation in &outcome.violations {
        let _ = writeln!(
            text,
            "{:>10} ms  {}: {}",
            violation.at, violation.rule, violation.what
        );
    }
    text
}

fn describe(text: &mut String, plan: &Plan) -> std::fmt::Result {
    let servers = plan.quorum.map_or_else(
        || format!("replicas of each shard: {:?}", plan.replicas),
        |servers| format!("a quorum of {servers}"),
    );
    writeln!(
        text,
        "  {}, {servers}, messages take at least {} ms, leases of {} ms",
        plan.safety, plan.travel, plan.lease
    )?;
    for (number, lock) in plan.locks.iter().enumerate() {
        writeln!(text, "  lock {number}: {} {:?}", lock.name, lock.kind)?;
    }
    for (number, process) in plan.processes.iter().enumerate() {
        for (task, acts) in process.tasks.iter().enumerate() {
            for act in acts {
                writeln!(text, "  p{number} task {task}: {act:?}")?;
            }
        }
    }
    for (at, fault) in &plan.faults {
        writeln!(text, "  at {at} ms: {fault:?}")?;
    }
    Ok(())
}
