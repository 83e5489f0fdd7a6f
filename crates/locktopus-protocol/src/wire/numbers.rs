//! Decimal numbers, as scripts take them.

/// A number that a script takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Unsigned(u64),
    Signed(i64),
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self::Unsigned(number)
    }
}

impl From<u32> for Number {
    fn from(number: u32) -> Self {
        Self::Unsigned(number.into())
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Self::Signed(number)
    }
}

/// Several numbers in one string, which saves allocations: requests have many short ones.
///
/// Written by `itoa`: the formatter of the standard library costs ten times the instructions, and every acquisition sends
/// nine numbers.
#[derive(Debug)]
pub(crate) struct Numbers<const N: usize> {
    text: String,
    ends: [usize; N],
}

/// Enough for a time in microseconds beside smaller numbers.
const USUAL: usize = 10;

impl<const N: usize> Numbers<N> {
    pub(crate) fn of(numbers: [Number; N]) -> Self {
        let mut text = String::with_capacity(USUAL * N);
        let mut buffer = itoa::Buffer::new();
        let ends = numbers.map(|number| {
            text.push_str(match number {
                Number::Unsigned(number) => buffer.format(number),
                Number::Signed(number) => buffer.format(number),
            });
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
        let numbers = Numbers::of([
            0_u32.into(),
            u64::MAX.into(),
            (-7_i64).into(),
            30_000_u32.into(),
            i64::MIN.into(),
        ]);
        let expected: [&[u8]; 5] = [
            b"0",
            b"18446744073709551615",
            b"-7",
            b"30000",
            b"-9223372036854775808",
        ];
        assert_eq!(numbers.each(), expected);
    }
}
