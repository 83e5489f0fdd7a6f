//! Backend URLs.

use locktopus::url::{BackendUrl, UrlError};

use crate::input::{Input, text};

/// No part of it stands in any message.
const SECRET: &str = "QXZJQXZJ";
/// Instead of what is not shown.
const HIDDEN: &str = "***";

/// What a secret stands behind: a login in full, or an option that is one.
const BEFORE: [&str; 4] = ["", "redis://app:", "?sentinel_password=", "&password="];

/// A byte that says where a secret is written, then a text with a zero in its place.
///
/// No text is a fault of the parser's; a secret is seen in no error and no `Debug`; and what is
/// shown of a URL is a URL of the same place, but for its login.
///
/// # Panics
///
/// If one of these does not hold.
pub fn urls(data: &[u8]) {
    let mut input = Input::new(data);
    let before = *input.one_of(&BEFORE);
    let (first, rest) = (input.up_to(0), input.rest());
    let (first, rest) = (innocent(&text(first)), innocent(&text(rest)));
    let _ = shown(&format!("{first}{rest}"));
    let login = if before.contains("password") { "" } else { "@" };
    // What is behind the place for options is none, and what is no option is no secret.
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

/// Without what may be a part of the secret, encoded or not.
fn innocent(text: &str) -> String {
    let mut text = text.replace(|c| SECRET.contains(c), "");
    for encoded in ["%51", "%58", "%5A", "%5a", "%4A", "%4a"] {
        text = text.replace(encoded, "%61");
    }
    text
}

/// All that anybody can read who gets the result of parsing this text.
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

/// What is shown, without the place of a login, is a URL, and is shown the same again.
fn same_again(text: &str, display: &str) {
    let place = display.replacen(&format!("{HIDDEN}@"), "", 1);
    // Options that are not shown cannot be read again.
    if place.contains(HIDDEN) {
        return;
    }
    match place.parse::<BackendUrl>() {
        Ok(again) => assert_eq!(again.to_string(), place, "{text:?}"),
        Err(error) => panic!("{text:?} is a URL, and what is shown of it is none: {error}"),
    }
}
