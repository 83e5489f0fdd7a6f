//! Double grants of every cell that had failovers, with the confidence interval.

use crate::failover::model::FailoverReport;
use crate::shared::render::format::count;
use crate::shared::render::scale::Scale;
use crate::shared::render::svg::{Anchor, Svg};

const WIDTH: f64 = 920.0;
const LEFT: f64 = 330.0;
const RIGHT: f64 = 890.0;
const ROW: f64 = 24.0;
const TOP: f64 = 30.0;

/// The chart; `None` if no cell had a failover.
pub(super) fn draw(report: &FailoverReport) -> Option<String> {
    let rows: Vec<_> = report
        .cells
        .iter()
        .filter(|cell| cell.fault.fails_over() && !cell.subject.is_broken())
        .filter_map(|cell| Some((cell, cell.figures.double_grants()?)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let height = TOP + ROW * rows.len() as f64 + 26.0;
    let mut svg = Svg::new(
        WIDTH,
        height,
        "Double grants per 1,000 failovers",
        "One row per cell: the rate and its 95 % confidence interval.",
    );
    let scale = Scale::linear(0.0, 1_000.0).onto(LEFT, RIGHT);
    for tick in scale.ticks() {
        let x = scale.at(tick);
        svg.line("grid", (x, TOP - 8.0), (x, height - 22.0));
        svg.text(
            "tick",
            (x, height - 8.0),
            Anchor::Middle,
            &count(tick as u64),
        );
    }
    for (at, (cell, rate)) in rows.into_iter().enumerate() {
        let y = TOP + ROW * (at as f64 + 0.5);
        let name = format!("{} · {} · {}", cell.scenario, cell.topology, cell.who());
        svg.text("", (LEFT - 12.0, y + 4.0), Anchor::End, &name);
        let tip = format!(
            "{name}: {} of {} ({:.0} to {:.0} per 1,000)",
            rate.hits, rate.trials, rate.low_per_1000, rate.high_per_1000
        );
        let slot = if rate.hits == 0 { 2 } else { 1 };
        svg.open(slot);
        let (low, high) = (scale.at(rate.low_per_1000), scale.at(rate.high_per_1000));
        svg.bar("whisker", y, low, high, &tip);
        svg.mark("dot", slot, (scale.at(rate.per_1000), y), 5.0, &tip);
        svg.close();
    }
    Some(svg.finish())
}
