//! Which primary serves which hash slot: `CLUSTER SLOTS` answers, and the redirects `MOVED` and
//! `ASK`.
//!
//! The adapters ask and connect. This module parses the answers for both.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::client::Reply;
use crate::client::options::HostPort;
use crate::layout::slot::SLOTS;

pub use crate::client::cluster_map::ClusterMap;
pub use crate::client::slot_table::SlotTable;

/// Consecutive hash slots and the primary that serves them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRange {
    /// The first slot.
    pub first: u16,
    /// The last slot, not before the first and below [`SLOTS`].
    pub last: u16,
    /// The primary that serves them.
    pub primary: HostPort,
}

/// Parses the answer of `asked` to `CLUSTER SLOTS`. It leaves out rows that it cannot read, and
/// primaries whose address the server does not know (`?`). `None` if no range is left.
///
/// ```
/// use locktopus_protocol::{HostPort, Reply, slot_map::slot_ranges};
///
/// let asked = HostPort { host: "10.0.0.1".to_owned(), port: 7000 };
/// // A server that does not know its own name leaves it out.
/// let node = Reply::Array(vec![Reply::Nil, Reply::Int(7001)]);
/// let row = Reply::Array(vec![Reply::Int(0), Reply::Int(16_383), node]);
/// let ranges = slot_ranges(&Reply::Array(vec![row]), &asked).unwrap();
/// assert_eq!(ranges[0].primary.to_string(), "10.0.0.1:7001");
/// ```
#[must_use]
pub fn slot_ranges(answer: &Reply, asked: &HostPort) -> Option<Vec<SlotRange>> {
    let ranges: Vec<_> = rows(answer)
        .filter_map(|row| {
            Some(SlotRange {
                first: row.first,
                last: row.last,
                primary: address(row.primary, asked)?,
            })
        })
        .collect();
    (!ranges.is_empty()).then_some(ranges)
}

/// The lowest slot of each primary, ascending. It tells primaries apart by node id, so those
/// without a known address count too.
pub(crate) fn first_slots(answer: &Reply) -> Vec<u16> {
    let mut lowest: BTreeMap<&Bytes, u16> = BTreeMap::new();
    for row in rows(answer) {
        if let [_host, _port, Reply::Bytes(id), ..] = row.primary {
            let first = lowest.entry(id).or_insert(row.first);
            *first = (*first).min(row.first);
        }
    }
    let mut slots: Vec<_> = lowest.into_values().collect();
    slots.sort_unstable();
    slots
}

/// The target of a `MOVED` or `ASK` refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The slot of the refused command.
    pub slot: u16,
    /// The node that serves the slot, or is about to.
    pub node: HostPort,
}

impl Redirect {
    /// Parses `<slot> <host>:<port>`, the text after the error code, in a refusal by `refused`. If
    /// the host is missing, the host of `refused` stands in. `None` for any other text.
    ///
    /// ```
    /// use locktopus_protocol::{HostPort, slot_map::Redirect};
    ///
    /// let refused = HostPort { host: "10.0.0.1".to_owned(), port: 7000 };
    /// let redirect = Redirect::parse("3999 :6381", &refused).unwrap();
    /// assert_eq!((redirect.slot, redirect.node.to_string().as_str()), (3999, "10.0.0.1:6381"));
    /// ```
    #[must_use]
    pub fn parse(message: &str, refused: &HostPort) -> Option<Self> {
        let mut words = message.split_ascii_whitespace();
        let slot = words.next()?.parse().ok().filter(|slot| *slot < SLOTS)?;
        // From the right, because an IPv6 address contains colons.
        let (host, port) = words.next()?.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = if host.is_empty() { &refused.host } else { host };
        let (host, port) = (host.to_owned(), port.parse().ok()?);
        Some(Self {
            slot,
            node: HostPort { host, port },
        })
    }
}

/// One row of the answer: a range, and the data of its primary (host, port, node id).
struct Row<'a> {
    first: u16,
    last: u16,
    primary: &'a [Reply],
}

fn rows(answer: &Reply) -> impl Iterator<Item = Row<'_>> {
    answer.items().unwrap_or_default().iter().filter_map(row)
}

fn row(row: &Reply) -> Option<Row<'_>> {
    let [
        Reply::Int(first),
        Reply::Int(last),
        Reply::Array(primary),
        ..,
    ] = row.items()?
    else {
        return None;
    };
    let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
    (first <= last && last < SLOTS).then_some(Row {
        first,
        last,
        primary,
    })
}

fn address(primary: &[Reply], asked: &HostPort) -> Option<HostPort> {
    let [host, Reply::Int(port), ..] = primary else {
        return None;
    };
    let host = match host {
        // The host that the client used for the server.
        Reply::Nil => asked.host.clone(),
        Reply::Bytes(name) if name.is_empty() => asked.host.clone(),
        Reply::Bytes(name) if name.as_ref() == b"?" => return None,
        Reply::Bytes(name) => std::str::from_utf8(name).ok()?.to_owned(),
        Reply::Int(_) | Reply::Array(_) => return None,
    };
    let port = u16::try_from(*port).ok()?;
    Some(HostPort { host, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> HostPort {
        HostPort {
            host: "10.0.0.9".to_owned(),
            port: 7000,
        }
    }

    fn bytes(text: &'static str) -> Reply {
        Reply::Bytes(Bytes::from_static(text.as_bytes()))
    }

    fn range(first: i64, last: i64, host: Reply, port: i64) -> Reply {
        let node = Reply::Array(vec![host, Reply::Int(port), bytes("id")]);
        Reply::Array(vec![Reply::Int(first), Reply::Int(last), node])
    }

    fn read(rows: Vec<Reply>) -> Vec<(u16, u16, String)> {
        let ranges = slot_ranges(&Reply::Array(rows), &asked()).unwrap_or_default();
        let ranges = ranges.into_iter();
        ranges
            .map(|range| (range.first, range.last, range.primary.to_string()))
            .collect()
    }

    #[test]
    fn ranges_name_their_primary() {
        let ranges = read(vec![
            range(0, 100, bytes("a"), 1),
            range(101, 101, bytes("::1"), 2),
            range(200, 16_383, Reply::Nil, 3),
            range(110, 120, bytes(""), 4),
        ]);
        let expected = [
            (0, 100, "a:1"),
            (101, 101, "[::1]:2"),
            (200, 16_383, "10.0.0.9:3"),
            (110, 120, "10.0.0.9:4"),
        ];
        assert_eq!(
            ranges,
            expected.map(|(first, last, to)| (first, last, to.to_owned()))
        );
    }

    #[test]
    fn rows_that_cannot_be_read_are_left_out() {
        let good = || range(7, 8, bytes("a"), 1);
        let short = Reply::Array(vec![Reply::Int(0), Reply::Int(1)]);
        let no_port = Reply::Array(vec![bytes("a")]);
        let no_port = Reply::Array(vec![Reply::Int(0), Reply::Int(1), no_port]);
        for bad in [
            Reply::Nil,
            Reply::Int(1),
            Reply::Array(Vec::new()),
            short,
            no_port,
            range(0, 16_384, Reply::Nil, 1),
            range(-1, 3, Reply::Nil, 1),
            range(9, 3, Reply::Nil, 1),
            range(0, 1, bytes("?"), 1),
            range(0, 1, Reply::Int(1), 1),
            range(0, 1, Reply::Bytes(Bytes::from_static(b"\xff")), 1),
            range(0, 1, bytes("a"), 65_536),
            range(0, 1, bytes("a"), -1),
        ] {
            let said = format!("{bad:?}");
            assert_eq!(read(vec![bad.clone()]), [], "{said}");
            assert_eq!(
                read(vec![bad, good()]),
                [(7, 8, "a:1".to_owned())],
                "{said}"
            );
        }
    }

    #[test]
    fn an_answer_without_ranges_is_none() {
        for answer in [
            Reply::Nil,
            Reply::Int(0),
            bytes("x"),
            Reply::Array(Vec::new()),
        ] {
            assert_eq!(slot_ranges(&answer, &asked()), None, "{answer:?}");
        }
    }

    #[test]
    fn primaries_are_counted_once_at_their_lowest_slot() {
        let row = |first, last, id: &'static str| {
            let node = Reply::Array(vec![bytes("?"), Reply::Int(1), bytes(id)]);
            Reply::Array(vec![Reply::Int(first), Reply::Int(last), node])
        };
        let answer = Reply::Array(vec![
            row(9, 10, "z"),
            row(4, 5, "b"),
            row(2, 3, "z"),
            Reply::Nil,
        ]);
        assert_eq!(first_slots(&answer), [2, 4]);
        assert!(first_slots(&Reply::Nil).is_empty());
    }

    #[test]
    fn redirects_name_slot_and_node() {
        for (message, to) in [
            ("3999 127.0.0.1:6381", "127.0.0.1:6381"),
            ("3999 :6381", "10.0.0.9:6381"),
            ("3999 ::1:6381", "[::1]:6381"),
            ("3999 [::1]:6381", "[::1]:6381"),
            (" 3999 a:6381 and more", "a:6381"),
        ] {
            let redirect = Redirect::parse(message, &asked()).unwrap();
            assert_eq!(redirect.slot, 3999, "{message}");
            assert_eq!(redirect.node.to_string(), to, "{message}");
        }
        for message in [
            "",
            "3999",
            "nonsense",
            "x 127.0.0.1:6381",
            "16384 a:1",
            "3999 a",
            "3999 a:",
            "3999 a:65536",
        ] {
            assert_eq!(Redirect::parse(message, &asked()), None, "{message:?}");
        }
    }
}
