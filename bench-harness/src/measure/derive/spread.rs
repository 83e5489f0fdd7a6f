//! The median of some rounds and how far apart they lie.

use std::collections::BTreeMap;

/// Median, smallest and largest of the rounds of a cell. The range is the noise: a smaller
/// difference means nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median over the rounds.
    pub median: f64,
    /// Smallest round.
    pub min: f64,
    /// Largest round.
    pub max: f64,
    /// How many rounds there were.
    pub rounds: usize,
}

impl Spread {
    /// The spread of `values`; `None` when there are none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let mid = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[mid]
        } else {
            f64::midpoint(values[mid - 1], values[mid])
        };
        Some(Self {
            median,
            min,
            max,
            rounds: values.len(),
        })
    }

    /// Half the range in percent of the median; `None` for a single round, which has no range.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        let half = (self.max - self.min) / 2.0;
        (self.rounds > 1 && self.median > 0.0).then(|| 100.0 * half / self.median)
    }

    /// Whether the extremes bound where rounds lie. Two rounds are both extremes, and say nothing
    /// about the next one.
    #[must_use]
    pub const fn is_interval(&self) -> bool {
        self.rounds > 2
    }
}

/// The figures of rounds divided by those of the same rounds elsewhere.
#[must_use]
pub fn ratios(figure: &BTreeMap<u32, f64>, reference: &BTreeMap<u32, f64>) -> BTreeMap<u32, f64> {
    let pairs = figure.iter().filter_map(|(round, value)| {
        let reference = *reference.get(round)?;
        (reference != 0.0).then(|| (*round, value / reference))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]).unwrap().median, 2.0);
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn one_round_has_no_noise_figure() {
        assert_eq!(Spread::of([5.0]).unwrap().percent(), None);
        assert_eq!(Spread::of([9.0, 10.0, 11.0]).unwrap().percent(), Some(10.0));
    }
}
