//! Shrinks a failing schedule to what the failure needs.

use crate::plan::{End, Plan, Wait};

/// How many schedules to run at most.
const TRIES: usize = 60;

/// The smallest schedule found that still fails.
#[must_use]
pub fn shrink(plan: &Plan, fails: impl Fn(&Plan) -> bool) -> Plan {
    let mut smallest = plan.clone();
    let mut tries = 0;
    loop {
        let found = smaller(&smallest).into_iter().find(|plan| {
            tries += 1;
            tries <= TRIES && fails(plan)
        });
        match found {
            Some(plan) => smallest = plan,
            None => return smallest,
        }
    }
}

/// All plans with one part removed, the largest parts first.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Plan)| {
        let mut less = plan.clone();
        change(&mut less);
        if less != *plan {
            all.push(less);
        }
    };
    for process in 0..plan.processes.len() {
        // Faults name processes by number, so a process is emptied, not removed.
        add(&|plan| plan.processes[process].tasks.clear());
    }
    for fault in 0..plan.faults.len() {
        add(&|plan| {
            plan.faults.remove(fault);
        });
    }
    for (process, of) in plan.processes.iter().enumerate() {
        for (task, acts) in of.tasks.iter().enumerate() {
            add(&|plan| plan.processes[process].tasks[task].clear());
            for act in 0..acts.len() {
                add(&|plan| {
                    plan.processes[process].tasks[task].remove(act);
                });
            }
        }
    }
    for process in 0..plan.processes.len() {
        add(&|plan| plan.processes[process].drift = 0);
        for task in 0..plan.processes[process].tasks.len() {
            for act in 0..plan.processes[process].tasks[task].len() {
                add(&|plan| plan.processes[process].tasks[task][act].also = None);
                add(&|plan| plan.processes[process].tasks[task][act].fixed_lease = None);
                add(&|plan| plan.processes[process].tasks[task][act].end = End::Release);
                add(&|plan| plan.processes[process].tasks[task][act].wait = Wait::Forever);
                add(&|plan| plan.processes[process].tasks[task][act].hold /= 2);
                add(&|plan| plan.processes[process].tasks[task][act].pause /= 2);
            }
        }
    }
    all
}
