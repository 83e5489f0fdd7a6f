//! The events around one fault: who held which lock, and what happened meanwhile.

use crate::failover::model::Timeline;
use crate::shared::render::format::duration;
use crate::shared::render::scale::Scale;
use crate::shared::render::svg::{Anchor, Svg};

const WIDTH: f64 = 1_160.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 1_140.0;
const ROW: f64 = 30.0;
/// Labels of marks climb in steps, so that neighbours do not cover each other.
const STEP: f64 = 14.0;
const STEPS: usize = 4;

/// Draws the timeline.
pub(super) fn draw(timeline: &Timeline, title: &str) -> String {
    let top = 12.0 + STEP * STEPS as f64;
    let bottom = top + ROW * timeline.locks.len() as f64;
    let mut svg = Svg::new(
        WIDTH,
        bottom + 26.0,
        title,
        "Rows are locks, bars are grants; pale: believed in, full: used. Lines are faults and what followed.",
    );
    let seconds = timeline.span_ns as f64 / 1e9;
    let scale = Scale::linear(0.0, seconds.max(0.001)).onto(LEFT, RIGHT);
    let x = |ns: u64| scale.at(ns as f64 / 1e9);
    for tick in scale.ticks() {
        svg.line("grid", (scale.at(tick), top), (scale.at(tick), bottom));
        svg.text(
            "tick",
            (scale.at(tick), bottom + 16.0),
            Anchor::Middle,
            // In floating point, three times 0.2 is a little more than 0.6.
            &format!("{} s", (tick * 1e3).round() / 1e3),
        );
    }
    let y = |lock: usize| top + ROW * (lock as f64 + 0.5);
    for (at, name) in timeline.locks.iter().enumerate() {
        svg.text("", (LEFT - 10.0, y(at) + 4.0), Anchor::End, name);
    }
    for grant in &timeline.grants {
        let process = timeline.processes.get(grant.process);
        let process = process.map_or("a process", String::as_str);
        let double = if grant.double {
            ", while another holder believed"
        } else {
            ""
        };
        let tip = format!(
            "{process}: believed for {}, used for {}{double}",
            duration(grant.valid_until_ns.saturating_sub(grant.from_ns)),
            duration(grant.used_until_ns.saturating_sub(grant.from_ns)),
        );
        // A grant during another holder's validity is drawn below it, or it would be hidden.
        let y = y(grant.lock) + if grant.double { 7.0 } else { -4.0 };
        let from = x(grant.from_ns);
        svg.open(grant.process * 2);
        svg.bar(
            "believed",
            y,
            from,
            x(grant.valid_until_ns).max(from + 1.0),
            &tip,
        );
        svg.bar(
            "used",
            y,
            from,
            x(grant.used_until_ns).max(from + 1.0),
            &tip,
        );
        svg.close();
        if grant.double {
            svg.line("double", (from, y - 6.0), (from, y + 6.0));
        }
    }
    for (at, mark) in timeline.marks.iter().enumerate() {
        let place = x(mark.at_ns);
        let label = 10.0 + STEP * (at % STEPS) as f64;
        let class = if mark.fault { "fault" } else { "after" };
        svg.line(class, (place, label + 3.0), (place, bottom));
        // Near the right edge, the label goes to the left of its line.
        let (anchor, at) = if place > RIGHT - 160.0 {
            (Anchor::End, place - 4.0)
        } else {
            (Anchor::Start, place + 4.0)
        };
        let text = format!("{} {}", mark.what, mark.target);
        svg.text(class, (at, label + 4.0), anchor, &text);
    }
    svg.finish()
}
