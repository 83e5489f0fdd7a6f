//! `failover-judge`: kept histories are judged again, and each reason to fail has its own message
//! and exit code.

use crate::common;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{directory, told};
use bench_harness::failover::run::kept::{self, Kept};
use flate2::Compression;
use flate2::write::GzEncoder;
use locktopus_history::{
    Checker, Event, Grant, History, Mode, Options, Property, Record, ReleaseOutcome,
};

const OK: Option<i32> = Some(0);
const ANOTHER_VERDICT: Option<i32> = Some(1);
const USAGE: Option<i32> = Some(2);
const INPUT: Option<i32> = Some(3);
const BROKEN: Option<i32> = Some(5);
const NOTHING: Option<i32> = Some(6);

const MS: u64 = 1_000_000;
const HISTORY: &str = "deployment-0/process-0.jsonl.gz";
const RUNNER: &str = "deployment-0/runner.jsonl.gz";

/// The runner's record: the one fault.
fn fault() -> Record {
    let (verb, target) = ("restart".to_owned(), "a server".to_owned());
    let event = Event::Fault { verb, target };
    let (at, worker) = (25 * MS, 9);
    Record { at, worker, event }
}

/// A holder that holds from the first instant to the second, in milliseconds, with a lease until
/// the third.
fn holder(worker: u32, token: u64, [from, to, until]: [u64; 3]) -> Vec<Record> {
    let attempt = 0;
    let grant = Grant {
        token: Some(token),
        valid_until: until * MS,
        mode: Mode::Exclusive,
        safety: "plain".to_owned(),
    };
    let outcome = ReleaseOutcome::Ok;
    let lock = "a".to_owned();
    let holder = None;
    let events = [
        (
            from - 5,
            Event::Started {
                attempt,
                lock,
                holder,
            },
        ),
        (from, Event::Granted { attempt, grant }),
        (from + 1, Event::UseStarted { attempt }),
        (to - 1, Event::UseEnded { attempt }),
        (to, Event::ReleaseStarted { attempt }),
        (to + 1, Event::ReleaseEnded { attempt, outcome }),
        (to + 1, Event::Closed),
    ];
    let record = |(at, event): (u64, Event)| Record {
        at: at * MS,
        worker,
        event,
    };
    events.into_iter().map(record).collect()
}

/// Two holders, one after the other.
fn good() -> Vec<Record> {
    let first = holder(1, 1, [10, 20, 100]);
    [first, holder(2, 2, [30, 40, 120])].concat()
}

/// Two holders at once: the second lease begins while the first lasts.
fn overlapping() -> Vec<Record> {
    let first = holder(1, 1, [10, 50, 100]);
    [first, holder(2, 2, [30, 40, 120])].concat()
}

/// The description of a cell with such a history, without findings.
fn kept(records: &[Record]) -> Kept {
    let limit = Duration::from_millis(100);
    let mut kept = Kept {
        cell: "restart on standalone, plain via redis-rs".to_owned(),
        seed: 7,
        exclusive: true,
        use_limit: limit,
        lateness_limit: Some(limit),
        outage_limit: Some(limit),
        stalled_waiter: limit,
        order_recovery: None,
        excused: BTreeMap::new(),
        outcomes: BTreeMap::new(),
        histories: vec![HISTORY.into(), RUNNER.into()],
    };
    let options: Options = kept.options();
    let history = History::from_records([records, &[fault()]].concat());
    for judgement in Checker::new().options(options).check(&history).judgements {
        let (name, outcome) = (judgement.property, kept::word(judgement.outcome));
        kept.outcomes.insert(name.to_string(), outcome.to_owned());
    }
    for name in [Property::Leftovers, Property::LostUpdates] {
        let passed = "passed".to_owned();
        kept.outcomes.insert(name.to_string(), passed);
    }
    kept
}

/// A compressed history.
fn pack(packed: &Path, records: &[Record]) {
    std::fs::create_dir_all(packed.parent().unwrap()).unwrap();
    let mut packing = GzEncoder::new(File::create(packed).unwrap(), Compression::default());
    // In the order of the process that wrote them.
    let mut records: Vec<_> = records.iter().collect();
    records.sort_by_key(|record| record.at);
    for record in records {
        serde_json::to_writer(&mut packing, record).unwrap();
        packing.write_all(b"\n").unwrap();
    }
    packing.finish().unwrap();
}

/// A folder as `failover --keep-histories` leaves it.
fn folder(name: &str, kept: &Kept, records: &[Record]) -> PathBuf {
    let folder = directory(&format!("judged-{name}"));
    pack(&folder.join(HISTORY), records);
    pack(&folder.join(RUNNER), &[fault()]);
    let text = serde_json::to_string_pretty(kept).unwrap();
    std::fs::write(folder.join(kept::FILE), text).unwrap();
    folder
}

/// The same with the outcomes of this history, and a change to the description.
fn changed(name: &str, records: &[Record], change: impl FnOnce(&mut Kept)) -> PathBuf {
    let mut kept = kept(records);
    change(&mut kept);
    folder(name, &kept, records)
}

/// Runs the judge and returns its exit code and standard error.
fn judge(folders: &[&Path]) -> (Option<i32>, String) {
    let mut command = common::bench(&["failover-judge"]);
    let output = common::ran(command.args(folders));
    (output.status.code(), told(&output))
}

/// Checks that it ends with this code and these words.
fn ends(folder: &Path, code: Option<i32>, words: &[&str]) {
    let (found, said) = judge(&[folder]);
    assert_eq!(found, code, "{said}");
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
    let problems = said.lines().filter(|line| line.starts_with("FAILED: "));
    assert_eq!(problems.count(), usize::from(code != OK), "{said}");
}

#[test]
fn what_was_found_then_is_found_again() {
    let folder = changed("good", &good(), |_| ());
    let output = common::ran(common::bench(&["failover-judge"]).arg(&folder));
    assert_eq!(output.status.code(), OK, "{}", told(&output));
    assert_eq!(told(&output), "");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let head =
        "restart on standalone, plain via redis-rs (seed 7): 2 attempts, 2 granted, 1 faults";
    assert!(said.starts_with(head), "{said}");
    assert_eq!(said.lines().count(), 1 + Property::ALL.len(), "{said}");
}

#[test]
fn a_broken_promise_fails_unless_it_is_not_required() {
    let exclusion = [Property::ValidityOverlap, Property::UseOverlap];
    let name = |property: Property| property.to_string();
    // One of the two is excused, so that the line is about the other.
    for (property, other) in [(0, 1), (1, 0)] {
        let (property, other) = (exclusion[property], exclusion[other]);
        let reason = "forgotten".to_owned();
        let folder = changed("overlapping", &overlapping(), |kept| {
            kept.excused.insert(name(other), reason);
        });
        let promise = format!("a promise was not kept: {property}: 1 pairs");
        ends(&folder, BROKEN, &[&promise]);
    }
    let folder = changed("excused", &overlapping(), |kept| {
        let excused = exclusion.map(|property| (name(property), "forgotten".to_owned()));
        kept.excused.extend(excused);
    });
    ends(&folder, OK, &[]);
}

/// The final state of servers and data is in no history, so the first outcome counts.
#[test]
fn what_was_left_then_is_no_less_broken_now() {
    let leave = |kept: &mut Kept| {
        let name = Property::Leftovers.to_string();
        kept.outcomes.insert(name, "failed".to_owned());
    };
    let folder = changed("left", &good(), leave);
    let promise = "a promise was not kept: leftovers: as in the run";
    ends(&folder, BROKEN, &[promise]);
    let folder = changed("left-excused", &good(), |kept| {
        leave(kept);
        let name = Property::Leftovers.to_string();
        kept.excused.insert(name, "on purpose".to_owned());
    });
    ends(&folder, OK, &[]);
}

#[test]
fn another_verdict_than_then_fails() {
    let name = Property::GoodWrites.to_string();
    let folder = changed("other", &good(), |kept| {
        kept.outcomes.insert(name.clone(), "passed".to_owned());
    });
    let words = "the verdict changed: good writes: passed then, not judged now";
    ends(&folder, ANOTHER_VERDICT, &[words]);
    // Without a first outcome nothing can differ, but that is no reason to pass.
    let folder = changed("unsaid", &good(), |kept| {
        kept.outcomes.remove(&Property::Outage.to_string());
    });
    let words = format!("the verdict changed: {}: nothing then", Property::Outage);
    ends(&folder, ANOTHER_VERDICT, &[&words]);
}

#[test]
fn a_cell_that_granted_nothing_fails() {
    let mut asked = good();
    asked.retain(|record| matches!(record.event, Event::Started { .. }));
    let folder = changed("no-grants", &asked, |_| ());
    ends(&folder, NOTHING, &["nothing was granted"]);
}

#[test]
fn what_is_not_there_is_named() {
    assert_eq!(judge(&[]).0, USAGE);
    let nowhere = directory("judged-nowhere").join("cell-0");
    ends(&nowhere, INPUT, &["cell-0/cell.json: No such file"]);
    let nothing = changed("nothing", &good(), |kept| kept.histories.clear());
    ends(&nothing, INPUT, &["judged-nothing: no history was kept"]);
    let blank = folder("blank", &kept(&good()), &[]);
    pack(&blank.join(RUNNER), &[]);
    ends(&blank, INPUT, &["judged-blank: the histories are empty"]);
    let lost = changed("lost", &good(), |_| ());
    std::fs::remove_file(lost.join(HISTORY)).unwrap();
    ends(&lost, INPUT, &["process-0.jsonl.gz: No such file"]);
    for elsewhere in ["../other.jsonl.gz", "/other.jsonl.gz", "."] {
        let named = changed("elsewhere", &good(), |kept| {
            kept.histories = vec![elsewhere.into()];
        });
        let words = format!("{elsewhere:?} is not in the folder of the cell");
        ends(&named, INPUT, &["cell.json: ", &words]);
    }
}

/// A compressed file that is cut anywhere is not judged at all.
#[test]
fn what_is_damaged_is_named() {
    let cut = changed("cut", &good(), |_| ());
    let whole = std::fs::read(cut.join(HISTORY)).unwrap();
    for length in [0, 5, whole.len() / 2, whole.len() - 1] {
        std::fs::write(cut.join(HISTORY), &whole[..length]).unwrap();
        ends(&cut, INPUT, &["process-0.jsonl.gz: "]);
    }
    let odd = changed("odd", &good(), |_| ());
    let path = odd.join(kept::FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"seed\"", "\"sead\"")).unwrap();
    ends(&odd, INPUT, &["cell.json: ", "sead"]);
}

/// A file may consist of several compressed parts, as `gzip` allows. The second part must not be
/// skipped.
#[test]
fn all_parts_of_a_compressed_history_are_judged() {
    let folder = changed("parts", &good(), |_| ());
    let first = std::fs::read(folder.join(HISTORY)).unwrap();
    let mut packing = GzEncoder::new(Vec::new(), Compression::default());
    packing.write_all(b"{\"at\": 1}\n").unwrap();
    let second = packing.finish().unwrap();
    std::fs::write(folder.join(HISTORY), [first, second].concat()).unwrap();
    let (code, said) = judge(&[&folder]);
    assert_eq!(code, BROKEN, "{said}");
    let lines = 1 + good().len();
    assert!(
        said.contains(&format!("line {lines}: missing field")),
        "{said}"
    );
}

/// All folders are judged even if one has a problem, and the worst result counts.
#[test]
fn the_worst_of_several_folders_counts() {
    let fine = changed("several-fine", &good(), |_| ());
    let broken = changed("several-broken", &overlapping(), |_| ());
    let nowhere = fine.join("cell-9");
    for (folders, code) in [
        ([&fine, &nowhere], INPUT),
        ([&broken, &nowhere], BROKEN),
        ([&nowhere, &broken], BROKEN),
    ] {
        assert_eq!(judge(&folders.map(PathBuf::as_path)).0, code);
    }
}
