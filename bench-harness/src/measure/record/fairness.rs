//! How evenly grants were spread over the workers.

/// Jain's index of `counts`: 1 when all are equal, `1/n` when one worker got everything.
///
/// `None` when there were no grants, so nothing was shared.
#[must_use]
pub fn jain(counts: &[u64]) -> Option<f64> {
    let sum: f64 = counts.iter().map(|&count| count as f64).sum();
    let squares: f64 = counts.iter().map(|&count| (count as f64).powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (counts.len() as f64 * squares))
}

/// The largest count over the smallest; infinite when a worker starved.
///
/// `None` when there were no grants.
#[must_use]
pub fn max_over_min(counts: &[u64]) -> Option<f64> {
    let (min, max) = (*counts.iter().min()?, *counts.iter().max()?);
    (max > 0).then(|| {
        if min == 0 {
            f64::INFINITY
        } else {
            max as f64 / min as f64
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_are_perfectly_fair() {
        assert_eq!(jain(&[5, 5, 5, 5]), Some(1.0));
        assert_eq!(max_over_min(&[5, 5, 5, 5]), Some(1.0));
    }

    #[test]
    fn one_winner_is_as_unfair_as_it_gets() {
        assert_eq!(jain(&[9, 0, 0, 0]), Some(0.25));
        assert_eq!(max_over_min(&[9, 0, 0, 0]), Some(f64::INFINITY));
    }

    #[test]
    fn nothing_shared_is_neither() {
        assert_eq!(jain(&[0, 0]), None);
        assert_eq!(jain(&[]), None);
        assert_eq!(max_over_min(&[0, 0]), None);
        assert_eq!(max_over_min(&[]), None);
    }

    #[test]
    fn a_known_uneven_case() {
        // (1+2+3)^2 / (3 * (1+4+9)) = 36/42
        assert!((jain(&[1, 2, 3]).unwrap() - 36.0 / 42.0).abs() < 1e-12);
        assert_eq!(max_over_min(&[1, 2, 3]), Some(3.0));
    }
}
