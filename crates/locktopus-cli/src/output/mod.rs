//! Text for people, JSON for programs. Answers go to standard output, the rest to standard error.

mod log;
mod table;
mod words;

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) use log::log;
pub(crate) use table::Table;
pub(crate) use words::{age, owner_tag, typed_path, visible};

/// Format of answers and errors
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Plain text
    #[default]
    Text,
    /// One JSON value a line
    Json,
}

/// How and where a command prints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    quiet: bool,
}

impl Output {
    pub(crate) fn new(format: Format, quiet: bool) -> Self {
        Self { format, quiet }
    }

    /// Prints an answer, as JSON or as the text that `text` makes.
    ///
    /// # Errors
    ///
    /// If the reader closed the pipe, the command ends silently, with the code of `SIGPIPE`.
    pub(crate) fn answer<T: Serialize>(
        self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        let line = match self.format {
            Format::Json => json(value),
            Format::Text => text(value),
        };
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{}", line.trim_end()).and_then(|()| out.flush());
        written.map_err(|error| {
            if error.kind() == io::ErrorKind::BrokenPipe {
                return Failure::new(Exit::NoReader, String::new());
            }
            Failure::new(Exit::Failed, format!("cannot write the answer: {error}"))
        })
    }

    /// Prints a remark on standard error, unless `--quiet`.
    pub(crate) fn say(self, text: &str) {
        if self.quiet {
            return;
        }
        match self.format {
            Format::Text => complain(&format!("locktopus: {text}")),
            Format::Json => complain(&json(&Remark { message: text })),
        }
    }

    pub(crate) fn fail(self, failure: &Failure) {
        if failure.message.is_empty() {
            return;
        }
        match self.format {
            Format::Text => {
                let error = paint(Style::Bad, "error:", io::stderr().is_terminal());
                complain(&format!("locktopus: {error} {}", failure.message));
            }
            Format::Json => complain(&json(&Failed {
                error: Error {
                    code: failure.exit.code(),
                    kind: failure.exit.word(),
                    message: &failure.message,
                },
            })),
        }
    }
}

/// Writes to standard error. Ignores failures: the command may hold a lock for a program.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

#[derive(Serialize)]
struct Remark<'a> {
    message: &'a str,
}

#[derive(Serialize)]
struct Failed<'a> {
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: u8,
    kind: &'static str,
    message: &'a str,
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
}

/// The meaning of a text, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Good,
    Doubtful,
    Bad,
    Faint,
}

/// Text for standard output. Coloured on a terminal if [`colours_wanted`].
pub(crate) fn coloured(style: Style, text: &str) -> String {
    paint(style, text, io::stdout().is_terminal())
}

/// Whether the terminal has colours and `NO_COLOR` is not set.
pub(crate) fn colours_wanted() -> bool {
    let term = std::env::var("TERM").unwrap_or_default();
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && has_colours(&term)
}

/// Whether terminals of this type have colours, by its name. Terminals that emulate a VT100 have
/// names of their own.
fn has_colours(term: &str) -> bool {
    let mono = ["-m", "-mono"].iter().any(|end| term.ends_with(end));
    term != "dumb" && !term.starts_with("vt") && !mono
}

fn paint(style: Style, text: &str, terminal: bool) -> String {
    if !terminal || !colours_wanted() {
        return text.to_owned();
    }
    let code = match style {
        Style::Good => "32",
        Style::Doubtful => "33",
        Style::Bad => "31",
        Style::Faint => "2",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_without_colours_are_known_by_name() {
        assert!(
            ["", "xterm", "screen-256color", "linux"]
                .into_iter()
                .all(has_colours)
        );
        assert!(
            !["dumb", "vt100", "vt220-w", "linux-m"]
                .into_iter()
                .any(has_colours)
        );
    }
}
