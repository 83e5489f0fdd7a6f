//! Fault runs on real servers, each short.

use crate::common;
use std::path::Path;
use std::process::Output;

use crate::common::{directory, told};
use bench_harness::failover::model::{self, CellReport, FailoverReport};
use bench_harness::failover::page;
use bench_harness::failover::plan::{Cell, Choice, Place, PlanFile, Subject, Verb};
use bench_harness::failover::report::terminal;
use bench_harness::shared::render::table::Style;
use locktopus_servers::topology::{self, ProviderKind, clock_or_skip};

/// Enough for a busy machine; the runs themselves take seconds.
fn failover(arguments: &[&str]) -> Output {
    common::ran(&mut common::bench(arguments))
}

/// Runs cells and returns the report, and how the run ended.
fn run(name: &str, arguments: &[&str]) -> (FailoverReport, Output) {
    let out = directory(name);
    let mut all = vec!["failover", "--out", out.to_str().expect("a path in UTF-8")];
    all.extend(arguments);
    let output = failover(&all);
    let report = model::read(&out.join("report.json"));
    let report = report.unwrap_or_else(|error| panic!("{error}\n{output:?}"));
    (report, output)
}

fn broken() -> String {
    format!("{}/failover/broken.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Each takes other servers or another fault than those of `planted.rs`.
#[test]
fn locks_that_are_broken_on_purpose_are_caught_by_what_they_break() {
    let expected = [
        ("broken-release", "validity"),
        ("broken-validity", "validity"),
        ("broken-tokens", "tokens"),
        ("broken-rejoin", "validity"),
    ];
    let subjects = expected.map(|(subject, _)| subject).join(",");
    let (report, output) = run("broken", &["--file", &broken(), "--subject", &subjects]);
    assert!(output.status.success(), "{}", told(&output));
    assert_eq!(report.cells.len(), expected.len(), "{}", told(&output));
    for (subject, by) in expected {
        let mut cells = report.cells.iter();
        let cell = cells.find(|cell| cell.subject.name() == subject);
        let caught = &cell.expect(subject).caught;
        assert!(
            caught.iter().any(|one| one.starts_with(by)),
            "{subject}: {caught:?}"
        );
    }
}

/// From end to end: servers, workers, faults, checker, report in every format.
#[test]
fn a_restart_is_survived_and_reported() {
    let chosen = ["--smoke", "--scenario", "restart,isolate-clients"];
    let (report, output) = run("restart", &chosen);
    assert!(output.status.success(), "{}", told(&output));
    let cell = &report.cells[0];
    assert_eq!(cell.figures.faults, 2);
    assert!(cell.server.contains(' '), "{:?}", cell.server);
    assert!(cell.figures.granted > 10, "{cell:#?}");
    assert_eq!(cell.figures.writes.missed, 0);
    assert_eq!(cell.figures.lost_checked.lost, 0);
    assert_eq!(cell.happened["restart"], 2);
    let skipped: Vec<_> = report.skipped.iter().map(|skip| &*skip.needs).collect();
    assert!(
        skipped.iter().any(|needs| needs.contains("--provider pod")),
        "{skipped:?}"
    );
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        table.contains("restart") && table.contains("Skipped"),
        "{table}"
    );
}

#[test]
fn a_clock_that_is_set_costs_exclusion_and_no_update_behind_the_fence() {
    if !clock_or_skip().expect("libfaketime, which scripts/test installs") {
        return;
    }
    let (report, output) = run("clock", &["--smoke", "--scenario", "step-clock"]);
    assert!(output.status.success(), "{}", told(&output));
    let cell = &report.cells[0];
    assert_eq!(cell.figures.faults, 2);
    assert_eq!(cell.figures.writes.missed, 0);
    assert_eq!(cell.figures.lost_checked.lost, 0);
    let happened = &cell.happened;
    assert!(happened.contains_key("2s ahead"), "{happened:?}");
}

#[test]
fn processes_that_stop_and_die_are_survived() {
    let (report, output) = run(
        "holders",
        &["--smoke", "--scenario", "stop-holder,kill-holder"],
    );
    assert!(output.status.success(), "{}", told(&output));
    let faults: Vec<_> = report
        .cells
        .iter()
        .map(|cell| cell.figures.faults)
        .collect();
    assert_eq!(faults, [1, 1]);
    let figures = |cell: &CellReport| (cell.figures.writes.missed, cell.figures.leftovers);
    assert!(report.cells.iter().all(|cell| figures(cell) == (0, 0)));
    assert!(report.cells[0].figures.permits_checked > 0);
    assert_eq!(report.cells[0].figures.permits_over, 0);
}

#[test]
fn a_sentinel_failover_is_survived_and_reported() {
    let chosen = ["--smoke", "--topology", "sentinel", "--client", "redis-rs"];
    let (report, output) = run("sentinel", &chosen);
    assert!(output.status.success(), "{}", told(&output));
    let [cell] = report.cells.as_slice() else {
        panic!("{:?}", report.cells);
    };
    assert_eq!(cell.figures.faults, 1);
    assert!(cell.figures.outage.max_ns > 0);
    assert_eq!(cell.figures.writes.missed, 0);
    let happened = &cell.happened;
    for what in ["kill-primary", "promoted", "back"] {
        assert!(happened.contains_key(what), "{happened:?}");
    }
}

/// With this library's own routing, and with the cluster connection of redis-rs.
#[test]
fn a_cluster_failover_is_survived_with_either_router() {
    let clients = "redis-rs,redis-rs-router";
    let chosen = ["--smoke", "--topology", "cluster", "--client", clients];
    let (report, output) = run("cluster", &chosen);
    assert!(output.status.success(), "{}", told(&output));
    let seen: Vec<_> = report.cells.iter().map(|cell| &*cell.client).collect();
    assert_eq!(seen, ["redis-rs", "redis-rs-router"]);
    for cell in &report.cells {
        assert_eq!(cell.figures.faults, 1);
        assert!(cell.figures.outage.max_ns > 0);
        assert_eq!(cell.figures.writes.missed, 0);
    }
}

/// A figure that is broken over two lines reads as two.
#[test]
fn tables_are_read_in_any_terminal() {
    let folder = format!("{}/failover", env!("CARGO_MANIFEST_DIR"));
    let report = model::read(&Path::new(&folder).join("run-1.json")).unwrap();
    let mut figures: Vec<_> = Vec::new();
    for cell in &report.cells {
        let tokens = &cell.figures;
        figures.push(format!(
            "{} / {} / {}",
            tokens.duplicate_tokens, tokens.falling_tokens, tokens.unordered_tokens
        ));
        let lost = &tokens.lost_unchecked;
        figures.push(format!("{} of ", lost.lost));
    }
    assert!(figures.len() > 4);
    for width in [80, 100, 132, 250] {
        let colour = false;
        let text = terminal::render(&report, Style { width, colour });
        for line in text.lines() {
            let columns = line.chars().count();
            assert!(columns <= usize::from(width), "{width}: {line}\n{text}");
        }
        for figure in &figures {
            assert!(text.contains(figure), "{width}: {figure}\n{text}");
        }
    }
}

fn with(provider: ProviderKind) -> Choice {
    Choice {
        provider: Some(provider),
        ..Choice::default()
    }
}

/// The default plan skips nothing because of the provider, with processes and with containers.
#[tokio::test]
async fn the_quick_plan_has_nothing_that_its_provider_cannot_do() {
    let plan = PlanFile::parse(include_str!("../../failover/quick.toml"), "quick").unwrap();
    let mut caps = topology::caps(ProviderKind::Plain).await.unwrap();
    for (provider, isolates) in [(ProviderKind::Plain, false), (ProviderKind::Pod, true)] {
        (caps.peer_partition, caps.client_cut) = (isolates, isolates);
        caps.set_clock = !isolates;
        let cells = plan.cells(&with(provider)).unwrap();
        for cell in &cells {
            let missing = || cell.scenario.needs(caps);
            let needs = cell.cannot.as_deref().or_else(missing);
            assert_eq!(needs, None, "{}", cell.describe());
            let is_far = !cell.scenario.servers.round_trip.is_zero();
            assert!(!is_far || !isolates, "{}", cell.describe());
        }
        let split = |cell: &&Cell| cell.scenario.fault == Verb::IsolatePrimary;
        assert_eq!(
            cells.iter().any(|cell| split(&cell)),
            isolates,
            "{provider}"
        );
    }
    // A cell that the flags name says what it needs.
    let asked = Choice {
        scenarios: vec!["isolate-primary".to_owned()],
        ..with(ProviderKind::Plain)
    };
    assert_eq!(plan.cells(&asked).unwrap().len(), 4);
}

#[test]
fn the_plans_that_come_along_are_good() {
    let plans = format!("{}/failover", env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for entry in std::fs::read_dir(plans).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let plan = PlanFile::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let cells = plan.cells(&Choice::default()).unwrap();
        assert!(!cells.is_empty(), "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 5, "{seen}");
    let broken = PlanFile::load(Path::new(&broken())).unwrap();
    let cells = broken.cells(&Choice::default()).unwrap();
    let subjects: Vec<_> = cells.iter().map(|cell| cell.subject).collect();
    for subject in Subject::ALL.iter().filter(|subject| subject.is_broken()) {
        assert!(subjects.contains(subject), "{subject}");
    }
}

#[test]
fn bad_plans_are_told_by_name() {
    let good = include_str!("../../failover/broken.toml");
    for (from, to, named) in [
        (
            "hold = [\"1500ms\", \"1500ms\"]",
            "hold = [\"2s\", \"1s\"]",
            "shortest",
        ),
        ("lease = \"1s\"", "lease = \"1ms\"", "20ms"),
        ("modes = [\"plain\"]", "modes = [\"best\"]", "[mode.best]"),
        ("fault = \"restart\"", "fault = \"reboot\"", "reboot"),
        ("fault = \"restart\"", "fault = \"move-slot\"", "standalone"),
        (
            "clients = [\"redis-rs\"]",
            "clients = [\"memory\"]",
            "memory",
        ),
        ("lasts = \"6s\"", "lasts = \"2 moons\"", "lasts"),
        (
            "lock_group = [{ name = \"long\", workers",
            "lock_group = [{ name = \"long\", readers = 2.0, workers",
            "readers",
        ),
        ("seed = 7", "sead = 7", "sead"),
        (
            "seed = 7",
            "planted = [\"broken-vow\"]",
            "broken.toml has no \"broken-vow\"",
        ),
        ("faults = 2", "faults = 0", "at least 1"),
        ("target = true", "target = false", "target"),
    ] {
        assert!(good.contains(from), "{from}");
        let text = good.replacen(from, to, 1);
        let error = PlanFile::parse(&text, "x.toml").unwrap_err().to_string();
        assert!(
            error.contains(named) && error.contains("x.toml"),
            "{to}: {error}"
        );
    }
}

#[test]
fn the_quick_matrix_has_every_mode_on_every_kind_of_servers() {
    let output = failover(&["failover", "--quick", "--list"]);
    assert!(output.status.success(), "{}", told(&output));
    let quick = String::from_utf8_lossy(&output.stdout);
    for mode in ["plain", "replicated", "replicated-all", "quarantine"] {
        for (place, client) in [
            ("sentinel", "redis-rs"),
            ("sentinel", "fred"),
            ("cluster", "redis-rs"),
            ("cluster", "fred"),
        ] {
            let cell = format!("kill-primary on {place}, {mode} via {client}:");
            assert!(quick.contains(&cell), "{cell}\n{quick}");
        }
    }
    for client in ["redis-rs", "fred"] {
        let cell = format!("restart-majority on quorum, quorum via {client}:");
        assert!(quick.contains(&cell), "{cell}\n{quick}");
    }
}

#[test]
fn only_mutexes_are_asked_of_a_quorum() {
    let good = include_str!("../../failover/smoke.toml");
    let (before, quorum) = good.split_at(good.find("\"quorum\"]").unwrap());
    let asked = quorum.replacen(
        "name = \"long\",",
        "name = \"long\", kind = \"rw_lock\",",
        1,
    );
    let error = PlanFile::parse(&format!("{before}{asked}"), "x.toml").unwrap_err();
    assert!(error.to_string().contains("no rw_lock"), "{error}");
}

#[test]
fn a_page_shows_a_run_or_is_told_to() {
    let report: FailoverReport = serde_json::from_str(SUMMARY).unwrap();
    let page = format!("# Safety\n\n{}\nold\n{}\n\nend\n", page::BEGIN, page::END);
    let new = page::with_table(&page, std::slice::from_ref(&report)).unwrap();
    assert!(
        new.contains("| kill-primary | sentinel | plain | redis-rs | 200 | 350"),
        "{new}"
    );
    assert!(new.starts_with("# Safety") && new.ends_with("end\n") && !new.contains("\nold\n"));
    assert_eq!(
        page::with_table(&new, std::slice::from_ref(&report)).unwrap(),
        new
    );
    assert!(page::with_table("nothing", std::slice::from_ref(&report)).is_err());
}

/// One line for each mode, with both clients and all scenarios, by the kind of fault; other
/// libraries are left out.
#[test]
fn a_page_begins_with_what_all_of_it_comes_to() {
    let mut report: FailoverReport = serde_json::from_str(SUMMARY).unwrap();
    let mut cell = report.cells[0].clone();
    (cell.mode, cell.client) = ("plain".to_owned(), "redis-rs".to_owned());
    (cell.figures.faults, cell.figures.faults_with_double_grants) = (200, 70);
    (cell.figures.writes.caught, cell.figures.writes.missed) = (3_000, 1);
    let mut other = cell.clone();
    other.client = "fred".to_owned();
    other.figures.faults_with_double_grants = 30;
    let mut cluster = cell.clone();
    cluster.topology = Place::Cluster;
    let mut orderly = cell.clone();
    orderly.fault = Verb::PlannedFailover;
    orderly.mode = "quarantine".to_owned();
    orderly.figures.faults_with_double_grants = 0;
    let mut theirs = cell.clone();
    theirs.subject = Subject::R1;
    report.cells = vec![cell, other, cluster, orderly, theirs];
    let page = format!("{}\n{}", page::BEGIN, page::END);
    let page = page::with_table(&page, &[report]).unwrap();
    let (sums, _) = page.split_once("\nRun ").unwrap();
    let lines: Vec<_> = sums
        .lines()
        .filter(|line| line.contains("imaries") || line.contains("orderly"))
        .collect();
    let begins = [
        "| plain | primaries of Sentinel killed | 400 | 100 | 250 (210–295) | 6,000 / 2 |",
        "| plain | primaries of a cluster killed | 200 | 70 | 350 (287–418) | 3,000 / 1 |",
        "| quarantine | orderly changes by Sentinel | 200 | 0 | 0 (0–19) | 3,000 / 1 |",
    ];
    assert_eq!(lines.len(), begins.len(), "{sums}");
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}");
    }
}

#[test]
fn what_was_done_again_is_shown_again_and_what_was_not_kept_is_told() {
    let mut first: FailoverReport = serde_json::from_str(SUMMARY).unwrap();
    for who in ["redis-rs", "nobody"] {
        first.skip(
            format!("kill-primary on sentinel, plain via {who}"),
            "power".to_owned(),
        );
    }
    let mut again = first.clone();
    again.skipped.clear();
    again.run.id = "the-second".to_owned();
    again.cells.truncate(1);
    again.cells[0].trouble = vec!["stopped after 1 of 2 faults: no power".to_owned()];
    let page = format!("{}\n{}", page::BEGIN, page::END);
    let rows = |page: &str| {
        page.matches("| kill-primary | sentinel | plain | redis-rs |")
            .count()
    };
    let page = page::with_table(&page, &[first.clone(), again]).unwrap();
    assert_eq!(rows(&page), 2, "{page}");
    let (before, after) = page.split_once("Run the-second").unwrap();
    assert!(
        rows(before) == 1 && before.contains(&first.run.id),
        "{page}"
    );
    assert!(
        after.contains("- kill-primary on sentinel, plain, redis-rs: stopped after 1"),
        "{page}"
    );
    assert!(
        before
            .ends_with("Skipped:\n\n- kill-primary on sentinel, plain via nobody: needs power\n\n"),
        "{page}"
    );
}

/// A change to the page or to the run must change both.
#[test]
fn the_guide_shows_the_run_that_is_kept_with_it() {
    let root = format!("{}/..", env!("CARGO_MANIFEST_DIR"));
    let page = format!("{root}/docs/safety.md");
    let kept = std::fs::read_dir(format!("{root}/bench-harness/failover")).unwrap();
    let kept = kept.map(|entry| entry.unwrap().path().display().to_string());
    let mut runs: Vec<_> = kept.filter(|path| path.ends_with(".json")).collect();
    runs.sort();
    let mut args = vec!["failover-report"];
    args.extend(runs.iter().map(String::as_str));
    args.extend(["--page", &page, "--check"]);
    let output = failover(&args);
    assert!(output.status.success(), "{}", told(&output));
}

/// The sentences of docs/safety.md under *What the tables say*, as far as they praise a mode.
#[test]
fn what_the_guide_says_of_its_tables_is_so() {
    let kept = format!("{}/failover", env!("CARGO_MANIFEST_DIR"));
    let kept = std::fs::read_dir(kept).unwrap();
    let kept = kept.map(|entry| entry.unwrap().path());
    let runs: Vec<FailoverReport> = kept
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .map(|path| model::read(&path).unwrap())
        .collect();
    let cells = || runs.iter().flat_map(|run| &run.cells);
    let ours = || cells().filter(|cell| cell.subject == Subject::Locktopus);
    let mut promised = 0;
    for cell in ours() {
        let of = &cell.figures;
        let name = format!("{} on {}, {}", cell.scenario, cell.topology, cell.who());
        assert_eq!(
            of.writes.missed, 0,
            "{name}: tokens catch every stale write"
        );
        assert_eq!(of.lost_checked.lost, 0, "{name}: checked updates are lost");
        if cell.exclusive {
            promised += of.faults;
            assert_eq!(
                of.faults_with_double_grants, 0,
                "{name}: {:?}",
                cell.broken_promises
            );
            assert_eq!(of.tokens_out_of_order(), 0, "{name}");
        }
    }
    assert!(
        promised > 500,
        "{promised} faults say little of modes that promise exclusion"
    );
}

const SUMMARY: &str = include_str!("../data/failover-summary.json");
