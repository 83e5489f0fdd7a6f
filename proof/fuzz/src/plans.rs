//! Configuration files of the harness.

use bench_harness::failover::plan::PlanFile;
use bench_harness::measure::plan::{Filter, ScenarioFile};

use crate::input::{Input, text};

/// Shipped files, whose lines are changed.
const SCENARIOS: [&str; 2] = [
    include_str!("../../../bench-harness/scenarios/smoke.toml"),
    include_str!("../../../bench-harness/scenarios/quick.toml"),
];
const PLANS: [&str; 2] = [
    include_str!("../../../bench-harness/failover/smoke.toml"),
    include_str!("../../../bench-harness/failover/quick.toml"),
];

/// A byte for the kind of file; a byte for the file; a byte for one of its lines, or 255 for no
/// file at all; a byte that is odd to replace the whole line; then the new text: a value or a line.
///
/// Any file is either read or refused. The error names the file, and the key if its value has the
/// wrong type.
///
/// # Panics
///
/// If this rule is broken.
pub fn plans(data: &[u8]) {
    let mut input = Input::new(data);
    let failover = input.byte() % 2 == 1;
    let files = if failover { PLANS } else { SCENARIOS };
    let (file, line, whole) = (*input.one_of(&files), input.byte(), input.byte() % 2 == 1);
    let written = text(input.rest()).into_owned();
    if line == u8::MAX {
        let _ = read(failover, &written);
        return;
    }
    // On one line, so that any error is about that line.
    let written = written.replace(['\n', '\r'], " ");
    // Without keys whose value continues on the next line.
    let keys: Vec<_> = file
        .lines()
        .enumerate()
        .filter(|(_, line)| line.parse::<toml::Table>().is_ok())
        .filter_map(|(at, line)| Some((at, line.split_once(" = ")?.0)))
        .collect();
    let (at, key) = keys[usize::from(line) % keys.len()];
    let changed = if whole {
        written.clone()
    } else {
        format!("{key} = {written}")
    };
    let lines = file.lines().enumerate();
    let lines = lines.map(|(number, line)| if number == at { changed.as_str() } else { line });
    let lines: Vec<_> = lines.collect();
    let Err(problem) = read(failover, &lines.join("\n")) else {
        return;
    };
    // Without the line, another one may lack its value or be in another table, and an invalid value
    // may continue on the next line. Errors of rules are about several keys; they start with the
    // table, or say that two have the same name.
    let said = problem.split_once(": ").map_or("", |(_, said)| said);
    let is_a_rule = said.starts_with('[') || said.starts_with("two scenarios");
    if !is_a_rule && !whole && format!("key = {written}").parse::<toml::Table>().is_ok() {
        assert!(
            problem.contains(key.trim()),
            "{key} = {written:?} is wrong, and the error says: {problem}"
        );
    }
}

/// The problem of a file.
fn read(failover: bool, file: &str) -> Result<(), String> {
    const NAME: &str = "some-plan.toml";
    let problem = if failover {
        let plan = PlanFile::parse(file, NAME);
        plan.map(|plan| drop(format!("{plan:?}")))
            .map_err(|error| error.to_string())
    } else {
        let plan = ScenarioFile::parse(file, NAME);
        let tasks = plan.map(|plan| plan.tasks(&Filter::default()));
        tasks
            .map(|tasks| drop(format!("{tasks:?}")))
            .map_err(|error| error.to_string())
    };
    problem.inspect_err(|problem| {
        assert!(
            problem.contains(NAME),
            "the error does not say in which file: {problem}"
        );
    })
}
