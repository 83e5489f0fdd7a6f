//! p50 and p99 of every cell on one scale, with the spread of the rounds.

use super::{Figure, Label, WIDTH};
use crate::measure::derive::{Group, Measure, Quantile, Row, Spread, Unit};
use crate::measure::report::format;
use crate::shared::render::scale::Scale;
use crate::shared::render::svg::{Anchor, Svg};

const ROW: f64 = 22.0;
const HEAD: f64 = 24.0;
const TOP: f64 = 30.0;
/// Room for the two figures at the right.
const FIGURES: f64 = 108.0;

/// The chart in µs, and the one in multiples of the RTT if that was measured.
pub(in super::super) fn figures(
    group: &Group<'_>,
    operation: &str,
    slots: &[usize],
) -> Vec<Figure> {
    let absolute = |quantile| Measure::Latency(operation.to_owned(), quantile);
    let relative = |quantile| Measure::LatencyInRtt(operation.to_owned(), quantile);
    let mut found = Vec::new();
    found.extend(figure(
        group,
        slots,
        &format!("{operation}: time, µs"),
        [absolute(Quantile::P50), absolute(Quantile::P99)],
    ));
    found.extend(figure(
        group,
        slots,
        &format!("{operation}: multiples of the RTT, the median round trip of PING"),
        [relative(Quantile::P50), relative(Quantile::P99)],
    ));
    found
}

struct Entry<'a> {
    row: &'a Row<'a>,
    slot: usize,
    p50: Spread,
    p99: Spread,
}

fn figure(
    group: &Group<'_>,
    slots: &[usize],
    title: &str,
    measures: [Measure; 2],
) -> Option<Figure> {
    let [p50, p99] = measures;
    let entry = |(row, slot): (&'_ Row<'_>, &usize)| -> Option<(Spread, Spread, usize)> {
        Some((p50.of(row.cell)?, p99.of(row.cell)?, *slot))
    };
    let entries: Vec<Entry<'_>> = group
        .rows
        .iter()
        .zip(slots)
        .filter_map(|(row, slot)| {
            let (p50, p99, slot) = entry((row, slot))?;
            Some(Entry {
                row,
                slot,
                p50,
                p99,
            })
        })
        .collect();
    if entries.is_empty() {
        return None;
    }
    let loads = group.loads();
    let heads = if loads.len() > 1 {
        loads.len() as f64
    } else {
        0.0
    };
    let label = Label::of(entries.iter().map(|entry| entry.row.series.as_str()));
    let row = ROW + label.above;
    let height = TOP + heads * HEAD + entries.len() as f64 * row + 20.0;
    let desc = "Filled marks: median over rounds of the p50. Hollow marks: of the p99. Bars: \
                smallest to largest round.";
    let mut svg = Svg::new(WIDTH, height, title, desc);
    let left = label.left;
    let values = entries.iter().flat_map(|e| [e.p50.min, e.p99.max]);
    let scale = Scale::log(values).onto(left + 6.0, WIDTH - FIGURES - 8.0);
    let unit = p50.unit();
    grid(&mut svg, &scale, unit, height);
    let mut y = TOP;
    for load in loads {
        if heads > 0.0 {
            svg.text("head", (0.0, y + 16.0), Anchor::Start, load);
            y += HEAD;
        }
        for entry in entries.iter().filter(|entry| entry.row.load == load) {
            draw(&mut svg, entry, &scale, unit, y + row, label.above);
            y += row;
        }
    }
    Some(Figure {
        title: title.to_owned(),
        svg: svg.finish(),
    })
}

fn grid(svg: &mut Svg, scale: &Scale, unit: Unit, height: f64) {
    for tick in scale.ticks() {
        let x = scale.at(tick);
        let one = unit == Unit::Rtt && (tick - 1.0).abs() < 1e-9;
        svg.line(
            if one { "one" } else { "grid" },
            (x, TOP - 6.0),
            (x, height - 16.0),
        );
        let value = if unit == Unit::Nanos {
            tick / 1_000.0
        } else {
            tick
        };
        svg.text("tick", (x, height - 3.0), Anchor::Middle, &short(value));
    }
    svg.text(
        "axis",
        (WIDTH - FIGURES / 2.0 - 4.0, 12.0),
        Anchor::End,
        "p50",
    );
    svg.text("axis", (WIDTH, 12.0), Anchor::End, "p99");
}

/// `10k` rather than `10,000`, because ticks are close together.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v => format!("{}", (v * 1e6).round() / 1e6),
    }
}

fn draw(svg: &mut Svg, entry: &Entry<'_>, scale: &Scale, unit: Unit, bottom: f64, above: f64) {
    let y = bottom - ROW / 2.0;
    let (p50, p99) = (&entry.p50, &entry.p99);
    let text = |spread: &Spread| format::value(spread.median, unit);
    svg.open(entry.slot);
    svg.text(
        "row",
        (0.0, y + 4.0 - above),
        Anchor::Start,
        &entry.row.series,
    );
    svg.line("span", (scale.at(p50.median), y), (scale.at(p99.median), y));
    for (spread, class, name) in [(p50, "dot", "p50"), (p99, "dot hollow", "p99")] {
        svg.line(
            "whisker",
            (scale.at(spread.min), y),
            (scale.at(spread.max), y),
        );
        let tip = format!(
            "{}: {name} {}{} (rounds {} to {})",
            entry.row.label(),
            text(spread),
            format::suffix(unit),
            format::value(spread.min, unit),
            format::value(spread.max, unit),
        );
        svg.mark(class, entry.slot, (scale.at(spread.median), y), 4.4, &tip);
    }
    svg.close();
    svg.text(
        "num",
        (WIDTH - FIGURES / 2.0 - 4.0, y + 4.0),
        Anchor::End,
        &text(p50),
    );
    svg.text("num", (WIDTH, y + 4.0), Anchor::End, &text(p99));
}
