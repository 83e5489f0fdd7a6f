//! Groups cells into tables and charts, and names them there.

use std::collections::BTreeSet;

use crate::measure::model::{Cell, Pacing, Provider, Report, Subject};
use crate::shared::render::format;

/// The strategy that labels leave out beside others.
const OURS: &str = "locktopus";

/// Cells that can be compared: one scenario, all direct or all through a proxy, all corrected for
/// coordinated omission or none.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// The scenario.
    pub scenario: &'a str,
    /// Whether a proxy sat in the path.
    pub through_proxy: bool,
    /// Whether latencies count from the intended start.
    pub corrected: bool,
    /// Values that all cells share, with their names.
    pub constants: Vec<(String, String)>,
    /// The cells, with what tells them apart.
    pub rows: Vec<Row<'a>>,
}

/// A cell within a [`Group`].
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// The values of strategy, client, topology and so on that differ within the group.
    pub series: String,
    /// The values of workers, locks and hold time that differ within the group.
    pub load: String,
}

impl Row<'_> {
    /// Series and load together.
    #[must_use]
    pub fn label(&self) -> String {
        if self.load.is_empty() {
            self.series.clone()
        } else {
            format!("{}, {}", self.series, self.load)
        }
    }
}

impl Group<'_> {
    /// Heading of the group.
    #[must_use]
    pub fn title(&self) -> String {
        let mut title = self.scenario.to_owned();
        if self.through_proxy {
            title.push_str(" (through a proxy)");
        }
        title
    }

    /// Loads of the group, in order of appearance.
    #[must_use]
    pub fn loads(&self) -> Vec<&str> {
        distinct(self.rows.iter().map(|row| row.load.as_str()))
    }

    /// Series of the group, in order of appearance.
    #[must_use]
    pub fn series(&self) -> Vec<&str> {
        distinct(self.rows.iter().map(|row| row.series.as_str()))
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

/// Scenario, through a proxy, corrected for coordinated omission.
type Key<'a> = (&'a str, bool, bool);

/// The groups of `report`, in order of first appearance.
#[must_use]
pub fn groups(report: &Report) -> Vec<Group<'_>> {
    let mut keyed: Vec<(Key<'_>, Vec<&Cell>)> = Vec::new();
    for cell in report.cells.iter().filter(|cell| !cell.rounds.is_empty()) {
        let corrected = cell.subject.pacing.is_corrected();
        let key = (
            cell.subject.scenario.as_str(),
            cell.subject.through_proxy,
            corrected,
        );
        match keyed.iter_mut().find(|(known, _)| *known == key) {
            Some((_, cells)) => cells.push(cell),
            None => keyed.push((key, vec![cell])),
        }
    }
    keyed
        .into_iter()
        .map(|(key, cells)| group(key, &cells))
        .collect()
}

fn group<'a>((scenario, through_proxy, corrected): Key<'a>, cells: &[&'a Cell]) -> Group<'a> {
    let option_names: BTreeSet<&str> = cells
        .iter()
        .flat_map(|cell| cell.subject.options.keys().map(String::as_str))
        // The number of rounds does not make it another thing.
        .filter(|name| *name != "rounds")
        .collect();
    let who = |subject: &Subject| who(subject, &option_names);
    // Cells without a server have no values for servers, and that makes no difference.
    let values =
        |dims: &dyn Fn(&Subject) -> Vec<(String, String)>, at: usize| -> BTreeSet<String> {
            let all = cells
                .iter()
                .map(|cell| dims(&cell.subject).swap_remove(at).1);
            let with_servers = |value: &String| at == 0 || !value.is_empty();
            all.filter(with_servers).collect()
        };
    let mut constants = Vec::new();
    let mut keep = |dims: &dyn Fn(&Subject) -> Vec<(String, String)>| -> Vec<usize> {
        let first = dims(&cells[0].subject);
        let (fixed, varying) = (0..first.len()).partition::<Vec<_>, _>(|&at| {
            values(dims, at).len() <= 1 && !sets_apart(&first[at].0, cells)
        });
        constants.extend(fixed.into_iter().filter_map(|at| {
            let name = first[at].0.clone();
            let value = values(dims, at).pop_first()?;
            // Options include their name in the value, for labels.
            let value = match value.strip_prefix(&name) {
                Some(rest) => rest.trim_start().to_owned(),
                None => value,
            };
            Some((name, value))
        }));
        varying
    };
    let who_varies = keep(&who);
    let load_varies = keep(&load);
    let rows = cells
        .iter()
        .map(|cell| {
            let dims = who(&cell.subject);
            let mut names: Vec<_> = who_varies
                .iter()
                .map(|&at| dims[at].1.as_str())
                .filter(|s| !s.is_empty())
                .collect();
            // Labels name peers; a label without a peer means this library.
            if names.len() > 1 && names[0] == OURS {
                names.remove(0);
            }
            names.dedup();
            let series = if names.is_empty() {
                cell.subject.strategy.clone()
            } else {
                names.join(" · ")
            };
            let dims = load(&cell.subject);
            let loads: Vec<_> = load_varies
                .iter()
                .map(|&at| format!("{}={}", dims[at].0, dims[at].1))
                .collect();
            Row {
                cell,
                series,
                load: loads.join(" "),
            }
        })
        .collect();
    Group {
        scenario,
        through_proxy,
        corrected,
        constants,
        rows,
    }
}

/// Whether cells of one strategy differ in this option. A cell that lacks it counts as different.
/// If all cells of a strategy have an option and no others do, it adds nothing to the strategy's
/// name.
fn sets_apart(option: &str, cells: &[&Cell]) -> bool {
    let mut seen: Vec<(&str, Option<&String>)> = Vec::new();
    cells.iter().any(|cell| {
        let (strategy, value) = (&*cell.subject.strategy, cell.subject.options.get(option));
        let differs = seen
            .iter()
            .any(|known| known.0 == strategy && known.1 != value);
        seen.push((strategy, value));
        differs
    })
}

fn who(subject: &Subject, option_names: &BTreeSet<&str>) -> Vec<(String, String)> {
    let memory = subject.provider == Provider::Memory;
    let topology = match subject.nodes {
        _ if memory => String::new(),
        0 | 1 => subject.topology.name().to_owned(),
        nodes => format!("{}/{nodes}", subject.topology.name()),
    };
    let server = subject.server.as_ref().map_or_else(String::new, |server| {
        format!("{} {}", server.flavour, server.version)
    });
    let provider = if memory { "" } else { subject.provider.name() };
    let mut dims = vec![
        ("strategy".to_owned(), subject.strategy.clone()),
        ("client".to_owned(), subject.client.clone()),
        ("topology".to_owned(), topology),
        ("server".to_owned(), server),
        ("provider".to_owned(), provider.to_owned()),
        ("lock".to_owned(), subject.lock_kind.clone()),
    ];
    dims.extend(option_names.iter().map(|name| {
        let value = subject.options.get(*name);
        (
            (*name).to_owned(),
            value.map_or_else(String::new, |value| format!("{name} {value}")),
        )
    }));
    dims
}

fn load(subject: &Subject) -> Vec<(String, String)> {
    let arrivals = match subject.pacing {
        Pacing::ClosedLoop => String::new(),
        Pacing::OpenLoop {
            arrivals_per_second,
        } => format::count(arrivals_per_second),
    };
    vec![
        ("W".to_owned(), subject.workers.to_string()),
        ("P".to_owned(), subject.processes.to_string()),
        ("locks".to_owned(), subject.locks.to_string()),
        ("arrivals/s".to_owned(), arrivals),
        ("hold".to_owned(), format::duration(subject.hold_ns)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    #[test]
    fn labels_say_what_differs_and_nothing_else() {
        let report = synthetic::shared();
        let groups = groups(report);
        let hot = &groups[0];
        assert_eq!(hot.scenario, "hot-lock");
        assert_eq!(hot.rows[0].series, "mutex");
        assert_eq!(hot.rows[0].load, "W=2 P=2");
        assert!(
            hot.constants
                .contains(&("client".to_owned(), "redis-rs".to_owned()))
        );
        let free = &groups[1];
        assert_eq!(free.rows[0].label(), "redis-rs · standalone");
    }

    #[test]
    fn an_option_that_some_lack_tells_them_apart() {
        let mut report = synthetic::shared().clone();
        let turns = |cell: &mut Cell| cell.subject.options.insert("turns".into(), "1".into());
        let mut other = report.cells[0].clone();
        turns(&mut other);
        report.cells.insert(1, other);
        let labels = |report: &Report| -> Vec<String> {
            groups(report)[0].rows.iter().map(Row::label).collect()
        };
        let found = labels(&report);
        assert_eq!(found[0], "mutex, W=2 P=2");
        assert_eq!(found[1], "mutex · turns 1, W=2 P=2");
        let distinct: BTreeSet<_> = found.iter().collect();
        assert_eq!(distinct.len(), found.len(), "{found:?}");
        // If all cells of a strategy have an option, the strategy says it all.
        for cell in report
            .cells
            .iter_mut()
            .filter(|cell| cell.subject.strategy == "rslock")
        {
            cell.subject.options.insert("JIT".into(), "3s".into());
        }
        assert!(labels(&report).iter().all(|label| !label.contains("JIT")));
    }

    #[test]
    fn proxied_and_direct_never_share_a_group() {
        let mut report = synthetic::shared().clone();
        report.cells[0].subject.through_proxy = true;
        let groups = groups(&report);
        for group in &groups {
            let proxied = |row: &Row<'_>| row.cell.subject.through_proxy;
            assert!(
                group
                    .rows
                    .iter()
                    .all(|row| proxied(row) == group.through_proxy)
            );
        }
        assert_eq!(
            groups
                .iter()
                .filter(|group| group.scenario == "hot-lock" && !group.corrected)
                .count(),
            2
        );
    }

    #[test]
    fn nothing_measured_makes_no_groups() {
        assert!(groups(&synthetic::empty()).is_empty());
    }
}
