//! Cumulative distribution of a latency: the share that was done by then.

use hdrhistogram::Histogram;

use super::lines::{Axis, Curve, plot};
use super::{Figure, WIDTH};
use crate::measure::derive::{Group, merged};
use crate::measure::model::HistogramError;
use crate::measure::report::format;
use crate::shared::render::scale::Scale;
use crate::shared::render::svg::Svg;

const HEIGHT: f64 = 300.0;

/// The quantile at which curves end: the slowest ones would squeeze the rest into a corner, and the
/// percentile chart shows them.
const LAST: f64 = 0.999;

/// One chart per load of `group`, on common scales.
pub(in super::super) fn figures(
    group: &Group<'_>,
    operation: &str,
    slots: &[usize],
) -> Result<Vec<Figure>, HistogramError> {
    let mut found: Vec<(&str, Curve)> = Vec::new();
    for (row, slot) in group.rows.iter().zip(slots) {
        let histogram = merged(row.cell, operation)?;
        if !histogram.is_empty() {
            found.push((row.load.as_str(), curve(*slot, &row.series, &histogram)));
        }
    }
    let ends = || {
        let points = found.iter().flat_map(|(_, curve)| curve.points.iter());
        points.flatten().map(|(latency, _)| *latency)
    };
    let scale = Scale::log(ends());
    let mut figures = Vec::new();
    for load in group.loads() {
        let here = || found.iter().filter(|(of, _)| *of == load);
        if here().next().is_none() {
            continue;
        }
        let title = if load.is_empty() {
            operation.to_owned()
        } else {
            format!("{operation}, {load}")
        };
        let desc = "The share of operations that took no longer than the latency below.";
        let mut svg = Svg::new(WIDTH, HEIGHT, &title, desc);
        let mut x = Axis::new(scale, "latency", |ns| format::duration(ns as u64));
        thin(&mut x.ticks);
        let y = Axis::new(Scale::linear(0.0, 1.0), "done by then", |share| {
            format!("{:.0}%", share * 100.0)
        });
        plot(
            &mut svg,
            0.0,
            HEIGHT,
            &x,
            &y,
            here().map(|(_, curve)| curve),
        );
        figures.push(Figure {
            title,
            svg: svg.finish(),
        });
    }
    Ok(figures)
}

/// Labels of durations are wide, so more of them would overlap.
fn thin(ticks: &mut Vec<(f64, String)>) {
    const MOST: usize = 8;
    let every = ticks.len().div_ceil(MOST);
    let mut at = 0;
    ticks.retain(|_| {
        at += 1;
        (at - 1) % every == 0
    });
}

fn curve(slot: usize, series: &str, histogram: &Histogram<u64>) -> Curve {
    let mut points = vec![Some((histogram.min().max(1) as f64, 0.0))];
    // Steps of the recorded values are finer than a pixel; quantiles are as fine as the eye.
    for step in histogram.iter_quantiles(8) {
        let share = step.quantile_iterated_to();
        if share > LAST {
            break;
        }
        points.push(Some((step.value_iterated_to() as f64, share)));
    }
    points.push(Some((histogram.value_at_quantile(LAST) as f64, LAST)));
    let mark = |(name, quantile): (&str, f64)| {
        let ns = histogram.value_at_quantile(quantile) as f64;
        let tip = format!("{series}: {name} {} µs", format::micros(ns));
        ((ns, quantile), tip)
    };
    Curve {
        slot,
        faint: false,
        points,
        marks: [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)]
            .map(mark)
            .to_vec(),
        name: series.to_owned(),
    }
}
