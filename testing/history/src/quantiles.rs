//! Distribution of a set of values.

use serde::Serialize;

/// Quantiles by the nearest-rank rule: each is a value that occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Quantiles {
    /// The number of values.
    pub count: usize,
    /// Half of them are not greater, in nanoseconds.
    pub p50_ns: u64,
    /// 99 of 100 are not greater, in nanoseconds.
    pub p99_ns: u64,
    /// The greatest, in nanoseconds.
    pub max_ns: u64,
}

impl Quantiles {
    /// The quantiles of any number of values; all zero for none.
    ///
    /// ```
    /// use locktopus_history::Quantiles;
    ///
    /// let of = Quantiles::of((1..=200).collect());
    /// assert_eq!((of.count, of.p50_ns, of.p99_ns, of.max_ns), (200, 100, 198, 200));
    /// ```
    #[must_use]
    pub fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let rank = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied().unwrap_or(0)
        };
        Self {
            count: values.len(),
            p50_ns: rank(50),
            p99_ns: rank(99),
            max_ns: values.last().copied().unwrap_or(0),
        }
    }
}
