//! Prepares the source of the core's leases for loom: `tests/leases` compiles the shipped text with
//! its imported atomics, mutexes and signals replaced by versions that try every interleaving.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The compiled files of the core.
const FILES: [&str; 12] = [
    "engine/holding/give_back.rs",
    "engine/holding/hold.rs",
    "engine/holding/lease.rs",
    "engine/holding/shared_owner.rs",
    "engine/holding/term.rs",
    "engine/holding/turn.rs",
    "engine/holding/watchdog.rs",
    "engine/holding/watchdog/due.rs",
    "engine/holding/watchdog/timer_index.rs",
    "engine/holding/watchdog/timing.rs",
    "engine/holding/watchdog/watched_leases.rs",
    "handles/locktopus/shutdown.rs",
];

/// The replacements, in this order.
const REPLACED: [(&str, &str); 8] = [
    ("locktopus_contract::", "crate::contract::"),
    ("std::sync::atomic::", "loom::sync::atomic::"),
    ("std::sync::", "crate::sync::"),
    ("tokio::sync::Notify", "crate::sync::Notify"),
    ("tokio_util::sync::", "crate::sync::"),
    ("tokio_util::task::task_tracker::", "crate::sync::"),
    ("tokio::time::sleep", "crate::time::sleep"),
    ("tokio::time::timeout", "crate::time::timeout"),
];

/// One check and its consequences, which only the watchdog itself makes.
const CHECK_ONCE: &str = "
impl Watchdog {
    pub(crate) fn check_once(self: &Arc<Self>, services: &Arc<Services>) {
        let due = lock(&self.watched).take_due();
        self.handle(due, &Arc::downgrade(services));
    }
}
";

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says it"));
    let mut replaced = BTreeSet::new();
    println!("cargo::rerun-if-changed=build.rs");
    for file in FILES {
        let path = here.join("../../crates/locktopus-core/src").join(file);
        println!("cargo::rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut text = without_tests_and_heading(&text);
        for (from, to) in REPLACED {
            if text.contains(from) {
                replaced.insert(from);
                text = text.replace(from, to);
            }
        }
        if file.ends_with("/watchdog.rs") {
            text = with_modules(&text) + CHECK_ONCE;
        }
        let name = Path::new(file).file_name().expect("a file");
        fs::write(out.join(name), text).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    for (from, _) in REPLACED {
        // A changed import would be compiled unreplaced, and its interleavings not tried.
        assert!(replaced.contains(from), "nothing imports {from} any more");
    }
}

/// The documentation of a file cannot be in the middle of another.
fn without_tests_and_heading(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {");
    let lines = text[..end.unwrap_or(text.len())].lines();
    let mut kept = String::new();
    for line in lines.filter(|line| !line.starts_with("//!")) {
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}

/// An included file has no folder for its modules.
fn with_modules(text: &str) -> String {
    let mut kept = String::new();
    for line in text.lines() {
        let name = line
            .strip_prefix("mod ")
            .and_then(|rest| rest.strip_suffix(';'));
        match name {
            Some(name) => kept.push_str(&format!(
                "mod {name} {{ include!(concat!(env!(\"OUT_DIR\"), \"/{name}.rs\")); }}\n"
            )),
            None => {
                kept.push_str(line);
                kept.push('\n');
            }
        }
    }
    kept
}
