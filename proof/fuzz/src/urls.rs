//! Backend URLs.

use locktopus::url::{BackendUrl, UrlError};

use crate::input::{Input, text};

/// No message contains any part of it.
const SECRET: &str = "QXZJQXZJ";
/// Shown in place of secrets.
const HIDDEN: &str = "***";

/// The text before a secret: a full login, or a secret option.
const BEFORE: [&str; 4] = ["", "redis://app:", "?sentinel_password=", "&password="];

/// A byte for the place of a secret, then a text with a zero at that place.
///
/// No text makes the parser panic, no error and no `Debug` shows a secret, and a URL as shown is a
/// URL of the same server, without the login.
///
/// # Panics
///
/// If one of these rules is broken.
pub fn urls(data: &[u8]) {
    let mut input = Input::new(data);
    let before = *input.one_of(&BEFORE);
    let (first, rest) = (input.up_to(0), input.rest());
    let (first, rest) = (innocent(&text(first)), innocent(&text(rest)));
    let _ = shown(&format!("{first}{rest}"));
    let login = if before.contains("password") { "" } else { "@" };
    // An option after the place for options is not an option, and then its value is no secret.
    let question = if before.starts_with('&') { "?a=b" } else { "" };
    let url = format!("{first}{question}{before}{SECRET}{login}{rest}");
    let shown = shown(&url);
    for at in 0..=SECRET.len() - 4 {
        let piece = &SECRET[at..at + 4];
        assert!(
            !shown.contains(piece),
            "{url:?}: {piece} is shown in {shown}"
        );
    }
}

/// The text without possible parts of the secret, encoded or not.
fn innocent(text: &str) -> String {
    let mut text = text.replace(|c| SECRET.contains(c), "");
    for encoded in ["%51", "%58", "%5A", "%5a", "%4A", "%4a"] {
        text = text.replace(encoded, "%61");
    }
    text
}

/// Everything that the result of parsing this text shows.
fn shown(text: &str) -> String {
    match text.parse::<BackendUrl>() {
        Ok(url) => {
            let display = url.to_string();
            same_again(text, &display);
            format!("{display} {url:?} {url:#?}")
        }
        Err(error) => {
            let UrlError {
                url, part, problem, ..
            } = &error;
            format!("{error} {error:?} {error:#?} {url} {part} {problem}")
        }
    }
}

/// The URL as shown, without the place of the login, is a URL and shows the same again.
fn same_again(text: &str, display: &str) {
    let place = display.replacen(&format!("{HIDDEN}@"), "", 1);
    // Hidden options cannot be read again.
    if place.contains(HIDDEN) {
        return;
    }
    match place.parse::<BackendUrl>() {
        Ok(again) => assert_eq!(again.to_string(), place, "{text:?}"),
        Err(error) => panic!("{text:?} is a URL, and what is shown of it is none: {error}"),
    }
}
