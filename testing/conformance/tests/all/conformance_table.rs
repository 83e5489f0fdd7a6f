//! The conformance table comes from the suite's reports, and its check can fail.

#[path = "../../examples/conformance_table/table.rs"]
mod table;

use std::sync::Arc;

use locktopus_conformance::{Flavour, Setting, Suite};
use locktopus_core::DynBackend;
use locktopus_memory::MemoryBackend;
use table::{Table, wanted};

/// The lines of a passed run, for every setting that the check requires.
fn all_passed(pods: bool) -> String {
    let mut lines = String::new();
    for place in wanted(pods) {
        let place = place.to_string();
        let parts: Vec<_> = place.split(", ").collect();
        for kind in Flavour::ALL {
            lines.push_str(&line(&parts, kind.as_str(), 7, 7));
        }
    }
    lines
}

fn line(place: &[&str], kind: &str, passed: u64, total: u64) -> String {
    let [backend, topology, provider, server, client] = place else {
        panic!("{place:?} is no place")
    };
    format!(
        "{{\"backend\":\"{backend}\",\"topology\":\"{topology}\",\"provider\":\"{provider}\",\
         \"client\":\"{client}\",\"server\":\"{server}\",\"kind\":\"{kind}\",\"passed\":{passed},\
         \"total\":{total},\"skipped\":1}}\n"
    )
}

fn problems(lines: &str, pods: bool) -> Vec<String> {
    let table = Table::recorded(lines).unwrap();
    let written = Table::written(&table.markdown()).unwrap();
    assert_eq!(written, table, "the table does not survive being written");
    written.problems(&wanted(pods))
}

#[test]
fn a_complete_table_has_no_problems() {
    for pods in [false, true] {
        assert_eq!(problems(&all_passed(pods), pods), [""; 0]);
    }
    assert!(!problems(&all_passed(false), true).is_empty(), "no pods");
}

#[test]
fn a_failure_is_a_problem() {
    let mut lines = all_passed(false);
    lines.push_str(&line(&["memory", "-", "-", "-", "-"], "latch", 6, 7));
    assert_eq!(
        problems(&lines, false),
        ["1 of 7 cases failed: latch on memory, -, -, -, -"]
    );
}

#[test]
fn a_missing_place_is_a_problem() {
    let lines = all_passed(false);
    let without = lines.lines().filter(|line| !line.contains("sentinel"));
    let without: Vec<_> = without.collect();
    let found = problems(&without.join("\n"), false);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|p| p.contains("not run: redis, sentinel")));
}

#[test]
fn a_missing_kind_is_a_problem() {
    let lines = all_passed(false);
    let without = lines
        .lines()
        .filter(|line| !(line.contains("memory") && line.contains("rw_lock")));
    let without: Vec<_> = without.collect();
    assert_eq!(
        problems(&without.join("\n"), false),
        ["not run: rw_lock on memory, -, -, -, -"]
    );
}

#[test]
fn a_quorum_needs_its_mutexes_and_nothing_else() {
    let lines = all_passed(false);
    let quorum = "\"topology\":\"quorum\"";
    let without = |kept: &[&str]| {
        let keeps = |line: &&str| {
            let offered = |kind: &&str| line.contains(&format!("\"kind\":\"{kind}\""));
            !line.contains(quorum) || kept.iter().any(offered)
        };
        let lines: Vec<_> = lines.lines().filter(keeps).collect();
        problems(&lines.join("\n"), false)
    };
    assert_eq!(without(&["mutex", "single_key"]), [""; 0]);
    assert_eq!(
        without(&["single_key", "lock"]),
        ["not run: mutex on redis, quorum, plain, , redis-rs + fred"]
    );
}

#[test]
fn cases_that_did_not_run_are_a_problem() {
    let mut lines = all_passed(false);
    lines.push_str(&line(&["memory", "-", "-", "-", "-"], "mutex", 0, 0));
    assert_eq!(
        problems(&lines, false),
        ["no case ran: mutex on memory, -, -, -, -"]
    );
}

#[test]
fn what_is_no_line_or_no_table_is_refused() {
    assert!(Table::recorded("{}").is_err());
    assert!(Table::recorded("nonsense").is_err());
    assert!(Table::written("# nothing").is_err());
    let table = Table::recorded(&all_passed(false)).unwrap();
    assert!(Table::written(&table.markdown().replace("7/7", "all")).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_run_is_recorded_kind_by_kind() {
    let store = MemoryBackend::new();
    let suite = Suite::new(move || {
        let client = store.another_client();
        async move { Arc::new(client) as DynBackend }
    });
    let report = suite.only("blocks::").run().await;
    let path = std::env::temp_dir().join(format!("conformance-{}.jsonl", std::process::id()));
    let setting = Setting::embedded("a \"quoted\" backend");
    report.record_in(&path, &setting).unwrap();
    report.record_in(&path, &setting).unwrap();
    let lines = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        lines.lines().count(),
        2 * Flavour::WITH_TOKENS.len(),
        "{lines}"
    );
    let table = Table::recorded(&lines).unwrap();
    let text = table.markdown();
    assert!(text.contains("a \"quoted\" backend | - "), "{text}");
    assert_eq!(
        text.matches("5/5").count(),
        Flavour::WITH_TOKENS.len(),
        "{text}"
    );
}
