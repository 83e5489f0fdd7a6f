//! The confidence of a rate.

use serde::Serialize;

/// The 97.5 % quantile of the normal distribution: 95 % lie between its negative and it.
const Z: f64 = 1.959_963_984_540_054;

/// Hits per 1,000 trials, with the 95 % confidence interval of Wilson (1927).
///
/// The interval is also right for zero hits, where the usual one would claim certainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rate {
    /// Trials with at least one hit.
    pub hits: u64,
    /// Trials.
    pub trials: u64,
    /// Hits per 1,000 trials; 0 without trials.
    pub per_1000: f64,
    /// Lower end of the interval.
    pub low_per_1000: f64,
    /// Upper end of the interval; 1,000 without trials.
    pub high_per_1000: f64,
}

impl Rate {
    /// The rate of `hits` in `trials`; `None` if there are more hits than trials.
    ///
    /// ```
    /// use locktopus_history::Rate;
    ///
    /// // Double grants in 1,000 failovers, each counted once.
    /// let none = Rate::new(0, 1_000).unwrap();
    /// assert_eq!((none.per_1000, none.low_per_1000), (0.0, 0.0));
    /// assert!((none.high_per_1000 - 3.83).abs() < 0.01);
    /// assert!(Rate::new(2, 1).is_none());
    /// ```
    #[must_use]
    pub fn new(hits: u64, trials: u64) -> Option<Self> {
        if hits > trials {
            return None;
        }
        let (low, high) = interval(hits, trials);
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 trials")]
        let per_1000 = if trials == 0 {
            0.0
        } else {
            1_000.0 * hits as f64 / trials as f64
        };
        Some(Self {
            hits,
            trials,
            per_1000,
            low_per_1000: 1_000.0 * low,
            high_per_1000: 1_000.0 * high,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 trials")]
fn interval(hits: u64, trials: u64) -> (f64, f64) {
    if trials == 0 {
        return (0.0, 1.0);
    }
    let (n, p) = (trials as f64, hits as f64 / trials as f64);
    let square = Z * Z;
    let centre = p + square / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + square / (4.0 * n * n)).sqrt();
    let scale = 1.0 + square / n;
    // At the edges the ends are exactly 0 and 1, which floats would miss by a little.
    let low = if hits == 0 {
        0.0
    } else {
        (centre - half) / scale
    };
    let high = if hits == trials {
        1.0
    } else {
        (centre + half) / scale
    };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(rate: Rate, low: f64, high: f64) {
        assert!((rate.low_per_1000 - low).abs() < 0.05, "{rate:?}");
        assert!((rate.high_per_1000 - high).abs() < 0.05, "{rate:?}");
    }

    #[test]
    fn agrees_with_published_intervals() {
        // Newcombe (1998), table I, method 3: 81/263, 15/148, 0/20, 1/29.
        close(Rate::new(81, 263).unwrap(), 255.3, 366.2);
        close(Rate::new(15, 148).unwrap(), 62.4, 160.5);
        close(Rate::new(0, 20).unwrap(), 0.0, 161.1);
        close(Rate::new(1, 29).unwrap(), 6.1, 171.8);
    }

    #[test]
    fn the_edges_are_exact() {
        let all = Rate::new(7, 7).unwrap();
        assert_eq!((all.per_1000, all.high_per_1000), (1_000.0, 1_000.0));
        assert!(all.low_per_1000 < 1_000.0);
        let nothing = Rate::new(0, 0).unwrap();
        assert_eq!((nothing.per_1000, nothing.low_per_1000), (0.0, 0.0));
        assert_eq!(nothing.high_per_1000, 1_000.0);
        assert!(Rate::new(1, 0).is_none());
    }
}
