//! Decimal numbers, as scripts take them.

use std::fmt::{Display, Write as _};

/// Several numbers in one string, which saves allocations: requests have many short ones.
#[derive(Debug)]
pub(crate) struct Numbers<const N: usize> {
    text: String,
    ends: [usize; N],
}

/// Enough for a time in microseconds beside smaller numbers.
const USUAL: usize = 10;

impl<const N: usize> Numbers<N> {
    pub(crate) fn of(numbers: [&dyn Display; N]) -> Self {
        let mut text = String::with_capacity(USUAL * N);
        let ends = numbers.map(|number| {
            write!(text, "{number}").expect("a String takes everything");
            text.len()
        });
        Self { text, ends }
    }

    /// Each of them, in their order.
    pub(crate) fn each(&self) -> [&[u8]; N] {
        let mut from = 0;
        self.ends.map(|end| {
            let number = &self.text.as_bytes()[from..end];
            from = end;
            number
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_apart_from_the_others() {
        let numbers = Numbers::of([&0, &u64::MAX, &-7, &30_000_u32]);
        let expected: [&[u8]; 4] = [b"0", b"18446744073709551615", b"-7", b"30000"];
        assert_eq!(numbers.each(), expected);
    }
}
