//! Settable clocks: a preloaded library that answers calls for the system's clock.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::skip::{in_ci, reason_in, skipped};
use crate::topology::error::TopologyError;
use crate::topology::provider::ProviderKind;

/// Environment variable that names the library.
const VARIABLE: &str = "LOCKTOPUS_FAKETIME";

/// A reason to skip its tests, also in CI.
const REASON: &str = "LOCKTOPUS_SKIP_FAKETIME";

/// The folders where packages install it.
const DIRECTORIES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu/faketime",
    "/usr/lib/aarch64-linux-gnu/faketime",
    "/usr/lib/faketime",
    "/usr/lib64/faketime",
    "/usr/local/lib/faketime",
    "/usr/local/lib64/faketime",
];
const LIBRARY: &str = "libfaketime.so.1";

/// Loaded first. One of the server's allocators needs the time before it can allocate, and the
/// library needs memory before it can tell the time. The C library's allocator in front breaks this
/// deadlock.
const ALLOCATOR: &str = "libc.so.6";

/// The file in a node's directory with its clock, read on every call.
const FILE: &str = "clock";

/// The library that the environment names, or the first one in the usual places; `None` for
/// neither.
pub(crate) fn find() -> Result<Option<PathBuf>, TopologyError> {
    let chosen = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    find_in(chosen, &DIRECTORIES)
}

fn find_in(
    chosen: Option<OsString>,
    directories: &[&str],
) -> Result<Option<PathBuf>, TopologyError> {
    if let Some(chosen) = chosen.map(PathBuf::from) {
        // A choice that does not exist is an error, as with the server program.
        return if chosen.is_file() {
            Ok(Some(chosen))
        } else {
            Err(unsupported(format!(
                "a libfaketime at {}, which {VARIABLE} names",
                chosen.display()
            )))
        };
    }
    let places = directories.iter().map(|dir| Path::new(dir).join(LIBRARY));
    Ok(places.into_iter().find(|path| path.is_file()))
}

/// Whether the calling test can set a server's clock. If not, it prints that the test is skipped
/// and why: libfaketime is missing, or `LOCKTOPUS_SKIP_FAKETIME` gives a reason.
///
/// # Errors
///
/// In CI (the variable `CI` is set): libfaketime is missing, without a reason. Everywhere:
/// `LOCKTOPUS_FAKETIME` names a missing file.
pub fn clock_or_skip() -> Result<bool, TopologyError> {
    let why = if let Some(why) = reason_in(REASON) {
        why
    } else if find()?.is_some() {
        return Ok(true);
    } else if in_ci() {
        return Err(unsupported(format!(
            "libfaketime (in CI), or a reason in {REASON}"
        )));
    } else {
        "libfaketime is not installed".to_owned()
    };
    skipped("a test that sets a server's clock", &why);
    Ok(false)
}

/// The error of [`set`] for a server with an ordinary clock.
pub(crate) fn missing() -> TopologyError {
    unsupported(format!(
        "libfaketime (or its path in {VARIABLE}) and Knobs::settable_clock"
    ))
}

fn unsupported(needs: String) -> TopologyError {
    TopologyError::Unsupported {
        verb: "set the clock".to_owned(),
        provider: ProviderKind::Plain,
        needs,
    }
}

/// The arguments for `env` that give a program in `dir` its own clock.
pub(crate) fn arguments(library: &Path, dir: &Path) -> Vec<String> {
    vec![
        format!("LD_PRELOAD={} {ALLOCATOR}", library.display()),
        format!("FAKETIME_TIMESTAMP_FILE={}", dir.join(FILE).display()),
        "FAKETIME_NO_CACHE=1".to_owned(),
        // Clocks that only run forward cannot be set.
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
    ]
}

/// Sets the clock of the server in `dir` this far ahead of the system's.
pub(crate) fn set(dir: &Path, ahead: Duration) -> Result<(), TopologyError> {
    let (file, new) = (dir.join(FILE), dir.join("clock.new"));
    // Written atomically: the server may read it at any time.
    std::fs::write(&new, format!("+{:.3}\n", ahead.as_secs_f64()))
        .map_err(TopologyError::io("write", &new))?;
    std::fs::rename(&new, &file).map_err(TopologyError::io("replace", &file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_choice_is_told() {
        let wrong = find_in(Some("/nonexistent/library".into()), &["/bin"]);
        assert!(
            wrong
                .unwrap_err()
                .to_string()
                .contains("/nonexistent/library")
        );
        assert!(find_in(None, &["/nonexistent"]).unwrap().is_none());
        assert_eq!(
            find_in(Some("/bin/sh".into()), &[]).unwrap(),
            Some("/bin/sh".into())
        );
    }
}
