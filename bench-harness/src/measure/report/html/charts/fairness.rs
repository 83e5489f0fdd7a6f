//! Each worker's grants, relative to a fair share.

use super::{Figure, Label, WIDTH};
use crate::measure::derive::{Group, Measure, Row};
use crate::measure::report::format;
use crate::shared::render::scale::Scale;
use crate::shared::render::svg::{Anchor, Svg};

const ROW: f64 = 20.0;
const HEAD: f64 = 24.0;
const TOP: f64 = 22.0;
const FIGURE: f64 = 52.0;

/// With this many cells the chart is split in two, side by side.
const MANY: usize = 9;

struct Strip<'a> {
    row: &'a Row<'a>,
    slot: usize,
    shares: Vec<f64>,
}

/// A strip of dots for each cell with several workers, on common scales; empty if there is none.
pub(in super::super) fn figures(group: &Group<'_>, slots: &[usize]) -> Vec<Figure> {
    let strips: Vec<Strip<'_>> = group
        .rows
        .iter()
        .zip(slots)
        .filter_map(|(row, slot)| {
            Some(Strip {
                row,
                slot: *slot,
                shares: shares(row)?,
            })
        })
        .collect();
    let shown = |load: &&str| strips.iter().any(|strip| strip.row.load == *load);
    let loads: Vec<_> = group.loads().into_iter().filter(shown).collect();
    let most = strips
        .iter()
        .flat_map(|strip| &strip.shares)
        .copied()
        .fold(2.0, f64::max);
    let per_figure = if strips.len() < MANY {
        loads.len()
    } else {
        loads.len().div_ceil(2)
    };
    loads
        .chunks(per_figure.max(1))
        .map(|loads| figure(&strips, loads, most))
        .collect()
}

fn figure(strips: &[Strip<'_>], loads: &[&str], most: f64) -> Figure {
    let count = strips
        .iter()
        .filter(|strip| loads.contains(&&*strip.row.load))
        .count();
    let label = Label::of(strips.iter().map(|strip| strip.row.series.as_str()));
    let row = ROW + label.above;
    let height = TOP + loads.len() as f64 * HEAD + count as f64 * row + 34.0;
    let title = "Share of each worker";
    let desc = "One dot per worker: its grants divided by a fair share, all rounds together. A \
                fair lock puts every dot on 1.";
    let mut svg = Svg::new(WIDTH, height, title, desc);
    let left = label.left;
    let scale = Scale::linear(0.0, most.sqrt() * 1.02).onto(left + 6.0, WIDTH - FIGURE - 8.0);
    let ticks = [0.0, 0.25, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
    for tick in ticks.into_iter().filter(|tick| *tick <= most * 1.02) {
        let x = scale.at(tick.sqrt());
        svg.line(
            if tick == 1.0 { "one" } else { "grid" },
            (x, TOP - 6.0),
            (x, height - 30.0),
        );
        svg.text(
            "tick",
            (x, height - 16.0),
            Anchor::Middle,
            &format!("{tick}"),
        );
    }
    svg.text(
        "axis",
        (WIDTH - FIGURE - 8.0, height - 2.0),
        Anchor::End,
        "grants over fair share",
    );
    svg.text("axis", (WIDTH, 12.0), Anchor::End, "Jain");
    let mut y = TOP;
    for load in loads {
        svg.text("head", (0.0, y + 16.0), Anchor::Start, load);
        y += HEAD;
        for strip in strips.iter().filter(|strip| strip.row.load == *load) {
            draw(&mut svg, strip, &scale, y + row - ROW / 2.0, label.above);
            y += row;
        }
    }
    Figure {
        title: title.to_owned(),
        svg: svg.finish(),
    }
}

/// Square roots keep starved workers and the fair share apart even when one worker got most.
fn draw(svg: &mut Svg, strip: &Strip<'_>, scale: &Scale, y: f64, above: f64) {
    let Strip { row, slot, shares } = strip;
    let slot = *slot;
    svg.open(slot);
    svg.text("row", (0.0, y + 4.0 - above), Anchor::Start, &row.series);
    for (worker, share) in shares.iter().enumerate() {
        let tip = format!(
            "{}, worker {worker}: {share:.2} of its fair share",
            row.label()
        );
        svg.mark("dot share", slot, (scale.at(share.sqrt()), y), 3.4, &tip);
    }
    svg.close();
    let jain = format::median(Measure::Jain.of(row.cell), Measure::Jain.unit());
    svg.text("num", (WIDTH, y + 4.0), Anchor::End, &jain);
}

/// Grants of each worker over the mean, all rounds together.
fn shares(row: &Row<'_>) -> Option<Vec<f64>> {
    let mut counts = vec![0_u64; row.cell.subject.workers as usize];
    for round in &row.cell.rounds {
        for (sum, count) in counts.iter_mut().zip(&round.acquisitions_per_worker) {
            *sum += count;
        }
    }
    let total: u64 = counts.iter().sum();
    let fair = total as f64 / counts.len() as f64;
    (counts.len() > 1 && total > 0).then(|| counts.iter().map(|c| *c as f64 / fair).collect())
}
