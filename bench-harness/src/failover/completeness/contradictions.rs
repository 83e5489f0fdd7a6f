//! Finds where a cell contradicts itself.
//!
//! A cell has figures, outcomes and broken promises. A reader who counts only one of the three
//! would pass a cell that another one fails, so they must agree.

use locktopus_history::Property;

use crate::failover::model::{CellReport, Figures};
use crate::failover::plan::{Subject, Verb};

use super::{EXTERNAL, FAILED};

/// The contradictions of a cell, a sentence each.
pub(super) fn contradictions(cell: &CellReport) -> Vec<String> {
    let mut found = Vec::new();
    for property in Property::ALL {
        let failed = outcome(cell, property) == Some(FAILED);
        if failed && !is_told(cell, property) {
            found.push(format!(
                "{property} failed, which is neither a broken promise nor excused"
            ));
        }
        if let Some(count) = count(&cell.figures, property).filter(|count| *count > 0)
            && !failed
        {
            found.push(format!("{property} did not fail, with {count} violations"));
        }
    }
    let (doubles, figures) = (cell.figures.faults_with_double_grants, &cell.figures);
    if doubles > 0 && figures.validity.count == 0 && figures.permits_over == 0 {
        found.push(format!(
            "{doubles} faults with double grants, and none was valid beside another"
        ));
    }
    let is_done = cell.fault != Verb::Nothing && cell.provider != EXTERNAL;
    if is_done && cell.planned_faults == 0 {
        found.push(format!("no {} was planned", cell.fault));
    }
    found
}

/// The outcome of a property.
pub(super) fn outcome(cell: &CellReport, property: Property) -> Option<&str> {
    cell.outcomes.get(&property.to_string()).map(String::as_str)
}

/// Whether a failed property is in the list of broken promises, or in the list of properties that
/// are not required, with a reason.
fn is_told(cell: &CellReport, property: Property) -> bool {
    let begin = format!("{property}: ");
    let among = |texts: &[String]| texts.iter().any(|text| text.starts_with(&begin));
    among(&cell.broken_promises) || (may_be_excused(cell, property) && among(&cell.not_required))
}

/// For our locks only exclusion may be excused, and only where the mode does not promise it.
fn may_be_excused(cell: &CellReport, property: Property) -> bool {
    let exclusion = matches!(
        property,
        Property::ValidityOverlap
            | Property::UseOverlap
            | Property::PermitValidity
            | Property::PermitUse
    );
    cell.subject != Subject::Locktopus || (exclusion && !cell.exclusive)
}

/// How often a property was violated, if a figure counts exactly that. Late and overlapping uses
/// may be the machine's fault, and no figure counts outages, uses of permits or malformed records.
const fn count(figures: &Figures, property: Property) -> Option<u64> {
    Some(match property {
        Property::ValidityOverlap => figures.validity.count,
        Property::PermitValidity => figures.permits_over,
        Property::DuplicateTokens => figures.duplicate_tokens,
        Property::FallingTokens => figures.falling_tokens,
        Property::StaleWrites => figures.writes.missed,
        Property::GoodWrites => figures.writes.good_refused,
        Property::ExtensionAfterEnd => figures.extensions_after_end,
        Property::LossSignal => figures.signals.never,
        Property::FairOrder => figures.out_of_order,
        Property::Leftovers => figures.leftovers,
        Property::LostUpdates => figures.lost_checked.lost,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failover::completeness::tests::tested;

    /// A cell without fault.
    fn fine() -> CellReport {
        let mut cell = tested().cells.remove(0);
        cell.figures.faults_with_double_grants = 0;
        cell.figures.validity.count = 0;
        cell.not_required.clear();
        let all = Property::ALL.map(|property| (property.to_string(), "passed".to_owned()));
        cell.outcomes = all.into_iter().collect();
        cell
    }

    fn failing(property: Property) -> CellReport {
        let mut cell = fine();
        let name = property.to_string();
        cell.outcomes.insert(name, FAILED.to_owned());
        cell
    }

    fn told(property: Property) -> Vec<String> {
        vec![format!("{property}: so it is")]
    }

    #[test]
    fn what_failed_is_a_broken_promise_or_excused() {
        assert_eq!(contradictions(&fine()), [""; 0]);
        for property in Property::ALL {
            let mut cell = failing(property);
            let silent =
                format!("{property} failed, which is neither a broken promise nor excused");
            assert_eq!(contradictions(&cell), [silent]);
            cell.broken_promises = told(property);
            assert_eq!(contradictions(&cell), [""; 0], "{property}");
        }
    }

    #[test]
    fn exclusion_is_excused_where_it_is_not_promised_and_nothing_else_is() {
        let exclusion = ["validity", "use", "permits valid", "permits in use"];
        for property in Property::ALL {
            let mut cell = failing(property);
            cell.not_required = told(property);
            let excused = exclusion.contains(&&*property.to_string());
            let found = contradictions(&cell);
            assert_eq!(found.is_empty(), excused, "{property}: {found:?}");
            cell.exclusive = true;
            assert_eq!(contradictions(&cell).len(), 1, "{property}");
            // Results of other libraries are shown, not judged.
            cell.subject = Subject::R1;
            assert_eq!(contradictions(&cell), [""; 0], "{property}");
        }
    }

    #[test]
    fn what_was_counted_failed() {
        type Change = fn(&mut Figures);
        let counted: [(Property, Change); 11] = [
            (Property::ValidityOverlap, |of| of.validity.count = 2),
            (Property::PermitValidity, |of| of.permits_over = 2),
            (Property::DuplicateTokens, |of| of.duplicate_tokens = 2),
            (Property::FallingTokens, |of| of.falling_tokens = 2),
            (Property::StaleWrites, |of| of.writes.missed = 2),
            (Property::GoodWrites, |of| of.writes.good_refused = 2),
            (Property::ExtensionAfterEnd, |of| {
                of.extensions_after_end = 2
            }),
            (Property::LossSignal, |of| of.signals.never = 2),
            (Property::FairOrder, |of| of.out_of_order = 2),
            (Property::Leftovers, |of| of.leftovers = 2),
            (Property::LostUpdates, |of| of.lost_checked.lost = 2),
        ];
        for (property, change) in counted {
            let mut cell = fine();
            change(&mut cell.figures);
            let denied = format!("{property} did not fail, with 2 violations");
            assert_eq!(contradictions(&cell), [denied]);
            let name = property.to_string();
            cell.outcomes.insert(name, FAILED.to_owned());
            cell.broken_promises = told(property);
            assert_eq!(contradictions(&cell), [""; 0], "{property}");
        }
    }

    #[test]
    fn double_grants_are_counted_where_validity_is() {
        let mut cell = fine();
        cell.exclusive = true;
        cell.figures.faults_with_double_grants = 3;
        let found = contradictions(&cell);
        let alone = "3 faults with double grants, and none was valid beside another";
        assert_eq!(found, [alone]);
        cell.figures.validity.count = 1;
        let found = contradictions(&cell);
        assert_eq!(found, ["validity did not fail, with 1 violations"]);
    }

    #[test]
    fn a_fault_of_which_none_was_planned_is_none() {
        let mut cell = fine();
        (cell.planned_faults, cell.figures.faults) = (0, 0);
        assert_eq!(contradictions(&cell), ["no kill-primary was planned"]);
        cell.provider = EXTERNAL.to_owned();
        assert_eq!(contradictions(&cell), [""; 0]);
        cell.provider = "plain".to_owned();
        cell.fault = Verb::Nothing;
        assert_eq!(contradictions(&cell), [""; 0]);
    }

    #[test]
    fn the_kept_runs_do_not_contradict_themselves() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/failover");
        let mut cells = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "json") {
                let report = crate::failover::model::read(&path).unwrap();
                cells += report.cells.len();
                let missing = crate::failover::completeness::missing(&report);
                assert_eq!(missing, [""; 0], "{}", path.display());
            }
        }
        assert!(cells > 100);
    }
}
