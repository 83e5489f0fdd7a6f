//! A comparison as text for the terminal.

use std::fmt::Write as _;

use comfy_table::{Cell as Field, Color};

use super::compare::{Comparison, Delta, Pair, Verdict};
use super::format;
use crate::shared::render::table::{self, Style, wrap};

/// Renders `comparison`. Unless `all`, figures whose change stays within noise are only counted.
#[must_use]
pub fn render(comparison: &Comparison<'_>, all: bool, style: Style) -> String {
    let mut out = String::new();
    for (letter, report) in [("A", comparison.before), ("B", comparison.after)] {
        let run = &report.run;
        let _ = writeln!(
            out,
            "{letter} = {}, {}, {} rounds",
            run.id, run.started_at, run.rounds
        );
    }
    differences(&mut out, comparison, style);
    let mut unchanged = 0;
    for pair in &comparison.pairs {
        let shown: Vec<_> = pair
            .deltas
            .iter()
            .filter(|delta| all || delta.verdict != Verdict::WithinNoise)
            .collect();
        if shown.is_empty() {
            unchanged += 1;
        } else {
            section(&mut out, pair, &shown, style);
        }
    }
    let _ = writeln!(
        out,
        "\n{} cells compared, {unchanged} of them without a change beyond noise.",
        comparison.pairs.len()
    );
    for (letter, cells) in [
        ("A", &comparison.only_before),
        ("B", &comparison.only_after),
    ] {
        for cell in cells {
            let _ = writeln!(out, "Only in {letter}: {}", cell.subject.describe());
        }
    }
    out
}

fn differences(out: &mut String, comparison: &Comparison<'_>, style: Style) {
    if comparison.differences.is_empty() {
        out.push_str("\nSame machine, servers, pinning and build.\n");
        return;
    }
    out.push_str("\nThe runs were NOT made under the same conditions:\n");
    for difference in &comparison.differences {
        let _ = writeln!(out, "{}", wrap(difference, "  ", style.width));
    }
    let advice = "Multiples of the RTT carry over between machines, absolute times do not.";
    let _ = writeln!(out, "{}", wrap(advice, "  ", style.width));
}

fn section(out: &mut String, pair: &Pair<'_>, shown: &[&Delta], style: Style) {
    let _ = writeln!(
        out,
        "\n{}",
        wrap(&pair.after.subject.describe(), "", style.width)
    );
    let mut table = table::new(&["figure", "A", "±", "B", "±", "change", "verdict"], style);
    for delta in shown {
        let unit = delta.measure.unit();
        let value = |value| format::value(value, unit) + format::suffix(unit);
        table.add_row([
            Field::new(delta.measure.name()),
            Field::new(value(delta.before.median)),
            Field::new(format::noise(Some(delta.before), unit)),
            Field::new(value(delta.after.median)),
            Field::new(format::noise(Some(delta.after), unit)),
            Field::new(format!("{:+.1}%", delta.percent)),
            verdict(delta.verdict),
        ]);
    }
    table::align(&mut table, 1);
    let hidden = pair.deltas.len() - shown.len();
    let _ = writeln!(out, "{}", table.trim_fmt());
    if hidden > 0 {
        let _ = writeln!(out, "{hidden} more figures within noise");
    }
}

fn verdict(verdict: Verdict) -> Field {
    match verdict {
        Verdict::Better => Field::new("better").fg(Color::Green),
        Verdict::Worse => Field::new("worse").fg(Color::Red),
        Verdict::WithinNoise => Field::new("within noise"),
        Verdict::NoiseUnknown => Field::new("too few rounds: noise unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::report::compare::compare;
    use crate::measure::synthetic;

    #[test]
    fn says_when_conditions_differ_and_what_is_missing() {
        let after = synthetic::regressed();
        let comparison = compare(synthetic::shared(), &after);
        let text = render(&comparison, false, Style::default());
        assert!(text.contains("NOT made under the same conditions"));
        assert!(text.contains("worse"));
        assert!(text.contains("Only in A: failover"));
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }

    #[test]
    fn all_shows_what_did_not_change() {
        let report = synthetic::shared();
        let comparison = compare(report, report);
        assert!(!render(&comparison, false, Style::default()).contains("within noise\n\n"));
        assert!(render(&comparison, true, Style::default()).contains("within noise"));
    }
}
