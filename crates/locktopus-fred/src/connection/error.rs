//! Converts fred's errors to the one question that matters for a lock: may the command have run?

use std::io;

use fred::error::ErrorKind;
use locktopus_protocol::ClientError;

/// Converts an error that fred itself made: never a server's answer to *this* command.
///
/// fred does not say whether the bytes left, so the command may have run.
pub(crate) fn maybe_executed(error: &fred::error::Error) -> ClientError {
    ClientError::MaybeExecuted(describe(error))
}

/// fred's error on one line. Its details are I/O errors, fixed sentences or a server's error line.
pub(crate) fn describe(error: &fred::error::Error) -> String {
    match error.kind() {
        ErrorKind::IO => io_in_words(error.details()),
        kind => format!("{} ({})", error.details(), kind.to_str()),
    }
}

/// The text of an I/O error. fred keeps only the `Debug` form.
fn io_in_words(details: &str) -> String {
    let after = |start: &str| details.strip_prefix(start);
    let said = |field: &str| {
        let (_, said) = details.strip_suffix(" }")?.split_once(field)?;
        let bare = said
            .strip_prefix('"')
            .and_then(|said| said.strip_suffix('"'));
        Some(bare.unwrap_or(said).to_owned())
    };
    let code = after("Os { code: ").and_then(|rest| rest.split(',').next()?.parse().ok());
    if let Some(code) = code {
        io::Error::from_raw_os_error(code).to_string()
    } else if let Some(kind) = after("Kind(").and_then(|kind| kind.strip_suffix(')')) {
        spaced(kind)
    } else if after("Custom {").is_some() {
        said(", error: ").map_or_else(|| details.to_owned(), |inner| io_in_words(&inner))
    } else if after("Error {").is_some() {
        said(", message: ").unwrap_or_else(|| details.to_owned())
    } else {
        details.to_owned()
    }
}

/// Turns `ConnectionReset` into `connection reset`.
fn spaced(kind: &str) -> String {
    let mut words = String::new();
    for letter in kind.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

/// The error of every call after [`close`](locktopus_protocol::RedisClient::close).
pub(crate) fn closed() -> ClientError {
    ClientError::NotSent("the client was closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_are_told_in_words() {
        let refused = || io::Error::from_raw_os_error(111);
        let short = io::Read::read_exact(&mut &b"a"[..], &mut [0; 2]).unwrap_err();
        for (error, words) in [
            (refused(), refused().to_string()),
            (io::Error::other(refused()), refused().to_string()),
            (
                io::ErrorKind::ConnectionReset.into(),
                "connection reset".to_owned(),
            ),
            (
                io::Error::other("it, error: { }"),
                "it, error: { }".to_owned(),
            ),
            (short, "failed to fill whole buffer".to_owned()),
        ] {
            let told = describe(&fred::error::Error::from(error));
            assert_eq!(told, words);
        }
    }
}
