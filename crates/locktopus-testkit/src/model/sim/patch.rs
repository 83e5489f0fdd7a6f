//! Changes to the text of scripts, to see whether the model notices.

use std::borrow::Cow;

use locktopus_protocol::scripts::Script;

use crate::model::redis::Unsupported;

/// A change to scripts.
#[derive(Debug, Clone, Copy)]
pub struct Patch {
    /// The end of the names of the scripts it changes: `_release`, or `lock_release` for one kind only.
    pub script: &'static str,
    /// What is replaced; it must be there exactly once.
    pub from: &'static str,
    /// By what.
    pub to: &'static str,
}

impl Patch {
    /// The text of a script after the change.
    pub(super) fn apply(&self, script: &Script) -> Result<Cow<'static, str>, Unsupported> {
        if !script.name.ends_with(self.script) {
            return Ok(script.source.into());
        }
        if script.source.matches(self.from).count() != 1 {
            let (name, from) = (script.name, self.from);
            let what = format!("the patch: {name} does not contain {from:?} exactly once");
            return Err(Unsupported { what });
        }
        Ok(script.source.replacen(self.from, self.to, 1).into())
    }
}
