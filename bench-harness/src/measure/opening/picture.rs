//! The opening as a picture on its own.

use super::{Headline, HeadlineRow, Who};
use crate::shared::render::format::{self, NONE};
use crate::shared::render::svg::{Anchor, Svg};

/// Colours for a light and a dark page; the picture is a file of its own, so it brings its style.
const STYLE: &str = "text{font:13px system-ui,'Segoe UI',Roboto,Arial,sans-serif;fill:#171a20}\
    .bg{fill:#ffffff;stroke:#dfe3e9}.head{font-weight:600}.dim{fill:#5a6270;font-size:12px}\
    .bar{stroke-width:13;stroke:#a3abb8}.ours{stroke:#1f5fbf}.floor{stroke:#0b7f6b}.zero{stroke:#dfe3e9}\
    @media(prefers-color-scheme:dark){text{fill:#e8ebf0}.bg{fill:#171b22;stroke:#2a313c}.dim{fill:#9aa4b3}\
    .bar{stroke:#5c6470}.ours{stroke:#6ea8ff}.floor{stroke:#3fd0b0}.zero{stroke:#2a313c}}";

const WIDTH: f64 = 880.0;
const LEFT: f64 = 20.0;
const TOP: f64 = 84.0;
const ROW: f64 = 26.0;
/// The panels: where each begins, how long its longest bar is, and what it shows.
const PANELS: [Panel; 3] = [
    Panel {
        at: 205.0,
        title: "locks per second",
        note: "more is better",
        value: |one| median(one, 5),
        text: format::number,
    },
    Panel {
        at: 432.0,
        title: "longest wait",
        note: "less is better",
        value: |one| median(one, 2),
        text: format::natural,
    },
    Panel {
        at: 659.0,
        title: "server CPU of a lock",
        note: "less is better",
        value: |one| median(one, 4),
        text: format::natural,
    },
];
const LONGEST: f64 = 130.0;

struct Panel {
    at: f64,
    title: &'static str,
    note: &'static str,
    value: fn(&HeadlineRow) -> Option<f64>,
    text: fn(f64) -> String,
}

fn median(one: &HeadlineRow, column: usize) -> Option<f64> {
    one.figures
        .get(column)?
        .as_ref()
        .map(|spread| spread.median)
}

/// A lock that is passed on inside a process has no hand-off between processes, and its bar would
/// dwarf the others.
fn drawn(headline: &Headline) -> Vec<&HeadlineRow> {
    let rows = headline.rows.iter();
    rows.filter(|row| row.who != Who::Ours).collect()
}

/// The picture of the first headline; `None` if it compares nothing.
#[must_use]
pub fn picture(headlines: &[Headline]) -> Option<String> {
    let headline = headlines.first()?;
    let all = drawn(headline);
    if all.is_empty() {
        return None;
    }
    let height = TOP + ROW * all.len() as f64 + 40.0;
    let title = &headline.title;
    let desc = "Bars for each way of locking: locks per second, the longest wait of a round, and the processor time of the \
        server for a lock.";
    let mut svg = Svg::standalone(WIDTH, height, title, desc, STYLE);
    svg.text("head", (LEFT, 30.0), Anchor::Start, title);
    let colours = "blue: this library; green: the floor; grey: others";
    svg.text("dim", (PANELS[1].at, 30.0), Anchor::Start, colours);
    for panel in &PANELS {
        svg.text("head", (panel.at, 58.0), Anchor::Start, panel.title);
        svg.text("dim", (panel.at, 74.0), Anchor::Start, panel.note);
        let bottom = TOP + ROW * all.len() as f64;
        svg.line("zero", (panel.at, TOP), (panel.at, bottom));
    }
    for (row, one) in (0_u32..).zip(&all) {
        let y = TOP + ROW * (f64::from(row) + 0.5);
        svg.text("name", (LEFT, y + 4.5), Anchor::Start, short(&one.name));
        for panel in &PANELS {
            draw(&mut svg, panel, one, &all, y);
        }
    }
    let below = "Medians over rounds. Each hand-off goes through the server. Redisson: the better of one and two Java machines.";
    svg.text("dim", (LEFT, height - 14.0), Anchor::Start, below);
    Some(svg.finish() + "\n")
}

fn draw(svg: &mut Svg, panel: &Panel, one: &HeadlineRow, all: &[&HeadlineRow], y: f64) {
    let Some(value) = (panel.value)(one) else {
        return svg.text("dim", (panel.at + 6.0, y + 4.5), Anchor::Start, NONE);
    };
    let values = all.iter().filter_map(|one| (panel.value)(one));
    let most = values.fold(0.0, f64::max);
    let length = if most > 0.0 {
        LONGEST * value / most
    } else {
        0.0
    };
    // Even a tiny value gets a visible bar.
    let end = panel.at + length.max(1.5);
    let class = match one.who {
        Who::Ours | Who::OursThroughServer => "bar ours",
        Who::Floor => "bar floor",
        Who::Other => "bar",
    };
    let text = (panel.text)(value);
    let tip = format!("{}: {text}", one.name);
    svg.bar(class, y, panel.at, end, &tip);
    svg.text("num", (end + 6.0, y + 4.5), Anchor::Start, &text);
}

/// The name without what the line below the bars says about all of them.
fn short(name: &str) -> &str {
    let end = [", each hand-off", ", in one process", ", in 2 processes"]
        .into_iter()
        .filter_map(|rest| name.find(rest))
        .min();
    end.map_or(name, |end| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::opening::headlines;
    use crate::measure::summary::SummaryCell;
    use crate::measure::synthetic;

    fn of(report: &crate::measure::model::Report) -> Vec<Headline> {
        headlines(&SummaryCell::all(report))
    }

    #[test]
    fn the_picture_stands_alone_and_leaves_out_what_stays_in_a_process() {
        let report = synthetic::planned(include_str!("../../../scenarios/targets.toml"));
        let found = of(&report);
        let picture = picture(&found).unwrap();
        for wanted in [
            "xmlns=\"http://www.w3.org/2000/svg\"",
            "prefers-color-scheme:dark",
            "class=\"pt bar ours\"",
            "class=\"pt bar floor\"",
            "blue: this library",
            "locks per second",
            "Redisson RLock",
            "Locktopus fair_lock, redis-rs",
        ] {
            assert!(picture.contains(wanted), "{wanted}");
        }
        assert!(found[0].rows.iter().any(|row| row.who == Who::Ours));
        assert_eq!(
            drawn(&found[0]).len(),
            picture.matches("class=\"name\"").count()
        );
        assert!(drawn(&found[0]).iter().all(|row| row.who != Who::Ours));
        assert_eq!(super::picture(&of(&synthetic::empty())), None);
    }
}
