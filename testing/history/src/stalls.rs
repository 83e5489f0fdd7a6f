//! When the machine did not run workers, so that locks are not blamed for what they did late.

use std::collections::HashMap;

/// A period: start and end, in nanoseconds.
type Stretch = (u64, u64);

/// Stalls of all workers.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    of: HashMap<u32, Vec<Stretch>>,
    everybody: Vec<Stretch>,
}

impl Stalls {
    /// Adds a stall; `worker` is `None` if it held up all workers.
    pub(super) fn add(&mut self, worker: Option<u32>, from: u64, until: u64) {
        let list = match worker {
            Some(worker) => self.of.entry(worker).or_default(),
            None => &mut self.everybody,
        };
        list.push((from.min(until), until));
    }

    /// Must be called once, after the last stall was added.
    pub(super) fn finish(&mut self) {
        merge(&mut self.everybody);
        for own in self.of.values_mut() {
            own.extend(&self.everybody);
            merge(own);
        }
    }

    /// How much of a period this worker was not running, or waited for a process that was not.
    pub(super) fn within(&self, worker: u32, from: u64, until: u64) -> u64 {
        let reached = self.reaching(worker, from, until);
        reached
            .map(|&(start, end)| end.min(until) - start.max(from))
            .sum()
    }

    /// The rest of that period.
    pub(super) fn without(&self, worker: u32, from: u64, until: u64) -> Vec<Stretch> {
        let mut left = Vec::new();
        let mut begin = from;
        for &(start, end) in self.reaching(worker, from, until) {
            if begin < start {
                left.push((begin, start));
            }
            begin = end;
        }
        if begin < until {
            left.push((begin, until));
        }
        left
    }

    fn reaching(&self, worker: u32, from: u64, until: u64) -> impl Iterator<Item = &Stretch> {
        let list = self.of.get(&worker).unwrap_or(&self.everybody);
        let first = list.partition_point(|&(_, end)| end <= from);
        list[first..]
            .iter()
            .take_while(move |&&(start, _)| start < until)
    }
}

/// Sorts periods, and joins those that touch.
fn merge(list: &mut Vec<Stretch>) {
    list.sort_unstable();
    list.dedup_by(|next, kept| {
        let touches = next.0 <= kept.1;
        if touches {
            kept.1 = kept.1.max(next.1);
        }
        touches
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_once() {
        let mut stalls = Stalls::default();
        for (worker, from, until) in [
            (Some(1), 10, 20),
            (Some(1), 15, 30),
            (None, 25, 40),
            (Some(2), 100, 110),
            (None, 104, 106),
        ] {
            stalls.add(worker, from, until);
        }
        stalls.finish();
        assert_eq!(stalls.within(1, 0, 200), 30 + 2);
        assert_eq!(stalls.within(1, 12, 35), 23);
        assert_eq!(stalls.within(1, 40, 104), 0);
        assert_eq!(stalls.within(2, 0, 200), 15 + 10);
        assert_eq!(stalls.within(3, 30, 105), 10 + 1);
        // The rest of the same time.
        assert_eq!(stalls.without(1, 0, 60), [(0, 10), (40, 60)]);
        assert_eq!(stalls.without(1, 12, 35), []);
        assert_eq!(stalls.without(2, 35, 112), [(40, 100), (110, 112)]);
        assert_eq!(stalls.without(3, 41, 104), [(41, 104)]);
    }
}
