//! Places in a text, by line and column and by bytes.

use std::ops::Range;

use proc_macro2::{LineColumn, Span};
use serde_json::Value;

/// A line and a column, both from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl From<LineColumn> for Place {
    fn from(place: LineColumn) -> Self {
        Self {
            line: place.line,
            column: place.column + 1,
        }
    }
}

impl Place {
    /// As cargo-mutants writes it.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let number = |name: &str| value[name].as_u64().and_then(|n| usize::try_from(n).ok());
        Some(Self {
            line: number("line")?,
            column: number("column")?,
        })
    }

    /// The byte of a text that is there.
    pub(crate) fn byte(self, text: &str) -> usize {
        let line: usize = text
            .split_inclusive('\n')
            .take(self.line - 1)
            .map(str::len)
            .sum();
        let before = text[line..].chars().take(self.column - 1);
        line + before.map(char::len_utf8).sum::<usize>()
    }
}

/// The bytes of a text that a part of its syntax tree covers.
pub(crate) fn bytes(text: &str, span: Span) -> Range<usize> {
    Place::from(span.start()).byte(text)..Place::from(span.end()).byte(text)
}
