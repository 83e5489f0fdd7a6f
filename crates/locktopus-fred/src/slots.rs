//! Who serves which hash slot, as `CLUSTER SLOTS` and `MOVED` tell it.

use std::collections::HashMap;
use std::sync::Arc;

use locktopus_protocol::slot::SLOTS;
use locktopus_protocol::{HostPort, Reply};

use crate::node::Node;

const NOBODY: u16 = u16::MAX;

/// An immutable slot table. Changes make a new one, so readers never wait.
#[derive(Clone)]
pub(crate) struct SlotMap {
    owners: Box<[u16]>,
    nodes: Vec<Arc<Node>>,
}

impl SlotMap {
    /// A table in which nobody serves anything.
    pub(crate) fn empty() -> Self {
        Self {
            owners: vec![NOBODY; usize::from(SLOTS)].into(),
            nodes: Vec::new(),
        }
    }

    /// The table that `ranges` describe. Nodes that `self` knows already keep their connections.
    pub(crate) fn replaced_by(
        &self,
        ranges: &[Range],
        mut make: impl FnMut(&HostPort) -> Arc<Node>,
    ) -> Self {
        let mut next = Self::empty();
        let mut numbers = HashMap::new();
        for range in ranges {
            let number = *numbers.entry(&range.owner).or_insert_with(|| {
                let known = self
                    .nodes
                    .iter()
                    .find(|node| *node.address() == range.owner);
                next.nodes
                    .push(known.map_or_else(|| make(&range.owner), Arc::clone));
                next.nodes.len() - 1
            });
            let span = usize::from(range.first)..=usize::from(range.last);
            next.owners[span].fill(u16::try_from(number).unwrap_or(NOBODY));
        }
        next
    }

    /// This table with one slot moved to `owner`.
    pub(crate) fn with_moved(
        &self,
        slot: u16,
        owner: &HostPort,
        make: impl FnOnce(&HostPort) -> Arc<Node>,
    ) -> Self {
        let mut next = self.clone();
        let number = next.nodes.iter().position(|node| node.address() == owner);
        let number = number.unwrap_or_else(|| {
            next.nodes.push(make(owner));
            next.nodes.len() - 1
        });
        next.owners[usize::from(slot % SLOTS)] = u16::try_from(number).unwrap_or(NOBODY);
        next
    }

    /// Whether both say the same of every slot.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let addresses = |map: &Self| -> Vec<HostPort> {
            let nodes = map.nodes.iter();
            nodes.map(|node| node.address().clone()).collect()
        };
        self.owners == other.owners && addresses(self) == addresses(other)
    }

    /// The node that serves `slot`.
    pub(crate) fn owner(&self, slot: u16) -> Option<&Arc<Node>> {
        self.nodes
            .get(usize::from(*self.owners.get(usize::from(slot))?))
    }

    /// All primaries that serve at least one slot, as far as known.
    pub(crate) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }
}

/// A run of slots and its primary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) owner: HostPort,
}

/// Reads the answer of `CLUSTER SLOTS` that came from `asked`.
pub(crate) fn parse_slots(reply: &Reply, asked: &HostPort) -> Option<Vec<Range>> {
    let Reply::Array(rows) = reply else {
        return None;
    };
    let ranges: Vec<_> = rows
        .iter()
        .filter_map(|row| parse_row(row, asked))
        .collect();
    (!ranges.is_empty()).then_some(ranges)
}

fn parse_row(row: &Reply, asked: &HostPort) -> Option<Range> {
    let Reply::Array(row) = row else { return None };
    let [
        Reply::Int(first),
        Reply::Int(last),
        Reply::Array(primary),
        ..,
    ] = row.as_slice()
    else {
        return None;
    };
    let [host, Reply::Int(port), ..] = primary.as_slice() else {
        return None;
    };
    let host = match host {
        Reply::Bytes(host) if host.as_ref() == b"?" => return None,
        Reply::Bytes(host) if !host.is_empty() => String::from_utf8(host.to_vec()).ok()?,
        // "The same host as the one you asked."
        _ => asked.host.clone(),
    };
    let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
    let owner = HostPort {
        host,
        port: u16::try_from(*port).ok()?,
    };
    (first <= last && last < SLOTS).then_some(Range { first, last, owner })
}

/// Reads `<slot> <host>:<port>`, the text behind MOVED and ASK.
pub(crate) fn parse_redirect(message: &str, asked: &HostPort) -> Option<(u16, HostPort)> {
    let (slot, address) = message.trim().split_once(' ')?;
    // From the right, because an IPv6 address has colons of its own.
    let (host, port) = address.rsplit_once(':')?;
    let host = if host.is_empty() {
        asked.host.as_str()
    } else {
        host
    };
    Some((
        slot.parse().ok()?,
        HostPort {
            host: host.to_owned(),
            port: port.parse().ok()?,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> HostPort {
        HostPort {
            host: "10.0.0.1".to_owned(),
            port: 7000,
        }
    }

    fn row(first: i64, last: i64, host: Reply, port: i64) -> Reply {
        let node = Reply::Array(vec![host, Reply::Int(port), Reply::Bytes("id".into())]);
        Reply::Array(vec![Reply::Int(first), Reply::Int(last), node])
    }

    #[test]
    fn ranges_without_a_host_belong_to_the_host_that_was_asked() {
        let reply = Reply::Array(vec![
            row(0, 10, Reply::Nil, 7001),
            row(11, 11, Reply::Bytes("?".into()), 7002),
            row(12, 16_383, Reply::Bytes("::1".into()), 7003),
            row(12, 16_384, Reply::Nil, 7004),
        ]);
        let ranges = parse_slots(&reply, &here()).unwrap();
        let owners: Vec<_> = ranges.iter().map(|range| range.owner.to_string()).collect();
        assert_eq!(owners, ["10.0.0.1:7001", "[::1]:7003"]);
    }

    #[test]
    fn an_answer_without_slots_is_no_answer() {
        assert_eq!(parse_slots(&Reply::Array(Vec::new()), &here()), None);
        assert_eq!(parse_slots(&Reply::Nil, &here()), None);
    }

    #[test]
    fn redirects_name_slot_and_address() {
        let cases = [
            ("3999 127.0.0.1:6381", "127.0.0.1:6381"),
            ("3999 :6381", "10.0.0.1:6381"),
            ("3999 ::1:6381", "[::1]:6381"),
        ];
        for (text, expected) in cases {
            let (slot, owner) = parse_redirect(text, &here()).unwrap();
            assert_eq!(
                (slot, owner.to_string().as_str()),
                (3999, expected),
                "{text}"
            );
        }
        assert_eq!(parse_redirect("3999", &here()), None);
    }
}
