//! Changes of script texts, which the simulator must notice.

use std::borrow::Cow;

use locktopus_model::redis::Unsupported;

/// A change to scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patch {
    /// The end of the script names it applies to: `_release`, or `lock_release` for one kind only.
    pub script: &'static str,
    /// The text to replace; it must occur exactly once.
    pub from: &'static str,
    /// Its replacement.
    pub to: &'static str,
    /// Further replacements in the same scripts.
    pub more: &'static [(&'static str, &'static str)],
}

impl Patch {
    /// The text of the script with this name, after the change.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the text does not occur exactly once.
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
