//! The conformance table: read from recorded runs, written as Markdown, and checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use locktopus_conformance::Flavour;

/// One run of the suite: backend, topology, provider, server, client.
pub(crate) type Place = [String; 5];

/// The columns before those of the kinds.
pub(crate) const PLACE: [&str; 5] = ["backend", "topology", "provider", "server", "client"];

/// The text above the table.
const INTRODUCTION: &str = "\
# Who conforms

`scripts/conformance-table` makes this page from reports of the conformance suite; do not edit it. A cell shows how many
cases passed and how many ran, for one kind of lock. Cases that do not apply are skipped and not counted. `redis-rs + fred`
means clients of both libraries on the same locks at the same time. `quorum` is Redlock over five servers, which offers
only mutexes, without a queue and wake-ups. `one node of a quorum` runs every kind on one of those servers alone.
";

/// How many cases passed, and how many ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    passed: u64,
    total: u64,
}

/// The whole table. If a setting was run more than once, its last run counts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    rows: BTreeMap<Place, BTreeMap<String, Cell>>,
}

/// The kinds that a setting must cover: a quorum refuses all except mutexes.
fn kinds_at(place: &Place) -> impl Iterator<Item = &'static str> {
    let quorum = place[1] == QUORUM;
    let offered = move |flavour: &Flavour| !quorum || QUORUM_KINDS.contains(flavour);
    let flavours = Flavour::ALL.into_iter().filter(offered);
    flavours.map(Flavour::as_str)
}

/// The columns, in order.
fn kinds() -> impl Iterator<Item = &'static str> {
    Flavour::ALL.into_iter().map(Flavour::as_str)
}

impl Table {
    /// Reads the JSON lines that the suite appends.
    pub(crate) fn recorded(lines: &str) -> Result<Self, String> {
        let mut table = Self::default();
        for (number, line) in lines.lines().enumerate() {
            let bad = |what: &str| format!("line {}: {what}: {line}", number + 1);
            let value: serde_json::Value =
                serde_json::from_str(line).map_err(|error| bad(&error.to_string()))?;
            let text = |key: &str| {
                let text = value[key].as_str().map(ToOwned::to_owned);
                text.ok_or_else(|| bad(&format!("no text {key:?}")))
            };
            let count = |key: &str| {
                value[key]
                    .as_u64()
                    .ok_or_else(|| bad(&format!("no number {key:?}")))
            };
            let mut place = Place::default();
            for (slot, key) in place.iter_mut().zip(PLACE) {
                *slot = text(key)?;
            }
            let cell = Cell {
                passed: count("passed")?,
                total: count("total")?,
            };
            table
                .rows
                .entry(place)
                .or_default()
                .insert(text("kind")?, cell);
        }
        Ok(table)
    }

    /// Reads a table as [`markdown`](Self::markdown) writes it.
    pub(crate) fn written(text: &str) -> Result<Self, String> {
        let mut rows = text.lines().filter(|line| line.starts_with('|'));
        let header: Vec<_> = rows.next().map(cells).unwrap_or_default();
        let expected: Vec<_> = PLACE.into_iter().chain(kinds()).collect();
        if header != expected {
            return Err(format!("the columns are {header:?}, not {expected:?}"));
        }
        let mut table = Self::default();
        for row in rows.skip(1) {
            let row_cells = cells(row);
            if row_cells.len() != expected.len() {
                return Err(format!("not {} columns: {row}", expected.len()));
            }
            let (place, counts) = row_cells.split_at(PLACE.len());
            let mut found = Place::default();
            for (slot, text) in found.iter_mut().zip(place) {
                *slot = (*text).to_owned();
            }
            let mut line = BTreeMap::new();
            for (kind, text) in kinds().zip(counts).filter(|(_, text)| !text.is_empty()) {
                let cell =
                    Cell::read(text).ok_or_else(|| format!("no count: {text:?} in {row}"))?;
                line.insert(kind.to_owned(), cell);
            }
            table.rows.insert(found, line);
        }
        Ok(table)
    }

    /// The table with its introduction.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("{INTRODUCTION}\n");
        let header: Vec<_> = PLACE.into_iter().chain(kinds()).collect();
        let _ = writeln!(text, "| {} |", header.join(" | "));
        let _ = writeln!(text, "|{}", "---|".repeat(header.len()));
        for (place, line) in &self.rows {
            let _ = write!(text, "| {} |", place.join(" | "));
            for kind in kinds() {
                let cell = line.get(kind).map(|c| format!("{}/{}", c.passed, c.total));
                let _ = write!(text, " {} |", cell.unwrap_or_default());
            }
            text.push('\n');
        }
        text
    }

    /// The problems: missing settings, missing kinds, and failed cases.
    pub(crate) fn problems(&self, wanted: &[Wanted]) -> Vec<String> {
        let mut problems = BTreeSet::new();
        for place in wanted {
            if !self.rows.keys().any(|row| place.is(row)) {
                problems.insert(format!("not run: {place}"));
            }
        }
        for (place, line) in &self.rows {
            let at = place.join(", ");
            for kind in kinds_at(place) {
                match line.get(kind) {
                    None => problems.insert(format!("not run: {kind} on {at}")),
                    Some(Cell { total: 0, .. }) => {
                        problems.insert(format!("no case ran: {kind} on {at}"))
                    }
                    Some(Cell { passed, total }) if passed != total => problems.insert(format!(
                        "{} of {total} cases failed: {kind} on {at}",
                        total.saturating_sub(*passed)
                    )),
                    Some(_) => false,
                };
            }
        }
        problems.into_iter().collect()
    }
}

impl Cell {
    fn read(text: &str) -> Option<Self> {
        let (passed, total) = text.split_once('/')?;
        Some(Self {
            passed: passed.parse().ok()?,
            total: total.parse().ok()?,
        })
    }
}

fn cells(row: &str) -> Vec<&str> {
    let row = row.trim().trim_start_matches('|').trim_end_matches('|');
    row.split('|').map(str::trim).collect()
}

/// A setting that the table must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    backend: &'static str,
    topology: &'static str,
    provider: &'static str,
    /// How the server's name and version must start.
    server: &'static str,
    client: &'static str,
}

impl Wanted {
    fn is(&self, row: &Place) -> bool {
        let [backend, topology, provider, server, client] = row;
        backend == self.backend
            && topology == self.topology
            && provider == self.provider
            && server.to_lowercase().starts_with(self.server)
            && client == self.client
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            backend,
            topology,
            provider,
            server,
            client,
        } = self;
        write!(f, "{backend}, {topology}, {provider}, {server}, {client}")
    }
}

const BOTH: &str = "redis-rs + fred";
const SHARDS: &str = "cluster without replicas";
const QUORUM: &str = "quorum";
const ONE_NODE: &str = "one node of a quorum";
const QUORUM_KINDS: [Flavour; 2] = [Flavour::Mutex, Flavour::SingleKey];

/// The settings in which the tests run the suite; with `pods`, also those in containers.
pub(crate) fn wanted(pods: bool) -> Vec<Wanted> {
    let redis = |provider, server, topology, client| Wanted {
        backend: "redis",
        topology,
        provider,
        server,
        client,
    };
    let mut wanted = vec![Wanted {
        backend: "memory",
        topology: "-",
        provider: "-",
        server: "-",
        client: "-",
    }];
    let topologies = ["standalone", "sentinel", "cluster", "tls"];
    for topology in topologies {
        for client in ["redis-rs", "fred", BOTH] {
            wanted.push(redis("plain", "", topology, client));
        }
    }
    wanted.push(redis("plain", "", QUORUM, BOTH));
    wanted.push(redis("plain", "", ONE_NODE, BOTH));
    wanted.push(redis("plain", "", SHARDS, BOTH));
    if pods {
        for topology in topologies {
            for client in ["redis-rs", "fred"] {
                wanted.push(redis("pod", "redis 8.0", topology, client));
            }
        }
        wanted.push(redis("pod", "redis 8.0", ONE_NODE, BOTH));
        for server in ["redis 7.0", "valkey 8.1", "valkey 9.1"] {
            for topology in ["standalone", SHARDS] {
                wanted.push(redis("pod", server, topology, BOTH));
            }
        }
    }
    wanted
}
