//! Rows of the tables below the charts.

use crate::measure::derive::{self, Group, Measure, Quantile, Row, Spread, Unit};
use crate::measure::model::op;
use crate::measure::report::format;
use crate::shared::render::svg;

/// A figure with the range of its rounds.
pub(super) struct Figure {
    pub(super) median: String,
    pub(super) range: String,
}

/// Figures that exist once per cell.
pub(super) struct CellLine {
    pub(super) class: String,
    pub(super) series: String,
    pub(super) load: String,
    pub(super) figures: Vec<Figure>,
    pub(super) overlaps: String,
    /// `good`, `bad` or empty.
    pub(super) tone: &'static str,
    pub(super) errors: String,
}

/// Figures of one operation of one cell.
pub(super) struct LatencyLine {
    pub(super) first: bool,
    pub(super) class: String,
    pub(super) series: String,
    pub(super) load: String,
    pub(super) operation: String,
    pub(super) count: String,
    pub(super) figures: Vec<Figure>,
}

/// A figure that exists once per cell, and its heading.
pub(super) struct Column {
    pub(super) name: &'static str,
    measure: Measure,
}

/// The figures that at least one cell of the group has.
pub(super) fn columns(group: &Group<'_>) -> Vec<Column> {
    let all = [
        ("Acquisitions/s", Measure::Throughput),
        ("Commands / acq.", Measure::Commands),
        ("… with scripts", Measure::CommandsWithScripts),
        ("Server CPU / acq., µs", Measure::ServerCpu),
        ("Script p50, µs", Measure::Script(Quantile::P50)),
        ("Client CPU / acq., µs", Measure::ClientCpu),
        ("Client memory each, bytes", Measure::ClientMemory),
        ("Writers' share", Measure::Share(op::WRITE_WAIT.to_owned())),
        ("Fairness (Jain)", Measure::Jain),
        ("Max / min", Measure::MaxOverMin),
    ];
    all.into_iter()
        .map(|(name, measure)| Column { name, measure })
        .filter(|column| {
            let mut rows = group.rows.iter();
            rows.any(|row| column.measure.of(row.cell).is_some())
        })
        .collect()
}

/// One line per cell.
pub(super) fn cells(group: &Group<'_>, slots: &[usize], columns: &[Column]) -> Vec<CellLine> {
    group
        .rows
        .iter()
        .zip(slots)
        .map(|(row, slot)| cell(row, *slot, columns))
        .collect()
}

fn cell(row: &Row<'_>, slot: usize, columns: &[Column]) -> CellLine {
    let mut figures = vec![figure(derive::rtt(row.cell), Unit::Nanos)];
    figures.extend(columns.iter().map(|column| {
        let measure = &column.measure;
        figure(measure.of(row.cell), measure.unit())
    }));
    let (overlaps, tone) = match derive::overlaps(row.cell) {
        None => (format::NONE.to_owned(), ""),
        Some(check) if check.found == 0 => ("0".to_owned(), "good"),
        Some(check) => {
            let longest = format::duration(check.longest_ns);
            (
                format!("{} (longest {longest})", format::count(check.found)),
                "bad",
            )
        }
    };
    let errors = derive::errors(row.cell).into_iter();
    let errors: Vec<_> = errors
        .map(|(kind, n)| format!("{kind} {}", format::count(n)))
        .collect();
    CellLine {
        class: svg::class(slot),
        series: row.series.clone(),
        load: row.load.clone(),
        figures,
        overlaps,
        tone,
        errors: errors.join(", "),
    }
}

/// One line per cell and operation.
pub(super) fn latencies(group: &Group<'_>, slots: &[usize]) -> Vec<LatencyLine> {
    let mut lines = Vec::new();
    for (row, slot) in group.rows.iter().zip(slots) {
        for (at, operation) in derive::operations(row.cell).into_iter().enumerate() {
            lines.push(latency(row, *slot, operation, at == 0));
        }
    }
    lines
}

fn latency(row: &Row<'_>, slot: usize, operation: &str, first: bool) -> LatencyLine {
    let name = || operation.to_owned();
    let mut measures: Vec<_> = Quantile::ALL
        .iter()
        .map(|quantile| Measure::Latency(name(), *quantile))
        .collect();
    measures.extend([Quantile::P50, Quantile::P99].map(|q| Measure::LatencyInRtt(name(), q)));
    let rounds = row
        .cell
        .rounds
        .iter()
        .filter_map(|round| round.operations.get(operation));
    LatencyLine {
        first,
        class: svg::class(slot),
        series: row.series.clone(),
        load: row.load.clone(),
        operation: name(),
        count: format::count(rounds.map(|stored| stored.summary.count).sum()),
        figures: measures
            .iter()
            .map(|m| figure(m.of(row.cell), m.unit()))
            .collect(),
    }
}

fn figure(spread: Option<Spread>, unit: Unit) -> Figure {
    let range = spread
        .filter(|spread| spread.rounds > 1 && spread.max.is_finite())
        .map_or_else(String::new, |spread| {
            format!(
                "{}–{}",
                format::value(spread.min, unit),
                format::value(spread.max, unit)
            )
        });
    Figure {
        median: format::median(spread, unit),
        range,
    }
}
