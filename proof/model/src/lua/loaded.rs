//! Records which test loads which script, so that a caller can run only the tests that concern one.
//!
//! If `LOCKTOPUS_MODEL_LOADED` names a file, each load of a shipped script adds a line to it: the
//! name of the thread, which is that of the test, a tab, and the script's name.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{LazyLock, Mutex, PoisonError};

use locktopus_protocol::scripts;

const VARIABLE: &str = "LOCKTOPUS_MODEL_LOADED";

static FILE: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
    let path = std::env::var_os(VARIABLE)?;
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let file = file.unwrap_or_else(|error| panic!("{VARIABLE}: {}: {error}", path.display()));
    Some(Mutex::new(file))
});

/// Notes that this thread loads a script.
pub(super) fn note(source: &str) {
    let Some(file) = &*FILE else {
        return;
    };
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or_default();
    // Several scripts share a text. The reader of the file knows which.
    if let Some(script) = scripts::all().find(|script| script.source == source) {
        let line = format!("{thread}\t{}\n", script.name);
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(line.as_bytes());
        written.unwrap_or_else(|error| panic!("{VARIABLE}: {error}"));
    }
}
