//! Bytes, taken apart: whatever they are, they mean something.

use std::borrow::Cow;

/// What is left of the bytes.
#[derive(Debug)]
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte; 0 behind the end.
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    /// One of these, which are not none.
    pub(crate) fn one_of<'b, T>(&mut self, all: &'b [T]) -> &'b T {
        &all[usize::from(self.byte()) % all.len()]
    }

    /// The next eight bytes as a number, filled up with zeros.
    pub(crate) fn number(&mut self) -> i64 {
        i64::from_le_bytes([(); 8].map(|()| self.byte()))
    }

    /// The next so many bytes, or as many as there are.
    pub(crate) fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The bytes up to this one, or all that are left.
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

/// Bytes as text, whatever they are.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
