//! CSV: one row per cell, round and operation, in the units of the model.

use crate::measure::derive::{Measure, Quantile};
use crate::measure::model::{Cell, Report, Round, StoredHistogram, op};
use crate::measure::record::{jain, max_over_min};

/// Column names, in order. Durations are integers of nanoseconds.
pub const COLUMNS: [&str; 48] = [
    "run_id",
    "scenario",
    "strategy",
    "client",
    "topology",
    "nodes",
    "provider",
    "server",
    "server_version",
    "lock_kind",
    "workers",
    "processes",
    "locks",
    "hold_ns",
    "through_proxy",
    "options",
    "round",
    "position",
    "pacing",
    "omission_corrected",
    "duration_ns",
    "ping_p50_ns",
    "operation",
    "count",
    "min_ns",
    "mean_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p999_ns",
    "max_ns",
    "p50_rtt",
    "p99_rtt",
    "acquisitions",
    "acquisitions_per_s",
    "commands_per_acquisition",
    "commands_with_scripts_per_acquisition",
    "server_cpu_ns_per_acquisition",
    "script_p50_ns",
    "script_p99_ns",
    "client_cpu_ns_per_acquisition",
    "client_memory_bytes",
    "write_share",
    "jain",
    "max_over_min",
    "holds_checked",
    "overlaps",
    "errors",
];

/// From `ping_p50_ns` to `p99_rtt`.
const LATENCY_COLUMNS: usize = 12;

/// Renders `report`. A round without operations has one row, too.
///
/// # Errors
///
/// Any error of the CSV writer; writing to memory does not fail.
pub fn render(report: &Report) -> Result<String, ::csv::Error> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for cell in &report.cells {
        for round in &cell.rounds {
            for (name, stored) in &round.operations {
                writer.write_record(row(report, cell, round, Some((name, stored))))?;
            }
            if round.operations.is_empty() {
                writer.write_record(row(report, cell, round, None))?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn row(
    report: &Report,
    cell: &Cell,
    round: &Round,
    operation: Option<(&str, &StoredHistogram)>,
) -> Vec<String> {
    let subject = &cell.subject;
    let options: Vec<_> = subject
        .options
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    let errors: Vec<_> = round
        .errors
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    let text = str::to_owned;
    let server = subject.server.as_ref();
    let mut row = vec![
        report.run.id.clone(),
        subject.scenario.clone(),
        subject.strategy.clone(),
        subject.client.clone(),
        text(subject.topology.name()),
        subject.nodes.to_string(),
        text(subject.provider.name()),
        server.map_or_else(String::new, |server| server.flavour.clone()),
        server.map_or_else(String::new, |server| server.version.clone()),
        subject.lock_kind.clone(),
        subject.workers.to_string(),
        subject.processes.to_string(),
        subject.locks.to_string(),
        subject.hold_ns.to_string(),
        subject.through_proxy.to_string(),
        options.join(";"),
        round.index.to_string(),
        round.position.to_string(),
        subject.pacing.describe(),
        subject.pacing.is_corrected().to_string(),
        round.duration_ns.to_string(),
    ];
    row.extend(latency_columns(round, operation));
    row.extend(cell_columns(round));
    row.push(errors.join(";"));
    row
}

fn latency_columns(round: &Round, operation: Option<(&str, &StoredHistogram)>) -> Vec<String> {
    let rtt = round
        .ping
        .as_ref()
        .map(|ping| ping.summary.p50_ns)
        .filter(|rtt| *rtt > 0);
    let in_rtt = |ns: u64| optional(rtt.map(|rtt| ns as f64 / rtt as f64));
    let mut columns = vec![
        rtt.map_or_else(String::new, |rtt| rtt.to_string()),
        operation.map_or_else(String::new, |(name, _)| name.to_owned()),
    ];
    let Some((_, stored)) = operation else {
        columns.resize(LATENCY_COLUMNS, String::new());
        return columns;
    };
    let s = &stored.summary;
    let figures = [
        s.count, s.min_ns, s.mean_ns, s.p50_ns, s.p90_ns, s.p99_ns, s.p999_ns, s.max_ns,
    ];
    columns.extend(figures.map(|figure| figure.to_string()));
    columns.extend([in_rtt(s.p50_ns), in_rtt(s.p99_ns)]);
    columns
}

fn cell_columns(round: &Round) -> [String; 14] {
    let check = round.overlap_check.as_ref();
    let whole = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    [
        round.acquisitions.to_string(),
        optional(Measure::Throughput.of_round(round)),
        optional(Measure::Commands.of_round(round)),
        optional(Measure::CommandsWithScripts.of_round(round)),
        optional(Measure::ServerCpu.of_round(round)),
        optional(Measure::Script(Quantile::P50).of_round(round)),
        optional(Measure::Script(Quantile::P99).of_round(round)),
        optional(Measure::ClientCpu.of_round(round)),
        optional(Measure::ClientMemory.of_round(round)),
        optional(Measure::Share(op::WRITE_WAIT.to_owned()).of_round(round)),
        optional(jain(&round.acquisitions_per_worker)),
        optional(max_over_min(&round.acquisitions_per_worker)),
        whole(check.map(|check| check.holds_checked)),
        whole(check.map(|check| check.overlaps)),
    ]
}

/// Empty where there is no figure: a 0 would be one.
fn optional(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.4}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    fn without_operations() -> Report {
        let mut report = synthetic::memory_only(1);
        for round in report.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
            round.operations.clear();
        }
        report
    }

    #[test]
    fn every_row_has_every_column() {
        for report in [
            synthetic::shared().clone(),
            synthetic::memory_only(1),
            without_operations(),
            synthetic::empty(),
        ] {
            let text = render(&report).unwrap();
            let mut reader = ::csv::Reader::from_reader(text.as_bytes());
            assert_eq!(reader.headers().unwrap().len(), COLUMNS.len());
            let rows = reader.records().map(Result::unwrap).count();
            let operations: usize = report
                .cells
                .iter()
                .flat_map(|c| &c.rounds)
                .map(|r| r.operations.len().max(1))
                .sum();
            assert_eq!(rows, operations);
        }
    }

    #[test]
    fn missing_figures_stay_empty() {
        let text = render(&synthetic::memory_only(1)).unwrap();
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let at = |name: &str| COLUMNS.iter().position(|column| *column == name).unwrap();
        for row in reader.records().map(Result::unwrap) {
            for name in [
                "ping_p50_ns",
                "p50_rtt",
                "commands_per_acquisition",
                "server",
            ] {
                assert_eq!(&row[at(name)], "", "{name}");
            }
        }
    }
}
