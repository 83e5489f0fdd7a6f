//! Latency by percentile: the whole distribution with its tail stretched.

use hdrhistogram::Histogram;

use super::lines::{Axis, Curve, plot};
use super::{Figure, WIDTH};
use crate::measure::derive::{Group, Row, merged};
use crate::measure::model::HistogramError;
use crate::measure::report::format;
use crate::shared::render::scale::Scale;
use crate::shared::render::svg::Svg;

const HEIGHT: f64 = 300.0;

struct Distribution<'a> {
    row: &'a Row<'a>,
    slot: usize,
    all: Histogram<u64>,
    rounds: Vec<Histogram<u64>>,
}

/// One chart per load of `group`, on common scales.
pub(in super::super) fn figures(
    group: &Group<'_>,
    operation: &str,
    slots: &[usize],
) -> Result<Vec<Figure>, HistogramError> {
    let mut found = Vec::new();
    for (row, slot) in group.rows.iter().zip(slots) {
        let all = merged(row.cell, operation)?;
        let stored = row
            .cell
            .rounds
            .iter()
            .filter_map(|round| round.operations.get(operation));
        let rounds = stored
            .map(|stored| stored.decode())
            .collect::<Result<_, _>>()?;
        if !all.is_empty() {
            found.push(Distribution {
                row,
                slot: *slot,
                all,
                rounds,
            });
        }
    }
    let y = || {
        Scale::log(
            found
                .iter()
                .flat_map(|d| [d.all.min() as f64, d.all.max() as f64]),
        )
    };
    let most = found.iter().map(|d| d.all.len()).max().unwrap_or(10);
    let figures = group.loads().into_iter().filter_map(|load| {
        let here: Vec<_> = found.iter().filter(|d| d.row.load == load).collect();
        (!here.is_empty()).then(|| figure(operation, load, &here, y(), most))
    });
    Ok(figures.collect())
}

fn figure(operation: &str, load: &str, found: &[&Distribution<'_>], y: Scale, most: u64) -> Figure {
    let title = if load.is_empty() {
        operation.to_owned()
    } else {
        format!("{operation}, {load}")
    };
    let desc = "Latency on a logarithmic scale against the percentile; every step to the right \
                leaves a tenth of the operations.";
    let mut svg = Svg::new(WIDTH, HEIGHT, &title, desc);
    let x = percentile_axis(most);
    let y = Axis::new(y, "latency", |ns| format::duration(ns as u64));
    let mut curves = Vec::new();
    for d in found {
        if d.rounds.len() > 1 {
            curves.extend(d.rounds.iter().map(|round| curve(d.slot, round, None)));
        }
    }
    curves.extend(
        found
            .iter()
            .map(|d| curve(d.slot, &d.all, Some(&d.row.series))),
    );
    plot(&mut svg, 0.0, HEIGHT, &x, &y, &curves);
    Figure {
        title,
        svg: svg.finish(),
    }
}

/// Position of a quantile: the number of nines, `log10(1 / (1 - q))`.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

fn percentile_axis(most: u64) -> Axis {
    let end = (most as f64).log10().clamp(1.0, 7.0);
    let names = [
        "0", "90", "99", "99.9", "99.99", "99.999", "99.9999", "99.99999",
    ];
    let mut ticks: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(nines, name)| (nines as f64, (*name).to_owned()))
        .filter(|(at, _)| *at <= end)
        .collect();
    ticks.insert(1, (nines(0.5), "50".to_owned()));
    Axis {
        scale: Scale::linear(0.0, end),
        ticks,
        label: "percentile".to_owned(),
    }
}

/// The curve of one histogram; only the merged one has a `name`, and carries marks.
fn curve(slot: usize, histogram: &Histogram<u64>, name: Option<&String>) -> Curve {
    let last = (histogram.len() as f64).log10();
    let mut points = Vec::new();
    for step in histogram.iter_quantiles(6) {
        let x = nines(step.quantile_iterated_to()).min(last);
        points.push(Some((x, step.value_iterated_to() as f64)));
    }
    let mark = |(name, quantile): (&str, f64), series: &str| {
        let ns = histogram.value_at_quantile(quantile) as f64;
        let tip = format!("{series}: {name} {} µs", format::micros(ns));
        ((nines(quantile).min(last), ns), tip)
    };
    let wanted = [
        ("p50", 0.5),
        ("p90", 0.9),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("max", 1.0),
    ];
    let marks = name.map_or_else(Vec::new, |series| {
        wanted
            .into_iter()
            .map(|quantile| mark(quantile, series))
            .collect()
    });
    Curve {
        slot,
        faint: name.is_none(),
        points,
        marks,
        name: name.cloned().unwrap_or_default(),
    }
}
