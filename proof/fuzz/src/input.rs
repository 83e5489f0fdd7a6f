//! Reads arbitrary bytes as values; every input means something.

use std::borrow::Cow;

/// The remaining bytes.
#[derive(Debug)]
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte; 0 past the end.
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    /// One element of a list that must not be empty.
    pub(crate) fn one_of<'b, T>(&mut self, all: &'b [T]) -> &'b T {
        &all[usize::from(self.byte()) % all.len()]
    }

    /// The next eight bytes as a number, padded with zeros.
    pub(crate) fn number(&mut self) -> i64 {
        i64::from_le_bytes([(); 8].map(|()| self.byte()))
    }

    /// The next `count` bytes, or as many as there are.
    pub(crate) fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The bytes before the next `end`, or all remaining ones.
    pub(crate) fn up_to(&mut self, end: u8) -> &'a [u8] {
        let length = self.0.iter().position(|byte| *byte == end);
        let taken = self.take(length.unwrap_or(self.0.len()));
        self.byte();
        taken
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// Arbitrary bytes as text.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
