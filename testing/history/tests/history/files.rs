//! Histories on disk: what survives a killed process, and the effect of damaged files.

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use locktopus_history::{
    Checker, Event, FailReason, Grant, History, Mode, Property, RecordError, Recorder,
    ReleaseOutcome, Rules, WriteOutcome,
};

use super::lives::{assert_failed, failed};

/// A directory of its own, deleted after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("history-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn grant(recorder: &Recorder, token: u64) -> Grant {
    Grant {
        token: Some(token),
        valid_until: recorder.clock().after(Duration::from_secs(60)),
        mode: Mode::Exclusive,
        safety: "plain".to_owned(),
    }
}

/// Two turns of a worker, with every kind of event that it can record.
fn work(recorder: &Recorder, worker: u32, token: u64) -> Result<(), RecordError> {
    let log = recorder.worker(worker);
    let rules = Rules {
        permits: None,
        fair: true,
    };
    log.declare("a", rules)?;
    log.fault("freeze", "node-1")?;
    log.start("a")?.failed(FailReason::Held, None)?;
    let attempt = log.start_as("a", u64::from(worker))?;
    attempt.enqueued(None)?;
    attempt.granted(grant(recorder, token))?;
    attempt.use_started()?;
    let issued = recorder.clock().now_ns();
    attempt.wrote("r", token, issued, WriteOutcome::Accepted, Some(token))?;
    attempt.extended(recorder.clock().after(Duration::from_secs(70)))?;
    attempt.observed(recorder.clock().after(Duration::from_secs(80)))?;
    attempt.use_ended()?;
    attempt.release_started()?;
    attempt.release_ended(ReleaseOutcome::Ok)?;
    let attempt = log.start("a")?;
    attempt.granted(grant(recorder, token + 1))?;
    attempt.lost("taken over", recorder.clock().now_ns())
}

#[test]
fn many_files_are_one_history() {
    let folder = Folder::new("many");
    let files = [folder.file("1.jsonl"), folder.file("2.jsonl")];
    let recorders = files.each_ref().map(|file| Recorder::create(file).unwrap());
    for (number, recorder) in (1..).zip(&recorders) {
        work(recorder, number, u64::from(number) * 10).unwrap();
    }
    for recorder in &recorders {
        recorder.close().unwrap();
    }
    let history = History::read(&files).unwrap();
    assert!(history.damage().is_empty());
    assert!(history.records().is_sorted_by_key(|record| record.at));
    let verdict = Checker::new().check(&history);
    assert_failed(&verdict, &[]);
    assert_eq!((verdict.facts.workers, verdict.facts.granted), (2, 4));
    assert_eq!((verdict.facts.faults, verdict.facts.failed), (2, 2));
    for property in [
        Property::WellFormed,
        Property::ValidityOverlap,
        Property::FairOrder,
        Property::StaleWrites,
    ] {
        assert!(verdict.passed(property), "{verdict}");
    }
    // The records in memory are the same.
    let memory = Recorder::in_memory();
    work(&memory, 1, 10).unwrap();
    memory.close().unwrap();
    let events = |history: &History, worker| {
        let of = history
            .records()
            .iter()
            .filter(|record| record.worker == worker);
        of.map(|record| std::mem::discriminant(&record.event))
            .collect::<Vec<_>>()
    };
    assert_eq!(events(&memory.history().unwrap(), 1), events(&history, 1));
}

#[test]
fn a_torn_line_is_no_fault() {
    let folder = Folder::new("torn");
    let path = folder.file("1.jsonl");
    let recorder = Recorder::create(&path).unwrap();
    work(&recorder, 1, 10).unwrap();
    recorder.flush().unwrap();
    let whole = fs::read(&path).unwrap();
    let lines = whole.split_inclusive(|&byte| byte == b'\n').count();

    // Cut anywhere in the last line.
    let last = whole[..whole.len() - 1]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .unwrap()
        + 1;
    for cut in last + 1..whole.len() - 1 {
        fs::write(&path, &whole[..cut]).unwrap();
        let history = History::read([&path]).unwrap();
        assert_eq!(history.records().len(), lines - 1);
        let damage = history.damage();
        assert_eq!(
            (damage.len(), damage[0].line, damage[0].torn),
            (1, lines, true)
        );
        let verdict = Checker::new().check(&history);
        assert_failed(&verdict, &[]);
        assert_eq!(verdict.facts.torn, 1);
    }
    // Only the line's end is missing.
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let history = History::read([&path]).unwrap();
    assert_eq!(
        (history.records().len(), history.damage().len()),
        (lines, 0)
    );
}

#[test]
fn rubbish_in_a_file_is_damage() {
    let folder = Folder::new("rubbish");
    let path = folder.file("1.jsonl");
    let recorder = Recorder::create(&path).unwrap();
    work(&recorder, 1, 10).unwrap();
    recorder.flush().unwrap();
    let whole = fs::read(&path).unwrap();
    let lines = whole.split_inclusive(|&byte| byte == b'\n').count();

    for rubbish in [&b"{\"at\":1"[..], b"\xff\xfe", b"", b"[]", b"\0\0\0"] {
        let at = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        let damaged = [&whole[..at], rubbish, b"\n", &whole[at..]].concat();
        fs::write(&path, damaged).unwrap();
        let history = History::read([&path]).unwrap();
        assert_eq!(history.records().len(), lines);
        let damage = history.damage();
        assert_eq!(
            (damage.len(), damage[0].line, damage[0].torn),
            (1, 2, false)
        );
        assert!(
            damage[0].to_string().contains("1.jsonl, line 2"),
            "{}",
            damage[0]
        );
        let verdict = Checker::new().check(&history);
        assert_eq!(failed(&verdict), [(Property::WellFormed, 1)]);
        assert!(verdict.to_string().contains("1.jsonl, line 2"));
        // The same at the end, in a complete line.
        fs::write(&path, [&whole, rubbish, b"\n"].concat()).unwrap();
        let history = History::read([&path]).unwrap();
        assert_eq!(
            (history.damage().len(), history.damage()[0].torn),
            (1, false)
        );
    }
}

#[test]
fn a_file_out_of_order_is_damaged() {
    let folder = Folder::new("order");
    let path = folder.file("1.jsonl");
    let line = |at| format!("{{\"at\":{at},\"worker\":1,\"event\":\"closed\"}}\n");
    fs::write(&path, line(5) + &line(4)).unwrap();
    let history = History::read([&path]).unwrap();
    assert_eq!(history.records().len(), 2);
    assert_eq!((history.damage().len(), history.damage()[0].line), (1, 2));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = Folder::new("named");
    let path = folder.file("none.jsonl");
    let error = History::read([&path]).unwrap_err();
    assert!(error.to_string().contains("none.jsonl"), "{error}");
    fs::write(&path, "").unwrap();
    let error = Recorder::create(&path).unwrap_err();
    assert!(error.to_string().contains("none.jsonl"), "{error}");
    assert!(matches!(error, RecordError::Create { .. }));
}

#[test]
fn nothing_is_recorded_after_the_end() {
    let recorder = Recorder::in_memory();
    let worker = recorder.worker(3);
    // The same worker, not another one: numbers of attempts continue.
    worker
        .start("a")
        .unwrap()
        .failed(FailReason::Error, None)
        .unwrap();
    let again = recorder.worker(3).start("a").unwrap();
    again.failed(FailReason::Cancelled, None).unwrap();
    let unheard = recorder.worker(4);
    recorder.close().unwrap();
    let history = recorder.history().unwrap();
    let last = history.records().last().unwrap();
    assert_eq!((last.worker, &last.event), (3, &Event::Closed));
    assert!(unheard.start("a").is_err());
    let error = worker.start("a").unwrap_err();
    assert!(matches!(error, RecordError::Closed), "{error}");
    let verdict = Checker::new().check(&recorder.history().unwrap());
    assert_failed(&verdict, &[]);
    assert_eq!(verdict.facts.failed, 2);
}

const CHILD: &str = "LOCKTOPUS_HISTORY_CHILD";

/// The process that the other test kills.
#[test]
#[ignore = "the process that another test kills"]
fn child() {
    let path = std::env::var_os(CHILD).expect("started by another test");
    let recorder = Recorder::create(path).unwrap();
    let worker = recorder.worker(1);
    let waiting = worker.start("b").unwrap();
    let attempt = worker.start("a").unwrap();
    attempt.granted(grant(&recorder, 1)).unwrap();
    attempt.use_started().unwrap();
    // Not yet handed to the kernel, and lost: 100 records are less than the buffer.
    for _ in 0..100 {
        waiting.enqueued(None).unwrap();
    }
    println!("\ninside");
    std::io::stdout().flush().unwrap();
    // Until it is killed.
    let _ = std::io::stdin().read_line(&mut String::new());
    unreachable!("nobody writes");
}

#[test]
fn a_grant_survives_the_kill_of_its_process() {
    let folder = Folder::new("kill");
    let path = folder.file("1.jsonl");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "files::child", "--ignored", "--nocapture"])
        .env(CHILD, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "inside"));
    child.kill().unwrap();
    child.wait().unwrap();

    let history = History::read([&path]).unwrap();
    let events: Vec<_> = history
        .records()
        .iter()
        .map(|record| &record.event)
        .collect();
    assert!(matches!(
        events[..],
        [
            Event::Opened { .. },
            Event::Started { attempt: 0, .. },
            Event::Started { attempt: 1, .. },
            Event::Granted { attempt: 1, .. }
        ]
    ));
    let verdict = Checker::new().check(&history);
    assert_failed(&verdict, &[]);
    assert_eq!((verdict.facts.granted, verdict.facts.open_attempts), (1, 1));
}
