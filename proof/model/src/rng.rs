//! Random numbers from a seed, the same on every machine and in every version.

/// A generator (SplitMix64). Not for secrets.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// Starts from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`, or 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.bits()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// A number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = high.abs_diff(low).saturating_add(1);
        low.saturating_add_unsigned(self.below(span))
    }

    /// True with this chance in a thousand.
    pub fn permille(&mut self, chance: u64) -> bool {
        self.below(1_000) < chance
    }

    /// One of the choices, which must not be empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let place = self.below(u64::try_from(choices.len()).unwrap_or(u64::MAX));
        &choices[usize::try_from(place).unwrap_or(0)]
    }

    /// A separate generator, so that its use does not change the numbers of this one.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::new(self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_everything_and_bounds_are_kept() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        for _ in 0..1_000 {
            let number = a.between(-3, 5);
            assert_eq!(number, b.between(-3, 5));
            assert!((-3..=5).contains(&number));
        }
        assert_eq!(a.below(0), 0);
        assert!(!a.permille(0) && a.permille(1_000));
    }
}
