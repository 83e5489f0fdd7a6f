//! Appends results of runs as JSON lines; `docs/conformance.md` shows them as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use crate::report::{Report, Verdict};

/// The variable that names the file to append to.
const OUT: &str = "LOCKTOPUS_CONFORMANCE_OUT";

/// The place of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct Setting {
    /// The backend, for example `redis`.
    pub backend: String,
    /// The topology, for example `cluster`; `-` for none.
    pub topology: String,
    /// How the servers ran, for example `plain`; `-` for none.
    pub provider: String,
    /// The client library, or several joined by ` + `; `-` for none.
    pub client: String,
    /// The server and its version; `-` for none.
    pub server: String,
}

impl Setting {
    /// A backend inside this process, without servers.
    #[must_use]
    pub fn embedded(backend: &str) -> Self {
        let none = || "-".to_owned();
        Self {
            backend: backend.to_owned(),
            topology: none(),
            provider: none(),
            client: none(),
            server: none(),
        }
    }
}

/// The cases of one flavour.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    passed: usize,
    total: usize,
    skipped: usize,
}

impl Report {
    /// Appends one line for each flavour to the file named by `LOCKTOPUS_CONFORMANCE_OUT`, if it is
    /// set. A report of a partial run says nothing about a backend, so this skips it.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn record(&self, setting: &Setting) -> io::Result<()> {
        match std::env::var_os(OUT) {
            Some(path) if !self.is_partial() => self.record_in(Path::new(&path), setting),
            _ => Ok(()),
        }
    }

    /// As [`record`](Self::record), in a given file.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn record_in(&self, path: &Path, setting: &Setting) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        // In one piece, because several test programs may append at the same time.
        file.write_all(self.lines(setting).as_bytes())
    }

    fn lines(&self, setting: &Setting) -> String {
        let mut counts: BTreeMap<_, Count> = BTreeMap::new();
        for outcome in self.outcomes() {
            let count = counts.entry(outcome.flavour).or_default();
            match outcome.verdict {
                Verdict::Passed => {
                    (count.passed, count.total) = (count.passed + 1, count.total + 1)
                }
                Verdict::Failed(_) => count.total += 1,
                Verdict::Skipped(_) => count.skipped += 1,
            }
        }
        let Setting {
            backend,
            topology,
            provider,
            client,
            server,
        } = setting;
        let place = [
            ("backend", backend),
            ("topology", topology),
            ("provider", provider),
            ("client", client),
            ("server", server),
        ];
        let mut lines = String::new();
        for (flavour, count) in counts {
            let Count {
                passed,
                total,
                skipped,
            } = count;
            lines.push('{');
            for (key, value) in place {
                let _ = write!(lines, "\"{key}\":\"{}\",", escaped(value));
            }
            let kind = flavour.as_str();
            let _ = writeln!(
                lines,
                "\"kind\":\"{kind}\",\"passed\":{passed},\"total\":{total},\"skipped\":{skipped}}}"
            );
        }
        lines
    }
}

/// Escapes text for a JSON string. Drops control characters; no version or name has any.
fn escaped(text: &str) -> String {
    let printable = text.chars().filter(|c| !c.is_control());
    printable
        .flat_map(|c| {
            matches!(c, '"' | '\\')
                .then_some('\\')
                .into_iter()
                .chain([c])
        })
        .collect()
}
