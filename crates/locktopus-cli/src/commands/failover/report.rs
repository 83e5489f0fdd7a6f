//! The lines printed during the watch, and the summary.

use std::time::Duration;

use serde::Serialize;

use super::incidents::{Incident, Sign};
use super::tally::{Effect, Row, Tally};
use crate::output::{Style, Table, age, coloured};

/// One line of the answer.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Line {
    Started(Started),
    Progress(Progress),
    Fault(Fault),
    Summary(Box<Summary>),
}

#[derive(Debug, Serialize)]
pub(super) struct Started {
    pub(super) safety: String,
    pub(super) primaries: Vec<String>,
    /// The common prefix of the names, without the namespace.
    pub(super) prefix: String,
    pub(super) names: usize,
    pub(super) workers: usize,
}

/// Events since the last line. Only the checker's counts cover the whole watch.
#[derive(Debug, Serialize)]
pub(super) struct Progress {
    pub(super) after_ms: u64,
    pub(super) grants_per_second: f64,
    pub(super) errors: u64,
    pub(super) lost: u64,
    /// The longest time a name in constant demand went without a grant.
    pub(super) longest_gap_ms: u64,
    pub(super) faults: usize,
    pub(super) double_grants: u64,
    pub(super) tokens_out_of_order: u64,
    pub(super) stale_writes: u64,
}

/// A fault. Reported when first seen, when it turns out worse, and when it is over.
#[derive(Debug, Serialize)]
pub(super) struct Fault {
    pub(super) after_ms: u64,
    pub(super) number: usize,
    pub(super) fault: Sign,
    pub(super) target: String,
    pub(super) over: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outage_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) double_grants: Option<u64>,
}

impl Fault {
    pub(super) fn seen(incident: &Incident, after: Duration) -> Self {
        Self {
            after_ms: millis(after),
            number: incident.number,
            fault: incident.sign,
            target: incident.target.clone(),
            over: false,
            outage_ms: None,
            double_grants: None,
        }
    }

    pub(super) fn over(incident: &Incident, began: Duration, effect: Effect) -> Self {
        Self {
            over: true,
            outage_ms: effect.outage_ns.map(|nanos| nanos / 1_000_000),
            double_grants: Some(effect.double_grants),
            ..Self::seen(incident, began)
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Summary {
    pub(super) took_ms: u64,
    pub(super) safety: String,
    pub(super) grants: u64,
    pub(super) errors: u64,
    pub(super) lost: u64,
    #[serde(flatten)]
    pub(super) tally: Tally,
    pub(super) rates: Vec<Row>,
    pub(super) faults: Vec<Fault>,
    /// Why the exit code is not 0.
    pub(super) failed: Vec<String>,
}

/// The column headings.
pub(super) fn heading() -> String {
    let text = format!(
        "{:>8} {:>9} {:>7} {:>5} {:>11} {:>7} {:>7} {:>7} {:>7}",
        "AFTER", "GRANTS/S", "ERRORS", "LOST", "LONGEST GAP", "FAULTS", "DOUBLE", "TOKENS", "STALE"
    );
    coloured(Style::Faint, &text)
}

pub(super) fn text(line: &Line) -> String {
    match line {
        Line::Started(started) => format!(
            "watching {} ({}), {} workers on {} names {}*; fail them over now, end with Ctrl-C\n{}",
            started.primaries.join(", "),
            started.safety,
            started.workers,
            started.names,
            started.prefix,
            heading()
        ),
        Line::Progress(now) => progress(now),
        Line::Fault(fault) => told(fault),
        Line::Summary(summary) => summed(summary),
    }
}

fn progress(now: &Progress) -> String {
    let count = |number: u64| {
        let text = format!("{number:>7}");
        if number > 0 {
            coloured(Style::Bad, &text)
        } else {
            text
        }
    };
    format!(
        "{:>8} {:>9.0} {:>7} {:>5} {:>11} {:>7} {} {} {}",
        age(Duration::from_millis(now.after_ms)),
        now.grants_per_second,
        now.errors,
        now.lost,
        format!("{} ms", now.longest_gap_ms),
        now.faults,
        count(now.double_grants),
        count(now.tokens_out_of_order),
        count(now.stale_writes),
    )
}

fn told(fault: &Fault) -> String {
    let mut text = format!(
        "{:>8} fault {}: {}, {}",
        age(Duration::from_millis(fault.after_ms)),
        fault.number,
        fault.fault,
        fault.target
    );
    if fault.over {
        text.push_str(" - over");
        if let Some(outage) = fault.outage_ms {
            text.push_str(&format!(", {outage} ms without a grant"));
        }
        if let Some(double) = fault.double_grants {
            text.push_str(&format!(", double grants {double}"));
        }
    }
    let style = if fault.over {
        Style::Faint
    } else {
        Style::Doubtful
    };
    coloured(style, &text)
}

fn summed(summary: &Summary) -> String {
    let tally = &summary.tally;
    let mut lines = vec![
        String::new(),
        format!(
            "watched for {}, safety {}: {} grants, {} errors, {} leases lost, {} faults seen",
            age(Duration::from_millis(summary.took_ms)),
            summary.safety,
            summary.grants,
            summary.errors,
            summary.lost,
            summary.faults.len()
        ),
    ];
    if !summary.rates.is_empty() {
        let mut table = Table::new([
            "FAULT",
            "SEEN",
            "MEDIAN GAP",
            "WORST GAP",
            "WITH DOUBLE GRANTS",
            "OF 1000 (95 %)",
        ]);
        for row in &summary.rates {
            let rate = &row.double_grants;
            table.add([
                row.fault.to_string(),
                row.seen.to_string(),
                format!("{} ms", row.median_outage_ms),
                format!("{} ms", row.longest_outage_ms),
                rate.hits.to_string(),
                format!(
                    "{:.0} ({:.0} to {:.0})",
                    rate.per_1000, rate.low_per_1000, rate.high_per_1000
                ),
            ]);
        }
        lines.push(table.render());
    }
    lines.extend(summary.faults.iter().map(told));
    lines.push(format!(
        "double grants {}{}; tokens out of order {}; stale writes refused {}, accepted {}",
        tally.double_grants,
        if tally.double_grants > 0 {
            format!(" (both valid for up to {} ms)", tally.longest_overlap_ms)
        } else {
            String::new()
        },
        tally.tokens_out_of_order,
        tally.stale_writes_refused,
        tally.stale_writes_accepted,
    ));
    if summary.failed.is_empty() {
        lines.push(coloured(Style::Good, "every promise of this mode was kept"));
    }
    let failed = summary.failed.iter();
    lines.extend(failed.map(|reason| coloured(Style::Bad, &format!("failed: {reason}"))));
    lines.join("\n")
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
