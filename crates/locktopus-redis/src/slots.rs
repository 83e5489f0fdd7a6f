//! Which node serves which hash slot, as `CLUSTER SLOTS` tells it.

use locktopus_protocol::slot::SLOTS;
use locktopus_protocol::{HostPort, Reply};

/// No node is known for the slot.
const NOBODY: u16 = u16::MAX;

/// The primaries and their slots.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlotMap {
    primaries: Vec<HostPort>,
    owners: Vec<u16>,
}

impl SlotMap {
    pub(crate) fn empty() -> Self {
        Self {
            primaries: Vec::new(),
            owners: vec![NOBODY; usize::from(SLOTS)],
        }
    }

    /// Reads the answer of `asked` to `CLUSTER SLOTS`. `None` if it is not such an answer or names
    /// no node at all.
    pub(crate) fn parse(answer: &Reply, asked: &HostPort) -> Option<Self> {
        let Reply::Array(ranges) = answer else {
            return None;
        };
        let mut map = Self::empty();
        for range in ranges {
            let Reply::Array(range) = range else {
                return None;
            };
            let [
                Reply::Int(first),
                Reply::Int(last),
                Reply::Array(primary),
                ..,
            ] = range.as_slice()
            else {
                return None;
            };
            let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
            let Some(primary) = node(primary, asked) else {
                continue;
            };
            let number = map.number(primary)?;
            map.owners.get_mut(first..=last)?.fill(number);
        }
        (!map.primaries.is_empty()).then_some(map)
    }

    /// The primaries, each once.
    pub(crate) fn primaries(&self) -> &[HostPort] {
        &self.primaries
    }

    /// The position in [`Self::primaries`] of the slot's owner.
    pub(crate) fn owner(&self, slot: u16) -> Option<usize> {
        self.owners
            .get(usize::from(slot))
            .filter(|number| **number != NOBODY)
            .map(|n| usize::from(*n))
    }

    fn number(&mut self, primary: HostPort) -> Option<u16> {
        let known = self.primaries.iter().position(|known| *known == primary);
        let number = known.unwrap_or_else(|| {
            self.primaries.push(primary);
            self.primaries.len() - 1
        });
        u16::try_from(number).ok()
    }
}

/// The node of an answer. Servers that do not know their own name leave it out: then it is the one
/// that was asked. `?` stands for a node whose name is unknown to it.
fn node(parts: &[Reply], asked: &HostPort) -> Option<HostPort> {
    let [host, Reply::Int(port), ..] = parts else {
        return None;
    };
    let host = match host {
        Reply::Nil => asked.host.clone(),
        Reply::Bytes(name) if name.is_empty() => asked.host.clone(),
        Reply::Bytes(name) if &name[..] == b"?" => return None,
        Reply::Bytes(name) => std::str::from_utf8(name).ok()?.to_owned(),
        Reply::Int(_) | Reply::Array(_) => return None,
    };
    Some(HostPort {
        host,
        port: u16::try_from(*port).ok()?,
    })
}

/// The node that a `MOVED` or `ASK` refusal of `refused` points to: `<slot> <host>:<port>`.
pub(crate) fn redirect(message: &str, refused: &HostPort) -> Option<HostPort> {
    let (host, port) = message.split(' ').nth(1)?.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = if host.is_empty() {
        refused.host.as_str()
    } else {
        host
    };
    Some(HostPort {
        host: host.to_owned(),
        port: port.parse().ok()?,
    })
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

    fn at(host: &str, port: u16) -> HostPort {
        HostPort {
            host: host.to_owned(),
            port,
        }
    }

    fn range(first: i64, last: i64, host: Reply, port: i64) -> Reply {
        let node = Reply::Array(vec![host, Reply::Int(port), Reply::Bytes("id".into())]);
        Reply::Array(vec![Reply::Int(first), Reply::Int(last), node])
    }

    #[test]
    fn slots_find_their_primary() {
        let answer = Reply::Array(vec![
            range(0, 100, Reply::Bytes("a".into()), 1),
            range(200, 16383, Reply::Nil, 2),
            range(150, 160, Reply::Bytes("a".into()), 1),
            range(170, 180, Reply::Bytes("?".into()), 3),
        ]);
        let map = SlotMap::parse(&answer, &asked()).unwrap();
        assert_eq!(map.primaries(), [at("a", 1), at("10.0.0.9", 2)]);
        assert_eq!(map.owner(100), Some(0));
        assert_eq!(map.owner(155), Some(0));
        assert_eq!(map.owner(101), None);
        assert_eq!(map.owner(175), None);
        assert_eq!(map.owner(16383), Some(1));
    }

    #[test]
    fn nonsense_is_no_map() {
        for answer in [
            Reply::Nil,
            Reply::Array(vec![]),
            Reply::Array(vec![Reply::Int(1)]),
            Reply::Array(vec![range(0, 16384, Reply::Nil, 1)]),
            Reply::Array(vec![range(9, 3, Reply::Nil, 1)]),
        ] {
            assert!(SlotMap::parse(&answer, &asked()).is_none(), "{answer:?}");
        }
    }

    #[test]
    fn redirects_are_read() {
        assert_eq!(
            redirect("3999 127.0.0.1:6381", &asked()),
            Some(at("127.0.0.1", 6381))
        );
        assert_eq!(redirect("3999 ::1:6381", &asked()), Some(at("::1", 6381)));
        assert_eq!(redirect("3999 :6381", &asked()), Some(at("10.0.0.9", 6381)));
        assert_eq!(redirect("nonsense", &asked()), None);
    }
}
