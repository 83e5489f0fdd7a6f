//! Errors of the command line, without what may be a password.
//!
//! A connection string may be typed anywhere, and the parser repeats what it does not understand.

use clap::error::{ContextKind, ContextValue};

/// Longer than every option and subcommand, and shorter than most keys.
const LONGEST: usize = 24;

/// Replaces what the parser would repeat, unless it is as plain as a misspelt word, number or time.
pub(crate) fn without_secrets(mut error: clap::Error) -> clap::Error {
    let mut repeated = vec![ContextKind::InvalidSubcommand, ContextKind::InvalidValue];
    // With other errors this is one of our own options.
    if error.kind() == clap::error::ErrorKind::UnknownArgument {
        repeated.push(ContextKind::InvalidArg);
    }
    for kind in repeated {
        if let Some(ContextValue::String(text)) = error.get(kind)
            && !is_plain(text)
        {
            error.insert(kind, ContextValue::String("***".to_owned()));
            // Advice repeats it too.
            error.remove(ContextKind::Suggested);
        }
    }
    error
}

fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_. ".contains(c);
    text.len() <= LONGEST && text.chars().all(plain)
}
