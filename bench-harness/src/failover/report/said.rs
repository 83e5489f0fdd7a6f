//! The notes of a run: what it says nothing about, and why.

use std::collections::BTreeMap;

use crate::failover::model::{CellReport, FailoverReport};
use crate::failover::plan::Subject;

/// With fewer updates than this, a share means nothing.
pub const FEWEST_UPDATES: u64 = 30;

/// Properties that were not required of our locks: each reason once, with the number of cells.
pub fn not_required(report: &FailoverReport) -> Vec<String> {
    let cells = report.cells.iter();
    let ours = cells.filter(|cell| cell.subject == Subject::Locktopus);
    let mut reasons: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for (property, why) in ours
        .flat_map(|cell| &cell.not_required)
        .filter_map(|said| said.split_once(": "))
    {
        let properties = reasons.entry(why).or_default();
        match properties.iter_mut().find(|(known, _)| *known == property) {
            Some((_, cells)) => *cells += 1,
            None => properties.push((property, 1)),
        }
    }
    let line = |(why, properties): (&str, Vec<(&str, u64)>)| {
        let named: Vec<_> = properties
            .iter()
            .map(|(property, cells)| format!("{property} ({cells})"))
            .collect();
        format!("{}: {why}", named.join(", "))
    };
    reasons.into_iter().map(line).collect()
}

/// Whether a cell has enough updates for a row in a table that people quote from.
pub const fn is_a_row(cell: &CellReport) -> bool {
    cell.figures.lost_unchecked.done >= FEWEST_UPDATES
}

/// Cells with too few updates for a row, in words.
pub fn too_few(report: &FailoverReport) -> Vec<String> {
    let few = report
        .cells
        .iter()
        .filter(|cell| !cell.subject.is_broken() && !is_a_row(cell));
    few.map(|cell| {
        let updates = cell.figures.lost_unchecked.done;
        format!(
            "{} on {}, {}: {updates} updates",
            cell.scenario,
            cell.topology,
            cell.who()
        )
    })
    .collect()
}

/// Stalls of the machine during a cell that broke a promise: was it the machine or a lock?
pub fn machine(cell: &CellReport) -> Option<String> {
    let machine = cell.machine.as_ref()?;
    (!cell.broken_promises.is_empty())
        .then(|| format!("the machine meanwhile: {}", machine.describe()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::stall::MachineStall;

    fn report() -> FailoverReport {
        let text = include_str!("../../../tests/data/failover-summary.json");
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn each_reason_is_told_once() {
        let mut report = report();
        let mut cell = report.cells[0].clone();
        cell.not_required = vec![
            "use: forgotten".to_owned(),
            "fair order: nobody waited".to_owned(),
        ];
        let mut other = cell.clone();
        other.not_required = vec![
            "use: forgotten".to_owned(),
            "validity: forgotten".to_owned(),
        ];
        let mut peer = cell.clone();
        peer.subject = Subject::R1;
        report.cells = vec![cell, other, peer];
        assert_eq!(
            not_required(&report),
            [
                "use (2), validity (1): forgotten",
                "fair order (1): nobody waited"
            ]
        );
    }

    #[test]
    fn few_updates_are_no_row() {
        let mut report = report();
        assert_eq!(too_few(&report), Vec::<String>::new());
        report.cells[0].figures.lost_unchecked.done = FEWEST_UPDATES - 1;
        assert!(too_few(&report)[0].ends_with(": 29 updates"));
        report.cells[0].subject = Subject::BrokenRelease;
        assert_eq!(too_few(&report), Vec::<String>::new());
    }

    #[test]
    fn the_machine_is_a_witness_where_a_promise_was_not_kept() {
        let mut report = report();
        let cell = &mut report.cells[0];
        cell.machine = Some(MachineStall::default());
        cell.broken_promises.clear();
        assert_eq!(machine(cell), None);
        cell.broken_promises.push("validity: 1".to_owned());
        assert!(machine(cell).unwrap().starts_with("the machine meanwhile"));
    }
}
