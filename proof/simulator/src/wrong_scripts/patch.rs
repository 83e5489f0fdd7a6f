//! Changes to the text of scripts, to see whether the simulator notices.

use std::borrow::Cow;

use locktopus_model::redis::Unsupported;

/// A change to scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patch {
    /// The end of the names of the scripts it changes: `_release`, or `lock_release` for one kind
    /// only.
    pub script: &'static str,
    /// What is replaced; it must be there exactly once.
    pub from: &'static str,
    /// By what.
    pub to: &'static str,
    /// What else is replaced in the same scripts, and by what.
    pub more: &'static [(&'static str, &'static str)],
}

impl Patch {
    /// The text of a script, by its name and text, after the change.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the text is not there exactly once.
    pub fn apply_to<'a>(&self, name: &str, source: &'a str) -> Result<Cow<'a, str>, Unsupported> {
        if !name.ends_with(self.script) {
            return Ok(source.into());
        }
        let mut source = source.to_owned();
        for (from, to) in std::iter::once(&(self.from, self.to)).chain(self.more) {
            if source.matches(from).count() != 1 {
                let what = format!("the patch: {name} does not contain {from:?} exactly once");
                return Err(Unsupported { what });
            }
            source = source.replacen(from, to, 1);
        }
        Ok(source.into())
    }
}
