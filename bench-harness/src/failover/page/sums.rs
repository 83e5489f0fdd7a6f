//! The total of all combinations of a mode, for readers who want one line instead of a hundred.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use locktopus_history::Rate;

use crate::failover::model::{CellReport, FailoverReport};
use crate::failover::plan::{Place, Subject, Verb};
use crate::shared::render::format::{NONE, count};

/// The kinds of fault that have their own total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    /// A primary dies and a replica takes over.
    Killed(Behind),
    /// A planned failover.
    Planned(Behind),
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Behind {
    Sentinel,
    Cluster,
}

#[derive(Debug, Default)]
struct Sum {
    faults: u64,
    double_grants: u64,
    caught: u64,
    missed: u64,
    lost: u64,
    lost_checked: u64,
}

const HEAD: &str = "\
| mode | what was done | faults | followed by a double grant | per 1,000 (95 %) | stale writes caught / missed | \
updates lost without / with tokens |
|---|---|--:|--:|--:|--:|--:|
";

/// The table of all cells of Locktopus in `reports`, both clients together; empty without any.
pub(super) fn table(reports: &[FailoverReport]) -> String {
    let cells = || reports.iter().flat_map(|report| &report.cells);
    let ours = || cells().filter(|cell| cell.subject == Subject::Locktopus);
    let mut modes: Vec<&str> = Vec::new();
    for cell in ours() {
        if !modes.contains(&&*cell.mode) {
            modes.push(&cell.mode);
        }
    }
    let mut sums: BTreeMap<(usize, Sort), Sum> = BTreeMap::new();
    for cell in ours() {
        let at = modes.iter().position(|known| *known == cell.mode);
        // The loop above inserted it.
        let at = at.unwrap_or_default();
        sums.entry((at, sort(cell))).or_default().add(cell);
    }
    if sums.is_empty() {
        return String::new();
    }
    let mut out = "What this campaign did in all, through both clients. Rates are those of all its faults together, which are not alike: one primary is killed right after\na grant, another is cut off before, and a replica that lags is promoted. The rows below tell them apart.\n\n".to_owned();
    out.push_str(HEAD);
    for ((mode, sort), sum) in &sums {
        let _ = writeln!(out, "| {} | {} {}", modes[*mode], sort.words(), sum.cells());
    }
    out.push('\n');
    out
}

fn sort(cell: &CellReport) -> Sort {
    let behind = match cell.topology {
        Place::Sentinel => Behind::Sentinel,
        Place::Cluster => Behind::Cluster,
        _ => return Sort::Other,
    };
    match cell.fault {
        Verb::KillPrimary | Verb::PromoteLaggard => Sort::Killed(behind),
        Verb::PlannedFailover => Sort::Planned(behind),
        _ => Sort::Other,
    }
}

impl Sort {
    const fn words(self) -> &'static str {
        match self {
            Self::Killed(Behind::Sentinel) => "primaries of Sentinel killed",
            Self::Killed(Behind::Cluster) => "primaries of a cluster killed",
            Self::Planned(Behind::Sentinel) => "orderly changes by Sentinel",
            Self::Planned(Behind::Cluster) => "orderly changes of a cluster",
            Self::Other => "everything else",
        }
    }
}

impl Sum {
    fn add(&mut self, cell: &CellReport) {
        let of = &cell.figures;
        self.faults += of.faults;
        self.double_grants += of.faults_with_double_grants;
        self.caught += of.writes.caught;
        self.missed += of.writes.missed;
        self.lost += of.lost_unchecked.lost;
        self.lost_checked += of.lost_checked.lost;
    }

    fn cells(&self) -> String {
        let rate = Rate::new(self.double_grants, self.faults).map_or_else(
            || NONE.to_owned(),
            |rate| {
                format!(
                    "{:.0} ({:.0}–{:.0})",
                    rate.per_1000, rate.low_per_1000, rate.high_per_1000
                )
            },
        );
        format!(
            "| {} | {} | {rate} | {} / {} | {} / {} |",
            count(self.faults),
            count(self.double_grants),
            count(self.caught),
            count(self.missed),
            count(self.lost),
            count(self.lost_checked),
        )
    }
}
