//! Errors in the command line, with possible passwords removed.
//!
//! Users may type a connection string anywhere, and the parser quotes unknown arguments.

use std::ffi::OsStr;

use clap::ValueEnum as _;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::config::FORMAT_VARIABLE;
use crate::failure::Failure;
use crate::output::{Format, Output};

/// Longer than every option and subcommand, shorter than most keys.
const LONGEST: usize = 24;

/// Prints the parser's message and returns the exit code. `--help` is not an error.
pub(crate) fn report(error: clap::Error) -> u8 {
    let format = format_before_parsing();
    if !error.use_stderr() || format == Format::Text {
        let code = u8::try_from(error.exit_code()).unwrap_or(u8::MAX);
        let _closed = without_secrets(error).print();
        return code;
    }
    let message = match error.kind() {
        // Here the parser prints the whole help.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "the command line is incomplete; see --help".to_owned()
        }
        _ => in_one_line(&without_secrets(error).render().to_string()),
    };
    let failure = Failure::usage(message);
    Output::new(format, false).fail(&failure);
    failure.exit.code()
}

/// The parser's error on one line, without the usage.
fn in_one_line(said: &str) -> String {
    let said = said.split("\n\nUsage:").next().unwrap_or_default();
    let said = said
        .split("\n\nFor more information")
        .next()
        .unwrap_or_default();
    let words: Vec<_> = said.split_whitespace().skip(1).collect();
    words.join(" ")
}

/// The format asked for by `--format` or the variable, before anything is parsed.
fn format_before_parsing() -> Format {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let own = arguments
        .split(|word| word == "--")
        .next()
        .unwrap_or_default();
    let asked = own
        .windows(2)
        .any(|pair| pair[0] == "--format" && pair[1] == "json")
        || own.iter().any(|word| word == OsStr::new("--format=json"));
    if asked {
        return Format::Json;
    }
    format_of_environment()
}

/// The format in the variable. Text if it is unset or invalid.
pub(crate) fn format_of_environment() -> Format {
    let text = std::env::var(FORMAT_VARIABLE).unwrap_or_default();
    Format::from_str(&text, true).unwrap_or_default()
}

/// Hides what the parser would repeat, unless it looks like a plain word, number or time.
fn without_secrets(mut error: clap::Error) -> clap::Error {
    let mut repeated = vec![ContextKind::InvalidSubcommand, ContextKind::InvalidValue];
    // `--wait -1s`: the parser takes it for an option, and would suggest `-- -1`.
    let invalid = error.get(ContextKind::InvalidArg);
    if invalid.is_some_and(|invalid| looks_negative(&invalid.to_string())) {
        let tip = StyledStr::from("times and numbers must not be negative");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    // With other errors this is one of our own options.
    if error.kind() == ErrorKind::UnknownArgument {
        repeated.push(ContextKind::InvalidArg);
    }
    for kind in repeated {
        if let Some(ContextValue::String(text)) = error.get(kind)
            && !is_plain(text)
        {
            error.insert(kind, ContextValue::String("***".to_owned()));
            // Suggestions repeat it too.
            error.remove(ContextKind::Suggested);
        }
    }
    error
}

fn looks_negative(text: &str) -> bool {
    let number = text.strip_prefix('-');
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_plain(text: &str) -> bool {
    // A number and one letter, such as `1M`.
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if unit.len() == 1 && unit.chars().all(|c| c.is_ascii_alphabetic()) {
        return text.len() <= LONGEST;
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_. ".contains(c);
    text.len() <= LONGEST && text.chars().all(plain)
}
