//! The scripts that servers know, alone and as batches.

use std::cell::OnceCell;

use locktopus_protocol::scripts::{self, Script};

thread_local! {
    static SCRIPTS: OnceCell<Vec<Known>> = const { OnceCell::new() };
}

/// A script. `of` is set for a batch: the script of its members.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) script: &'static Script,
    pub(crate) of: Option<&'static Script>,
}

fn scripts<T>(look: impl FnOnce(&[Known]) -> T) -> T {
    SCRIPTS.with(|known| {
        look(known.get_or_init(|| {
            let alone = || scripts::all().filter(|it| !it.name.ends_with("_together"));
            let batches = alone().map(|one| (one.together(), Some(one)));
            let all = batches.chain(alone().map(|script| (script, None)));
            all.map(|(script, of)| Known { script, of }).collect()
        }))
    })
}

/// The script with this digest.
pub(crate) fn known_script(digest: &str) -> Option<Known> {
    scripts(|all| {
        let mut last_first = all.iter().rev();
        let found = last_first.find(|known| known.script.digest() == digest);
        found.copied()
    })
}

/// The script with this text.
pub(crate) fn script_of(text: &str) -> Option<Known> {
    let found = |all: &[Known]| all.iter().find(|it| it.script.source == text).copied();
    scripts(found)
}
