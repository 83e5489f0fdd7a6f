//! Another text for a part of the shipped scripts, to see which tests notice. Nobody but mutation
//! tests sets one.
//!
//! A process has one at a time:
//! `set` chooses it, and before that the file that `LOCKTOPUS_MODEL_REPLACED` names, so that tests
//! that know nothing of mutants can be run with one. Its first line says how many bytes of it,
//! behind that line, are the text that is replaced; the rest is what it is replaced by.

use std::borrow::Cow;
use std::sync::{LazyLock, PoisonError, RwLock};

const VARIABLE: &str = "LOCKTOPUS_MODEL_REPLACED";

/// A text that scripts contain, and what they have instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The text that is in the shipped scripts.
    pub from: String,
    /// What stands there instead.
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
    /// From the form of such a file.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (length, rest) = text.split_once('\n')?;
        let (from, to) = rest.split_at_checked(length.parse().ok()?)?;
        Some(Self {
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }

    /// As the text of such a file.
    #[must_use]
    pub fn to_file(&self) -> String {
        format!("{}\n{}{}", self.from.len(), self.from, self.to)
    }

    /// A script with the other text.
    #[must_use]
    pub fn apply<'a>(&self, source: &'a str) -> Cow<'a, str> {
        if source.contains(&self.from) {
            source.replace(&self.from, &self.to).into()
        } else {
            source.into()
        }
    }
}

/// Chooses what all scripts that are loaded from now on have instead of their own text.
pub fn replace(replaced: Option<Replaced>) {
    *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = replaced;
}

/// Whether what this script does says something: if nothing is replaced, or something of it is.
#[must_use]
pub fn concerns(source: &str) -> bool {
    let current = CURRENT.read().unwrap_or_else(PoisonError::into_inner);
    current
        .as_ref()
        .is_none_or(|replaced| source.contains(&replaced.from))
}

/// A script as it is to be run, and whether that is not as it is shipped.
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
