//! Replaces a part of the shipped scripts, to see which tests notice. Only mutation tests do that.
//!
//! A process has one replacement at a time. [`replace`] sets it; before that, it comes from the
//! file that `LOCKTOPUS_MODEL_REPLACED` names, which lets mutants run under tests that know nothing
//! of them. The first line of the file is the length in bytes of the text to replace, which
//! follows; the rest is the new text.

use std::borrow::Cow;
use std::sync::{LazyLock, PoisonError, RwLock};

const VARIABLE: &str = "LOCKTOPUS_MODEL_REPLACED";

/// A text of the scripts, and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The text in the shipped scripts.
    pub from: String,
    /// Its replacement.
    pub to: String,
}

static CURRENT: LazyLock<RwLock<Option<Replaced>>> = LazyLock::new(|| {
    let file = std::env::var_os(VARIABLE);
    RwLock::new(file.map(|file| {
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{VARIABLE}: {}: {error}", file.display()));
        Replaced::parse(&text).unwrap_or_else(|| panic!("{VARIABLE}: not such a file"))
    }))
});

impl Replaced {
    /// Parses the text of such a file.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (length, rest) = text.split_once('\n')?;
        let (from, to) = rest.split_at_checked(length.parse().ok()?)?;
        Some(Self {
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }

    /// The text of such a file.
    #[must_use]
    pub fn to_file(&self) -> String {
        format!("{}\n{}{}", self.from.len(), self.from, self.to)
    }

    /// A script after the replacement.
    #[must_use]
    pub fn apply<'a>(&self, source: &'a str) -> Cow<'a, str> {
        if source.contains(&self.from) {
            source.replace(&self.from, &self.to).into()
        } else {
            source.into()
        }
    }
}

/// Sets the replacement for all scripts loaded from now on.
pub fn replace(replaced: Option<Replaced>) {
    *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = replaced;
}

/// Whether a test of this script says something: if nothing is replaced, or a part of this script
/// is.
#[must_use]
pub fn concerns(source: &str) -> bool {
    let current = CURRENT.read().unwrap_or_else(PoisonError::into_inner);
    current
        .as_ref()
        .is_none_or(|replaced| source.contains(&replaced.from))
}

/// The text to run, and whether there is a replacement.
pub(super) fn current(source: &str) -> (Cow<'_, str>, bool) {
    let current = CURRENT.read().unwrap_or_else(PoisonError::into_inner);
    match &*current {
        Some(replaced) => (replaced.apply(source), true),
        None => (source.into(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_both_texts() {
        let replaced = Replaced {
            from: "a\nb".to_owned(),
            to: "c\n".to_owned(),
        };
        assert_eq!(Replaced::parse(&replaced.to_file()), Some(replaced.clone()));
        assert_eq!(replaced.apply("x a\nb y"), "x c\n y");
        assert_eq!(Replaced::parse("9\nshort"), None);
    }
}
