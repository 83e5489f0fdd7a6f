//! Decimal numbers, as scripts take them.

/// Several numbers as text, stored in place: requests carry many short ones, which must not cost an
/// allocation.
///
/// Written with `itoa`: the formatter of the standard library takes ten times the instructions.
#[derive(Debug)]
pub(crate) struct Numbers<const N: usize> {
    texts: [[u8; LONGEST]; N],
    lengths: [usize; N],
}

/// The length of the largest unsigned number, and of the smallest signed one.
const LONGEST: usize = 20;

impl<const N: usize> Numbers<N> {
    pub(crate) fn of(numbers: [i128; N]) -> Self {
        let mut buffer = itoa::Buffer::new();
        let mut texts = [[0; LONGEST]; N];
        let mut lengths = [0; N];
        for ((number, text), length) in numbers.into_iter().zip(&mut texts).zip(&mut lengths) {
            let digits = buffer.format(number);
            text[..digits.len()].copy_from_slice(digits.as_bytes());
            *length = digits.len();
        }
        Self { texts, lengths }
    }

    /// The texts of all numbers, in order.
    pub(crate) fn each(&self) -> [&[u8]; N] {
        std::array::from_fn(|at| &self.texts[at][..self.lengths[at]])
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
