//! Which test runs which script, for whoever wants to run only those that say something about one.
//!
//! If `LOCKTOPUS_MODEL_LOADED` names a file, a line is added to it for each shipped script that is
//! loaded: the name of the thread, which is that of the test, a tab, and the script's name.

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
    // Several have the same text, and whoever reads this knows which.
    if let Some(script) = scripts::all().find(|script| script.source == source) {
        let line = format!("{thread}\t{}\n", script.name);
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(line.as_bytes());
        written.unwrap_or_else(|error| panic!("{VARIABLE}: {error}"));
    }
}
