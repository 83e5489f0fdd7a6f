//! Line charts: axes, grid, curves, labels at the ends of curves.

use super::WIDTH;
use crate::shared::render::scale::Scale;
use crate::shared::render::svg::{Anchor, Svg};

const LEFT: f64 = 58.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 22.0;

/// One axis: where values go and the text beside them.
pub(super) struct Axis {
    pub(super) scale: Scale,
    pub(super) ticks: Vec<(f64, String)>,
    pub(super) label: String,
}

impl Axis {
    /// An axis whose ticks are chosen by its scale and written by `text`.
    pub(super) fn new(scale: Scale, label: &str, text: impl Fn(f64) -> String) -> Self {
        let ticks = scale
            .ticks()
            .into_iter()
            .map(|tick| (tick, text(tick)))
            .collect();
        Self {
            scale,
            ticks,
            label: label.to_owned(),
        }
    }
}

/// One curve in values of the axes.
pub(super) struct Curve {
    pub(super) slot: usize,
    /// Drawn thin and pale: a single round behind the merged curve.
    pub(super) faint: bool,
    pub(super) points: Vec<Option<(f64, f64)>>,
    /// Points with a mark and a text on hover.
    pub(super) marks: Vec<((f64, f64), String)>,
    /// Written at the end of the curve when not empty.
    pub(super) name: String,
}

/// Draws one plot into `svg` between `top` and `top + height`.
pub(super) fn plot<'a>(
    svg: &mut Svg,
    top: f64,
    height: f64,
    x: &Axis,
    y: &Axis,
    curves: impl IntoIterator<Item = &'a Curve>,
) {
    let curves: Vec<&Curve> = curves.into_iter().collect();
    let longest = curves
        .iter()
        .map(|curve| curve.name.chars().count())
        .max()
        .unwrap_or(0);
    let margin = if longest == 0 {
        12.0
    } else {
        (longest as f64 * 6.4 + 14.0).min(150.0)
    };
    let right = WIDTH - margin;
    let (plot_top, plot_bottom) = (top + TOP, top + height - BOTTOM);
    let xs = x.scale.onto(LEFT, right);
    let ys = y.scale.onto(plot_bottom, plot_top);
    svg.text("axis", (4.0, top + 11.0), Anchor::Start, &y.label);
    for (value, text) in &y.ticks {
        let at = ys.at(*value);
        svg.line("grid", (LEFT, at), (right, at));
        svg.text("tick", (LEFT - 6.0, at + 3.5), Anchor::End, text);
    }
    for (value, text) in &x.ticks {
        let at = xs.at(*value);
        svg.line("grid", (at, plot_top), (at, plot_bottom));
        svg.text("tick", (at, plot_bottom + 14.0), Anchor::Middle, text);
    }
    svg.text("axis", (right, top + height - 4.0), Anchor::End, &x.label);
    for curve in &curves {
        let place = |(px, py): (f64, f64)| (xs.at(px), ys.at(py));
        svg.open(curve.slot);
        let points: Vec<_> = curve.points.iter().map(|point| point.map(place)).collect();
        svg.curve(if curve.faint { "ln faint" } else { "ln" }, &points);
        for (point, tip) in &curve.marks {
            svg.mark("dot", curve.slot, place(*point), 3.2, tip);
        }
        svg.close();
    }
    end_labels(svg, &curves, &xs, &ys, (plot_top, plot_bottom));
}

/// Names at the ends of curves, pushed apart where they would collide.
fn end_labels(svg: &mut Svg, curves: &[&Curve], xs: &Scale, ys: &Scale, (top, bottom): (f64, f64)) {
    let mut labels: Vec<(f64, f64, &Curve)> = curves
        .iter()
        .filter(|curve| !curve.name.is_empty())
        .filter_map(|curve| {
            let (x, y) = curve.points.iter().rev().find_map(|point| *point)?;
            Some((ys.at(y), xs.at(x), *curve))
        })
        .collect();
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut above = top - 13.0;
    let count = labels.len();
    for (n, (wanted, x, curve)) in labels.into_iter().enumerate() {
        // Leave room below for the labels still to come.
        let lowest = bottom - 13.0 * (count - 1 - n) as f64;
        let y = wanted.max(above + 13.0).min(lowest.max(above + 13.0));
        above = y;
        svg.open(curve.slot);
        svg.text("end", (x + 8.0, y + 4.0), Anchor::Start, &curve.name);
        svg.close();
    }
}
