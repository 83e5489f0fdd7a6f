//! Greatest value among the first positions, for values that only grow; each operation is O(log n).

/// A Fenwick tree of maxima.
#[derive(Clone, Debug)]
pub(super) struct MaxTree<T> {
    nodes: Vec<Option<T>>,
}

impl<T: Copy + Ord> MaxTree<T> {
    pub(super) fn new(positions: usize) -> Self {
        Self {
            nodes: vec![None; positions + 1],
        }
    }

    /// Raises the value at a position, counted from 0, to at least `value`.
    pub(super) fn raise(&mut self, position: usize, value: T) {
        let mut at = position + 1;
        while let Some(node) = self.nodes.get_mut(at) {
            *node = (*node).max(Some(value));
            at += at & at.wrapping_neg();
        }
    }

    /// The greatest of the first `count` positions.
    pub(super) fn max_of_first(&self, count: usize) -> Option<T> {
        let mut at = count.min(self.nodes.len().saturating_sub(1));
        let mut best = None;
        while at > 0 {
            best = best.max(self.nodes[at]);
            at &= at - 1;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_looking_at_all() {
        let mut tree = MaxTree::new(37);
        let mut plain = [None; 37];
        let mut dice = 7_u64;
        for _ in 0..500 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (position, value) = ((dice >> 33) as usize % 37, dice >> 50);
            tree.raise(position, value);
            plain[position] = plain[position].max(Some(value));
            for count in 0..=37 {
                let expected = plain[..count].iter().copied().max().flatten();
                assert_eq!(tree.max_of_first(count), expected);
            }
        }
        assert_eq!(MaxTree::<u64>::new(0).max_of_first(3), None);
    }
}
