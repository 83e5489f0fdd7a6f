//! Figures against the number of workers.

use super::lines::{Axis, Curve, plot};
use super::{Figure, WIDTH};
use crate::measure::derive::{Group, Measure, Quantile};
use crate::measure::report::format;
use crate::shared::render::scale::Scale;
use crate::shared::render::svg::Svg;

const HEIGHT: f64 = 260.0;

/// Charts against W; none if no series has several.
pub(in super::super) fn figures(
    group: &Group<'_>,
    operation: &str,
    slots: &[usize],
) -> Vec<Figure> {
    let mut workers: Vec<u32> = group
        .rows
        .iter()
        .map(|row| row.cell.subject.workers)
        .collect();
    workers.sort_unstable();
    workers.dedup();
    if workers.len() < 2 {
        return Vec::new();
    }
    let in_rtt = |quantile| Measure::LatencyInRtt(operation.to_owned(), quantile);
    let wanted = [
        (Measure::Commands, "Commands per acquisition", true),
        (
            Measure::CommandsWithScripts,
            "Commands per acquisition, including those of scripts",
            true,
        ),
        (Measure::ServerCpu, "Server CPU per acquisition, µs", true),
        (Measure::Throughput, "Acquisitions per second", true),
        (
            in_rtt(Quantile::P50),
            &*format!("{operation} p50, multiples of the RTT"),
            true,
        ),
        (
            in_rtt(Quantile::P99),
            &*format!("{operation} p99, multiples of the RTT"),
            true,
        ),
        (Measure::Jain, "Jain fairness", false),
    ];
    let figure = |(measure, title, log)| figure(group, &measure, title, log, slots, &workers);
    wanted.into_iter().filter_map(figure).collect()
}

fn figure(
    group: &Group<'_>,
    measure: &Measure,
    title: &str,
    log: bool,
    slots: &[usize],
    workers: &[u32],
) -> Option<Figure> {
    let mut curves: Vec<Curve> = Vec::new();
    let mut values = Vec::new();
    for (row, slot) in group.rows.iter().zip(slots) {
        let Some(spread) = measure.of(row.cell) else {
            continue;
        };
        let point = (f64::from(row.cell.subject.workers), spread.median);
        let text = format::value(spread.median, measure.unit());
        let mark = (point, format!("{}: {text}", row.label()));
        values.push(spread.median);
        match curves.iter_mut().find(|curve| curve.slot == *slot) {
            Some(curve) => {
                curve.points.push(Some(point));
                curve.marks.push(mark);
            }
            None => curves.push(Curve {
                slot: *slot,
                faint: false,
                points: vec![Some(point)],
                marks: vec![mark],
                name: row.series.clone(),
            }),
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|a, b| {
            a.map(|p| p.0)
                .partial_cmp(&b.map(|p| p.0))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
    }
    if curves.iter().all(|curve| curve.points.len() < 2) {
        return None;
    }
    let y = if log {
        Scale::log(values)
    } else {
        Scale::linear(0.0, 1.05)
    };
    let x = Axis {
        scale: Scale::log(workers.iter().map(|w| f64::from(*w))),
        ticks: workers
            .iter()
            .map(|w| (f64::from(*w), w.to_string()))
            .collect(),
        label: "workers".to_owned(),
    };
    let y = Axis::new(y, "", |value| tick(value, measure));
    let mut svg = Svg::new(
        WIDTH,
        HEIGHT,
        title,
        "Median over rounds against the number of workers.",
    );
    plot(&mut svg, 0.0, HEIGHT, &x, &y, &curves);
    Some(Figure {
        title: title.to_owned(),
        svg: svg.finish(),
    })
}

/// Axis text: round values do not need their zeros.
fn tick(value: f64, measure: &Measure) -> String {
    let text = format::value(value, measure.unit());
    match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text,
    }
}
