//! The report of `failover` about a lock that breaks a promise, a cell that does not finish, and a
//! cell that does not run at all.

use crate::common;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::common::plans::{command, reported, run};
use crate::common::{directory, told};

const BROKEN: Option<i32> = Some(5);
const MEASUREMENT: Option<i32> = Some(6);

/// A plan of one fault in each scenario, on one server through redis-rs. A scenario is its name,
/// its fault, further lines, and its lock group.
fn plan(scenarios: &[(&str, &str, &str, &str)]) -> String {
    let mut plan = "[mode.plain]\n[mode.pretended]\nexclusive = true\n".to_owned();
    for (name, fault, more, group) in scenarios {
        let faults = if more.contains("faults") {
            ""
        } else {
            "faults = 1\n"
        };
        plan.push_str(&format!(
            "[[scenario]]\nname = {name:?}\nabout = \"x\"\ntopologies = [\"standalone\"]\n\
             clients = [\"redis-rs\"]\nfault = {fault:?}\n{faults}{more}\n\
             lock_group = [{{ {group} }}]\n"
        ));
    }
    plan
}

const PLAIN: &str = "modes = [\"plain\"]\npause = [\"50ms\", \"50ms\"]";
const BRIEF: &str = r#"name = "long", hold = ["20ms", "20ms"], lease = "1s", target = true"#;

/// The server forgets its locks, and the mode promises exclusion all the same: the holder believes
/// until its lease ends, and the next one is granted the lock before.
#[test]
fn a_promise_that_is_not_kept_fails_the_run() {
    let more = "modes = [\"pretended\"]\npause = [\"50ms\", \"50ms\"]";
    let group = r#"name = "long", workers = 3, hold = ["4s", "4s"], lease = "6s", target = true"#;
    let plan = plan(&[("restart", "restart", more, group)]);
    let (code, report, said) = run("broken-promise", &plan);
    assert_eq!(code, BROKEN, "{said}");
    let [cell] = report.cells.as_slice() else {
        panic!("{said}");
    };
    // It finished: only the promise is broken.
    assert!(
        cell.trouble.is_empty() && report.failed.is_empty(),
        "{said}"
    );
    let broken = |property: &str| {
        cell.broken_promises
            .iter()
            .any(|promise| promise.starts_with(property))
    };
    assert!(broken("validity: ") && broken("use: "), "{cell:#?}");
    assert!(said.contains("FAILED: a promise was not kept"), "{said}");
}

/// One cell stops early, one is required and cannot run here, one can run. The results of the first
/// and the last are kept, and the run fails for the other two, each by name.
#[test]
fn cells_that_are_not_run_to_their_end_fail_the_run_and_are_not_lost() {
    let alone =
        r#"name = "alone", workers = 1, hold = ["20ms", "20ms"], lease = "1s", target = true"#;
    let plan = plan(&[
        (
            "nobody-waits",
            "kill-waiter",
            &format!("{PLAIN}\nfaults = 2"),
            alone,
        ),
        ("cut-off", "isolate-clients", PLAIN, BRIEF),
        (
            "quiet",
            "nothing",
            &format!("{PLAIN}\nlasts = \"1s\""),
            BRIEF,
        ),
    ]);
    let (code, report, said) = run("ended-early", &plan);
    assert_eq!(code, MEASUREMENT, "{said}");
    assert!(report.skipped.is_empty(), "{:?}", report.skipped);
    let names: Vec<_> = report.cells.iter().map(|cell| &*cell.scenario).collect();
    assert_eq!(names, ["nobody-waits", "quiet"], "{said}");
    let stopped = &report.cells[0];
    assert!(stopped.figures.granted > 0, "{stopped:#?}");
    let [trouble] = stopped.trouble.as_slice() else {
        panic!("{stopped:#?}");
    };
    assert!(
        trouble.starts_with("stopped after 0 of 2 faults: "),
        "{trouble}"
    );
    let [failed] = report.failed.as_slice() else {
        panic!("{said}");
    };
    assert!(failed.why.contains("needs --provider pod"), "{failed:?}");
    let lines: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("FAILED: "))
        .collect();
    for (of, what) in [
        ("cut-off on standalone", "needs --provider pod"),
        ("nobody-waits on standalone", "stopped after 0 of 2 faults"),
        ("nobody-waits on standalone", "0 of 2 faults were done"),
    ] {
        let named = |line: &&&str| line.contains(of) && line.contains(what);
        assert!(lines.iter().find(named).is_some(), "{of}, {what}: {said}");
    }
    assert_eq!(lines.len(), 3, "{said}");
}

/// Memory is filled on a server that does not evict, so the fault touches no lock.
#[test]
fn a_server_that_evicts_nothing_is_no_fault() {
    let plan = plan(&[("evict", "evict", PLAIN, BRIEF)]);
    let (code, report, said) = run("evicts-nothing", &plan);
    assert_eq!(code, MEASUREMENT, "{said}");
    let trouble = report.cells[0].trouble.concat();
    assert!(trouble.contains("it evicted none"), "{trouble}\n{said}");
}

/// Nothing is done for six seconds.
fn quiet() -> String {
    let more = format!("{PLAIN}\nlasts = \"6s\"");
    plan(&[("quiet", "nothing", &more, BRIEF)])
}

/// Starts a plan, and waits until a worker of its last process has been granted a lock.
fn at_work(plan: &str, out: &Path, processes: usize) -> (Child, Vec<u32>) {
    let mut command = command(plan, out);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut harness = piped.spawn().expect("the binary starts");
    let workers = common::started(&mut harness, "failover-worker", processes);
    let last = format!("process-{}.jsonl", processes - 1);
    common::until("a grant", || {
        let written = find(&out.join("histories"), &last);
        let history = written.and_then(|file| std::fs::read_to_string(file).ok());
        history.is_some_and(|history| history.contains("\"granted\""))
    });
    (harness, workers)
}

/// A file of this name, somewhere in a directory.
fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    entries
        .map(|entry| entry.path())
        .find_map(|path| match path.is_dir() {
            true => find(&path, name),
            false => path.ends_with(name).then_some(path),
        })
}

/// The death was not planned, so the cell is not as planned. The records of all processes up to
/// then, and of the other one to the end, are judged.
#[test]
fn a_worker_that_dies_is_trouble_of_its_cell_and_no_more() {
    let out = directory("dies");
    let (harness, workers) = at_work(&quiet(), &out, 2);
    common::kill(workers[0]);
    let output = harness.wait_with_output().expect("it ends");
    let (code, report, said) = reported(&output, &out);
    assert_eq!(code, MEASUREMENT, "{said}");
    assert!(report.failed.is_empty(), "{said}");
    let [cell] = report.cells.as_slice() else {
        panic!("{said}");
    };
    assert!(cell.figures.granted > 0, "{cell:#?}");
    let [trouble] = cell.trouble.as_slice() else {
        panic!("{cell:#?}\n{said}");
    };
    assert!(trouble.starts_with("process "), "{trouble}");
    assert!(said.contains(trouble), "{said}");
}

/// All errors come from the only process before it was killed; its replacement has none.
#[test]
fn what_a_killed_worker_said_is_in_the_report() {
    let late = "modes = [\"plain\"]\nprocesses = 1\npause = [\"20s\", \"20s\"]";
    let plan = plan(&[("kill-holder", "kill-holder", late, BRIEF)]);
    let out = directory("said");
    let (mut harness, _) = at_work(&plan, &out, 1);
    let server = common::address(&common::settings(&mut harness, 1)[0]);
    // A server without memory refuses every attempt, but too briefly for an outage.
    let memory = |bytes| common::asked(&server, &format!("CONFIG SET maxmemory {bytes}"));
    assert!(memory(1).starts_with("+OK"));
    common::until("a refusal", || {
        common::asked(&server, "INFO errorstats").contains("errorstat_OOM")
    });
    assert!(memory(0).starts_with("+OK"));
    let output = harness.wait_with_output().expect("it ends");
    let (code, report, said) = reported(&output, &out);
    assert_eq!(code, MEASUREMENT, "{said}");
    let cell = &report.cells[0];
    assert!(cell.trouble.is_empty(), "{cell:#?}");
    assert_eq!(cell.figures.faults, 1, "{cell:#?}");
    assert!(cell.errors.contains_key("refused"), "{:?}", cell.errors);
    assert!(said.contains("times \"refused\""), "{said}");
}

/// An interrupted run keeps its results, and nothing of an earlier run beside them.
#[test]
fn what_an_earlier_run_wrote_is_gone_while_another_one_is_under_way() {
    let out = directory("forgets");
    let kept = out.join("histories").join("earlier.jsonl");
    std::fs::create_dir_all(out.join("histories")).unwrap();
    let of_the_end = out.join("report.txt");
    for path in [&of_the_end, &kept] {
        std::fs::write(path, "of an earlier run").unwrap();
    }
    let (harness, _) = at_work(&quiet(), &out, 2);
    assert!(!of_the_end.exists());
    assert!(kept.exists());
    let output = harness.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", told(&output));
    assert!(of_the_end.exists());
}
