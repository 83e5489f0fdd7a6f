//! Renders recorded runs of the suite as the table `docs/conformance.md`, and checks that table.
//!
//! ```text
//! conformance_table render RUNS.jsonl TABLE.md
//! conformance_table check TABLE.md [--without-pods]
//! ```

mod table;

use std::fs;
use std::process::ExitCode;

use table::{Table, wanted};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["render", runs, table] => render(runs, table),
        ["check", table] => check(table, true),
        ["check", table, "--without-pods"] => check(table, false),
        _ => Err("usage: render RUNS.jsonl TABLE.md | check TABLE.md [--without-pods]".to_owned()),
    };
    match done {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn render(runs: &str, path: &str) -> Result<String, String> {
    let table = Table::recorded(&read(runs)?).map_err(|error| format!("{runs}: {error}"))?;
    fs::write(path, table.markdown()).map_err(|error| format!("{path}: {error}"))?;
    Ok(format!("wrote {path}"))
}

fn check(path: &str, pods: bool) -> Result<String, String> {
    let table = Table::written(&read(path)?).map_err(|error| format!("{path}: {error}"))?;
    let problems = table.problems(&wanted(pods));
    if problems.is_empty() {
        return Ok(format!(
            "{path}: every place is there, and every case passed"
        ));
    }
    Err(format!("{path}:\n  {}", problems.join("\n  ")))
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}
