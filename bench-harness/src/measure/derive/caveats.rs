//! What the data itself says against being quoted.

use super::{Group, Spread, groups, rtt};
use crate::measure::model::Report;

/// Spread of the RTT between rounds, in percent, from which on ratios are doubtful.
const RESTLESS_PERCENT: f64 = 15.0;

/// Sentences derived from `report`, shown beside the notes the runner wrote.
#[must_use]
pub fn caveats(report: &Report) -> Vec<String> {
    let mut found = Vec::new();
    if report.cells.iter().all(|cell| cell.rounds.is_empty()) {
        return found;
    }
    let profile = &report.harness.build_profile;
    if profile != "release" {
        found.push(format!(
            "{profile} build: measure with --release before quoting anything."
        ));
    }
    let servers = report
        .cells
        .iter()
        .any(|cell| cell.subject.server.is_some());
    if servers && !report.environment.pinning.pinned {
        found.push(
            "Not pinned: on loopback, round trips of unpinned processes are often bimodal."
                .to_owned(),
        );
    }
    let cores = f64::from(report.environment.logical_cores.max(1));
    if let Some([one, ..]) = report.environment.load_average_at_start
        && one > cores / 2.0
    {
        found.push(format!(
            "Busy machine: load average {one:.2} on {cores} cores at the start."
        ));
    }
    if report.cells.iter().any(|cell| cell.rounds.len() == 1) {
        found.push("Cells with a single round: nothing is known about their noise.".to_owned());
    }
    found.extend(groups(report).iter().filter_map(restless));
    found
}

/// The RTT is the yardstick; while it moves between rounds of a cell, so does everything measured in it.
fn restless(group: &Group<'_>) -> Option<String> {
    let percents = group.rows.iter().filter_map(|row| rtt(row.cell)?.percent());
    let worst = Spread::of(percents)?.max;
    (worst > RESTLESS_PERCENT).then(|| {
        let title = group.title();
        format!(
            "{title}: the RTT moved by ±{worst:.0}% between rounds of one cell; doubt its ratios."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    #[test]
    fn a_quiet_pinned_release_run_has_none() {
        assert_eq!(caveats(synthetic::shared()), Vec::<String>::new());
        assert_eq!(caveats(&synthetic::empty()), Vec::<String>::new());
    }

    #[test]
    fn everything_that_spoils_a_run_is_said() {
        let mut report = synthetic::regressed();
        "debug".clone_into(&mut report.harness.build_profile);
        report.environment.load_average_at_start = Some([3.5, 0.0, 0.0]);
        report.cells[0].rounds.truncate(1);
        if let Some(ping) = &mut report.cells[1].rounds[0].ping {
            ping.summary.p50_ns *= 3;
        }
        let found = caveats(&report);
        for start in [
            "debug build",
            "Not pinned",
            "Busy machine",
            "Cells with",
            "hot-lock: the RTT moved",
        ] {
            assert!(
                found.iter().any(|caveat| caveat.starts_with(start)),
                "{start}: {found:#?}"
            );
        }
    }
}
