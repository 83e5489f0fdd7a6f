//! Data that each holder reads, extends, and writes back whole.
//!
//! A version is its predecessor plus one element, so writing back a whole set costs one number. An
//! element that is not among the predecessors of the final version was overwritten.

use locktopus_history::{LockingSet, SetLoss};

/// Versions of one set. Version 0 is empty.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// The parent of each version, from version 1 on.
    parents: Vec<u64>,
    head: u64,
    refused: u64,
}

impl Chain {
    pub(super) const fn head(&self) -> u64 {
        self.head
    }

    /// Writes back version `read` with a new element.
    pub(super) fn append(&mut self, read: u64) {
        self.parents.push(read);
        self.head = self.parents.len() as u64;
    }

    /// Reports a new element as written without writing it, as a broken store does.
    pub(super) fn pretend_to_append(&mut self) {
        self.parents.push(self.head);
    }

    pub(super) const fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Elements that were written and are gone.
    pub(super) fn loss(&self) -> SetLoss {
        let mut set = LockingSet::new();
        let mut present = Vec::new();
        (1..=self.parents.len() as u64).for_each(|element| set.acknowledged(element));
        let mut version = self.head;
        // Parents are older than their children, so this ends.
        while let Some(parent) = version
            .checked_sub(1)
            .and_then(|at| self.parents.get(usize::try_from(at).ok()?))
        {
            present.push(version);
            version = *parent;
        }
        let mut loss = set.judge(present);
        loss.refused = self.refused;
        loss
    }

    /// Whether the version exists and can be written back.
    pub(super) fn knows(&self, version: u64) -> bool {
        version <= self.parents.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_over_is_lost() {
        let mut chain = Chain::default();
        for _ in 0..3 {
            let read = chain.head();
            chain.append(read);
        }
        assert_eq!((chain.loss().lost, chain.loss().acknowledged), (0, 3));
        // Both read the same version; the second writer drops the first one's element.
        let read = chain.head();
        chain.append(read);
        chain.append(read);
        chain.refuse();
        let loss = chain.loss();
        assert_eq!(
            (loss.lost, loss.lost_elements, loss.refused),
            (1, vec![4], 1)
        );
        assert!(chain.knows(0) && chain.knows(5) && !chain.knows(6));
    }
}
