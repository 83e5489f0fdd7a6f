//! Clocks that can be set: a library that is loaded before the others and answers for the system's
//! clock.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::skip::{in_ci, reason_in, skipped};
use crate::topology::error::TopologyError;
use crate::topology::provider::ProviderKind;

/// Environment variable that names the library.
const VARIABLE: &str = "LOCKTOPUS_FAKETIME";

/// A reason to do without it, also in CI.
const REASON: &str = "LOCKTOPUS_SKIP_FAKETIME";

/// Where packages put it.
const DIRECTORIES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu/faketime",
    "/usr/lib/aarch64-linux-gnu/faketime",
    "/usr/lib/faketime",
    "/usr/lib64/faketime",
    "/usr/local/lib/faketime",
    "/usr/local/lib64/faketime",
];
const LIBRARY: &str = "libfaketime.so.1";

/// Made first: one of the server's allocators asks for the time before it can give out memory, and
/// the library asks for memory before it can tell the time. With the C library's own allocator in
/// front, nobody waits for the other.
const ALLOCATOR: &str = "libc.so.6";

/// The file in a node's directory from which its clock is read, at every look.
const FILE: &str = "clock";

/// The environment's choice, else the first one where packages put it; `None` if there is none.
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

/// Whether the calling test can set the clock of a server. If not, it says that the test is skipped
/// and why: libfaketime is missing, or `LOCKTOPUS_SKIP_FAKETIME` gives a reason.
///
/// # Errors
///
/// In CI (the variable `CI` is set): libfaketime is missing, and there is no reason. Always:
/// `LOCKTOPUS_FAKETIME` names no file.
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

/// What a server with an ordinary clock says to [`set`].
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

/// What `env` is called with so that a program in `dir` has a clock of its own.
pub(crate) fn arguments(library: &Path, dir: &Path) -> Vec<String> {
    vec![
        format!("LD_PRELOAD={} {ALLOCATOR}", library.display()),
        format!("FAKETIME_TIMESTAMP_FILE={}", dir.join(FILE).display()),
        "FAKETIME_NO_CACHE=1".to_owned(),
        // Clocks that only run forward are not set by anybody.
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
    ]
}

/// Sets the clock of the server in `dir` so far ahead of the system's.
pub(crate) fn set(dir: &Path, ahead: Duration) -> Result<(), TopologyError> {
    let (file, new) = (dir.join(FILE), dir.join("clock.new"));
    // Whole, or not at all: the server may look at any time.
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
