//! A part of a cell's histories is not accepted as the cell, however good that part is.

use std::path::{Path, PathBuf};

use bench_harness::failover::model::{self, FailoverReport};
use bench_harness::failover::plan::{Place, Verb};

use super::{HISTORY, Kept, NOTHING, OK, RUNNER, ends, fault, folder, good, kept, pack};

const SUMMARY: &str = include_str!("../../data/failover-summary.json");
const RUN: &str = "failover-test-1";

/// A folder in good order, after a change.
fn reduced(name: &str, change: impl FnOnce(&Path, &mut Kept)) -> PathBuf {
    let mut told = kept(&good());
    let folder = folder(&format!("whole-{name}"), &told, &good());
    change(&folder, &mut told);
    let text = serde_json::to_string(&told).unwrap();
    std::fs::write(folder.join("cell.json"), text).unwrap();
    folder
}

#[test]
fn a_history_without_a_fault_is_refused() {
    let emptied = reduced("no-fault", |folder, _| pack(&folder.join(RUNNER), &[]));
    ends(&emptied, NOTHING, &["no fault is in the histories"]);
}

#[test]
fn a_history_that_the_cell_does_not_name_is_refused() {
    let other = "deployment-0/process-1.jsonl.gz";
    let more = reduced("unnamed", |folder, _| pack(&folder.join(other), &good()));
    let words = "cell.json does not name the history deployment-0/process-1.jsonl.gz";
    ends(&more, NOTHING, &[words]);
    // An unpacked history, or one in another place, counts too; any other file does not.
    for name in ["process-0.jsonl", "deployment-1/process-0.jsonl.gz.old"] {
        let odd = reduced("elsewhere", |folder, _| pack(&folder.join(name), &[]));
        ends(&odd, NOTHING, &[name]);
    }
    let noted = reduced("noted", |folder, _| {
        std::fs::write(folder.join("notes.txt"), "looked at").unwrap();
    });
    ends(&noted, OK, &[]);
}

/// Files are numbered, so a gap between them shows.
#[test]
fn a_gap_in_what_the_cell_names_is_refused() {
    let runner = reduced("no-runner", |folder, told| {
        // The fault is in another file, so only the runner is missing.
        pack(&folder.join(HISTORY), &[good(), vec![fault()]].concat());
        std::fs::remove_file(folder.join(RUNNER)).unwrap();
        told.histories = vec![HISTORY.into()];
    });
    ends(&runner, NOTHING, &["does not name deployment-0/runner"]);
    for (to, words) in [
        (
            "deployment-0/process-1.jsonl.gz",
            "name deployment-0/process-0",
        ),
        (
            "deployment-1/process-0.jsonl.gz",
            "name deployment-0/process-0",
        ),
    ] {
        let moved = reduced("gap", |folder, told| {
            pack(&folder.join(to), &good());
            std::fs::remove_file(folder.join(HISTORY)).unwrap();
            told.histories = vec![to.into(), RUNNER.into()];
            if to.starts_with("deployment-1") {
                let own = "deployment-1/runner.jsonl.gz";
                pack(&folder.join(own), &[]);
                told.histories.push(own.into());
            }
        });
        ends(&moved, NOTHING, &[words]);
    }
    let first = reduced("no-first", |folder, told| {
        let [history, runner] = [HISTORY, RUNNER].map(|name| name.replace('0', "1"));
        let history = history.replace("process-1", "process-0");
        std::fs::remove_dir_all(folder.join("deployment-0")).unwrap();
        pack(&folder.join(&history), &good());
        pack(&folder.join(&runner), &[fault()]);
        told.histories = vec![history.into(), runner.into()];
    });
    ends(&first, NOTHING, &["names no history of deployment-0"]);
}

/// The folder of a cell below that of its run, and the report there.
fn beside(name: &str, change: impl FnOnce(&mut FailoverReport)) -> PathBuf {
    let told = kept(&good());
    let out = format!("whole-{name}/histories/{RUN}/cell-0");
    let folder = folder(&out, &told, &good());
    let mut report: FailoverReport = serde_json::from_str(SUMMARY).unwrap();
    RUN.clone_into(&mut report.run.id);
    let cell = &mut report.cells[0];
    "restart".clone_into(&mut cell.scenario);
    (cell.fault, cell.topology) = (Verb::Restart, Place::Standalone);
    (cell.figures.attempts, cell.figures.granted) = (2, 2);
    (cell.figures.faults, cell.planned_faults) = (1, 1);
    cell.outcomes.clone_from(&told.outcomes);
    change(&mut report);
    let path = folder.ancestors().nth(3).unwrap().join("report.json");
    std::fs::write(path, model::to_json(&report)).unwrap();
    folder
}

#[test]
fn what_is_found_is_as_much_as_the_report_says() {
    ends(&beside("same", |_| ()), OK, &[]);
    type Change = fn(&mut FailoverReport);
    let changes: [(&str, Change); 6] = [
        ("2 attempts, and 3 in ", |report| {
            report.cells[0].figures.attempts = 3;
        }),
        ("2 grants, and 3 in ", |report| {
            report.cells[0].figures.granted = 3;
        }),
        ("1 faults, and 2 in ", |report| {
            report.cells[0].figures.faults = 2;
        }),
        ("report.json: 1 of 2 faults were done", |report| {
            report.cells[0].planned_faults = 2;
        }),
        ("other outcomes than cell.json", |report| {
            report.cells[0].outcomes.clear();
        }),
        ("says nothing of this cell", |report| report.cells.clear()),
    ];
    for (words, change) in changes {
        ends(&beside("other", change), NOTHING, &[words]);
    }
    // A later run into the same directory is another run.
    let later = beside("later", |report| {
        "failover-test-2".clone_into(&mut report.run.id);
        report.cells.clear();
    });
    ends(&later, OK, &[]);
}

/// A cell without planned faults needs none.
#[test]
fn a_cell_without_faults_is_one_if_the_report_says_so() {
    let quiet = |name: &str, verb| {
        let folder = beside(name, |report| {
            let cell = &mut report.cells[0];
            (cell.fault, cell.planned_faults, cell.figures.faults) = (verb, 0, 0);
        });
        pack(&folder.join(RUNNER), &[]);
        folder
    };
    ends(&quiet("quiet", Verb::Nothing), OK, &[]);
    let words = "0 of 1 faults were done";
    ends(&quiet("silenced", Verb::Restart), NOTHING, &[words]);
}
