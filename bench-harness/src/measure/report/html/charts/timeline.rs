//! Rounds over time: throughput and p99.

use super::lines::{Axis, Curve, plot};
use super::{Figure, WIDTH};
use crate::measure::derive::{Group, Measure, Row, Spread};
use crate::measure::model::{Point, Round, TimeSeries};
use crate::measure::report::format;
use crate::shared::render::scale::Scale;
use crate::shared::render::svg::Svg;

const HALF: f64 = 190.0;
/// From this ratio on, a common linear scale would flatten the smaller curves.
const WIDE: f64 = 12.0;

struct Course<'a> {
    row: &'a Row<'a>,
    slot: usize,
    series: &'a TimeSeries,
}

/// One chart per load of `group`, from the round of median throughput of each cell.
pub(in super::super) fn figures(group: &Group<'_>, slots: &[usize]) -> Vec<Figure> {
    let courses: Vec<_> = group
        .rows
        .iter()
        .zip(slots)
        .filter_map(|(row, slot)| {
            let series = median_round(row)?.time_series.as_ref()?;
            let mut points = series.points.iter();
            points.any(|point| point.count > 0).then_some(Course {
                row,
                slot: *slot,
                series,
            })
        })
        .collect();
    let wide = lie_far_apart(&courses);
    let loads = group.loads().into_iter();
    loads
        .filter_map(|load| {
            let here: Vec<_> = courses
                .iter()
                .filter(|course| course.row.load == load)
                .collect();
            (!here.is_empty()).then(|| figure(load, &here, wide))
        })
        .collect()
}

fn median_round<'a>(row: &Row<'a>) -> Option<&'a Round> {
    let mut rounds: Vec<&Round> = row.cell.rounds.iter().collect();
    let rate = |round: &Round| Measure::Throughput.of_round(round).unwrap_or(0.0);
    rounds.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    rounds.get(rounds.len() / 2).copied()
}

fn figure(load: &str, courses: &[&Course<'_>], wide: bool) -> Figure {
    let operation = &courses[0].series.operation;
    let title = if load.is_empty() {
        "over time, round of median throughput".to_owned()
    } else {
        format!("over time, {load}")
    };
    let desc = format!("Above: {operation} operations per second. Below: their 99th percentile.");
    let mut svg = Svg::new(WIDTH, 2.0 * HALF, &title, &desc);
    let end = courses
        .iter()
        .map(|course| seconds(course.series))
        .fold(0.0, f64::max);
    let time = |label| {
        Axis::new(Scale::linear(0.0, end), label, |s| {
            format!("{s:.3}")
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
        })
    };
    let mut rates = curves(courses, rate);
    let y = Axis::new(
        rate_scale(&mut rates, wide),
        &format!("{operation} per second"),
        format::number,
    );
    plot(&mut svg, 0.0, HALF, &time(""), &y, &rates);
    let tails = curves(courses, |_, point| {
        (point.count > 0).then_some(point.p99_ns as f64)
    });
    let values = tails
        .iter()
        .flat_map(|curve| curve.points.iter().flatten().map(|p| p.1));
    let y = Axis::new(Scale::log(values), "p99", |ns| format::duration(ns as u64));
    plot(&mut svg, HALF, HALF, &time("seconds"), &y, &tails);
    Figure {
        title,
        svg: svg.finish(),
    }
}

fn seconds(series: &TimeSeries) -> f64 {
    series.points.len() as f64 * series.interval_ns as f64 / 1e9
}

fn rate(series: &TimeSeries, point: &Point) -> Option<f64> {
    Some(point.count as f64 * 1e9 / series.interval_ns as f64)
}

fn curves(
    courses: &[&Course<'_>],
    value: impl Fn(&TimeSeries, &Point) -> Option<f64>,
) -> Vec<Curve> {
    let curve = |course: &&Course<'_>| {
        let series = course.series;
        // The last interval is usually cut short by the end of the round.
        let whole = series.points.len().saturating_sub(1).max(1);
        let step = series.interval_ns as f64 / 1e9;
        let points = series.points.iter().take(whole).enumerate();
        Curve {
            slot: course.slot,
            faint: false,
            points: points
                .map(|(at, point)| Some(((at as f64 + 0.5) * step, value(series, point)?)))
                .collect(),
            marks: Vec::new(),
            name: course.row.series.clone(),
        }
    };
    courses.iter().map(curve).collect()
}

/// Whether the typical rates of the group's cells would flatten each other on a linear scale.
fn lie_far_apart(courses: &[Course<'_>]) -> bool {
    let typical = courses.iter().filter_map(|course| {
        let rates = course
            .series
            .points
            .iter()
            .filter_map(|point| rate(course.series, point));
        Some(Spread::of(rates.filter(|rate| *rate > 0.0))?.median)
    });
    Spread::of(typical).is_some_and(|typical| typical.max / typical.min > WIDE)
}

/// Linear from zero unless the group needs a logarithmic scale, on which zeros are gaps.
fn rate_scale(curves: &mut [Curve], wide: bool) -> Scale {
    if wide {
        for point in curves.iter_mut().flat_map(|curve| &mut curve.points) {
            *point = point.filter(|(_, rate)| *rate > 0.0);
        }
    }
    let values = curves
        .iter()
        .flat_map(|curve| curve.points.iter().flatten().map(|p| p.1));
    if wide {
        Scale::log(values)
    } else {
        Scale::from_zero(values)
    }
}
