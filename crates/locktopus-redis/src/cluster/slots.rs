//! Which node serves which hash slot, with each primary known once.

use locktopus_protocol::HostPort;
use locktopus_protocol::slot::SLOTS;
use locktopus_protocol::slot_map::SlotRange;

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

    pub(crate) fn new(ranges: Vec<SlotRange>) -> Self {
        let mut map = Self::empty();
        for range in ranges {
            let number = map.number(range.primary);
            map.owners[usize::from(range.first)..=usize::from(range.last)].fill(number);
        }
        map
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

    fn number(&mut self, primary: HostPort) -> u16 {
        let known = self.primaries.iter().position(|known| *known == primary);
        let number = known.unwrap_or_else(|| {
            self.primaries.push(primary);
            self.primaries.len() - 1
        });
        u16::try_from(number).unwrap_or(NOBODY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> HostPort {
        HostPort {
            host: host.to_owned(),
            port,
        }
    }

    #[test]
    fn slots_find_their_primary() {
        let range = |first, last, host, port| SlotRange {
            first,
            last,
            primary: at(host, port),
        };
        let map = SlotMap::new(vec![
            range(0, 100, "a", 1),
            range(200, 16_383, "b", 2),
            range(150, 160, "a", 1),
        ]);
        assert_eq!(map.primaries(), [at("a", 1), at("b", 2)]);
        assert_eq!(map.owner(100), Some(0));
        assert_eq!(map.owner(155), Some(0));
        assert_eq!(map.owner(101), None);
        assert_eq!(map.owner(16_383), Some(1));
    }
}
