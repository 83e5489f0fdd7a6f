//! What a level is run in: nothing of what somebody asked of its tests for another purpose.

use std::ffi::{OsStr, OsString};
use std::process::Command;

/// Where programs are, and what may be installed. Everything else of ours says how much is run, of what, or that what
/// is found is to be written down as what is expected.
const PLACES: [&str; 6] = [
    "LOCKTOPUS_FAKETIME",
    "LOCKTOPUS_NO_INSTALL",
    "LOCKTOPUS_POSTGRES_BIN",
    "LOCKTOPUS_PYTHON",
    "LOCKTOPUS_REDISSON_JAR",
    "LOCKTOPUS_SERVER_BIN",
];

/// How variables begin that say how much is run, or of what: our own, and those of libraries that tests explore with.
const ASK: [&str; 3] = ["LOCKTOPUS_", "LOOM_", "PROPTEST_"];

/// Has the command run what the level says, and not less.
pub(crate) fn as_the_level_says(command: &mut Command) {
    without(command, std::env::vars_os().map(|(name, _)| name));
}

fn without(command: &mut Command, names: impl Iterator<Item = OsString>) {
    let asks = |name: &OsStr| {
        let name = name.to_string_lossy();
        let asked = ASK.iter().any(|begin| name.starts_with(begin));
        asked && !PLACES.contains(&&*name)
    };
    names.filter(|name| asks(name)).for_each(|name| {
        command.env_remove(name);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `LOCKTOPUS_FUZZ=1` in a shell would make a row of one change for each target, and `LOCKTOPUS_TRANSCRIPTS=write` one in which
    /// nothing can differ. `LOOM_MAX_PERMUTATIONS=1` would end every exploration after one order.
    #[test]
    fn a_level_is_not_what_a_shell_was_told() {
        let names = [
            "PATH",
            "LOCKTOPUS_FUZZ",
            "LOCKTOPUS_SERVER_BIN",
            "LOCKTOPUS_TRANSCRIPTS",
            "LOOM_MAX_PERMUTATIONS",
            "PROPTEST_CASES",
        ];
        let mut command = Command::new("cargo");
        without(&mut command, names.into_iter().map(OsString::from));
        let removed: Vec<_> = command.get_envs().collect();
        let expected: [(&OsStr, Option<&OsStr>); 4] = [
            (OsStr::new("LOCKTOPUS_FUZZ"), None),
            (OsStr::new("LOCKTOPUS_TRANSCRIPTS"), None),
            (OsStr::new("LOOM_MAX_PERMUTATIONS"), None),
            (OsStr::new("PROPTEST_CASES"), None),
        ];
        assert_eq!(removed, expected);
    }
}
