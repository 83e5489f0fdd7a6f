//! Runs the faults that overlap: the scenarios of the plan in a few harnesses at the same time. One after the other they would take
//! twice as long, and much of that is waiting.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{environment, failover};

/// So many at a time: more would only wait for the processors.
const AT_ONCE: usize = 3;
/// Where reports and histories are left.
const FOLDER: &str = "target/prove-nemesis";
const PLAN: &str = "bench-harness/failover/nemesis.toml";

/// Their reports, each in a line, and whether all ended well.
///
/// # Errors
///
/// If one could not be begun, or left no report.
pub(crate) fn run(root: &Path) -> Result<(String, bool), String> {
    let folder = root.join(FOLDER);
    let failed = |error: std::io::Error| format!("{FOLDER}: {error}");
    // What an earlier run left there is not what comes of this one.
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let plan = std::fs::read_to_string(root.join(PLAN)).map_err(failed)?;
    let scenarios = scenarios(&plan)?;
    // The plan begins with the longest.
    let begun = (0..AT_ONCE.min(scenarios.len())).map(|turn| {
        let mut command = Command::new("scripts/failover");
        command.args(["--nemesis", "--keep-histories"]);
        environment::as_the_level_says(&mut command);
        for scenario in scenarios.iter().skip(turn).step_by(AT_ONCE) {
            command.args(["--scenario", scenario]);
        }
        let out = folder.join(turn.to_string());
        command.arg("--out").arg(&out);
        command.current_dir(root).stdin(Stdio::null());
        command
            .stdout(Stdio::null())
            .spawn()
            .map(|child| (child, out))
    });
    // All are begun before one is waited for, and all are waited for whatever becomes of one.
    let begun: Vec<_> = begun.collect();
    let ended: Vec<_> = begun
        .into_iter()
        .map(|begun| begun.and_then(|(mut child, out)| child.wait().map(|status| (status, out))))
        .collect();
    let (mut said, mut passed) = (Vec::new(), true);
    for ended in ended {
        let (status, out) = ended.map_err(failed)?;
        passed &= status.success();
        let report = out.join("summary.json");
        let text = std::fs::read_to_string(&report)
            .map_err(|error| format!("no report, {}: {error}", report.display()))?;
        said.push(failover::one_line(&text)?);
    }
    Ok((said.join("\n"), passed))
}

/// The names of the scenarios of a plan.
fn scenarios(plan: &str) -> Result<Vec<&str>, String> {
    let names = plan
        .lines()
        .filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let names: Vec<_> = names.collect();
    match names.len() == plan.matches("[[scenario]]").count() && !names.is_empty() {
        true => Ok(names),
        false => Err(format!(
            "{PLAN}: {} scenarios have a name: {names:?}",
            names.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_of_the_plan_is_run() {
        let plan = include_str!("../../../bench-harness/failover/nemesis.toml");
        let names = scenarios(plan).expect("the plan names its scenarios");
        assert!(names.contains(&"nemesis-failover") && names.contains(&"nemesis-broken"));
        assert!(scenarios(&plan.replace("name = \"nemesis-quorum\"", "")).is_err());
        assert!(scenarios("").is_err());
    }
}
