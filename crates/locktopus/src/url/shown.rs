//! The parts of a backend URL that messages show: those that were understood, and nothing else.
//!
//! A wrong URL can have a password anywhere. Connection strings of other libraries have it in the
//! middle, after a `,`, a `;` or a `#`. So this code does not search for one: the parser
//! [adds](RedactedUrl::add) each part once it has understood it, and [`HIDDEN`] stands for the
//! rest. An error ([`UrlFault`]) quotes only our own words and values that the parser understood.

use percent_encoding::percent_decode_str;

/// Stands for a part that is not shown.
pub(super) const HIDDEN: &str = "***";

/// The schemes of this crate, besides `memory`.
pub(crate) const SCHEMES: [&str; 15] = [
    "redis",
    "rediss",
    "valkey",
    "valkeys",
    "redis-sentinel",
    "rediss-sentinel",
    "valkey-sentinel",
    "valkeys-sentinel",
    "redis-cluster",
    "rediss-cluster",
    "valkey-cluster",
    "valkeys-cluster",
    "redis+unix",
    "valkey+unix",
    "unix",
];

/// The wrong part of a URL, and what is wrong with it. Neither quotes text of the URL that was not
/// understood.
#[derive(Debug)]
pub(crate) struct UrlFault {
    part: String,
    problem: String,
}

impl UrlFault {
    pub(super) fn new(part: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            part: part.into(),
            problem: problem.into(),
        }
    }
}

/// A URL as far as it was understood, without its login and its secrets.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct RedactedUrl {
    text: String,
    /// Whether the whole URL was understood.
    whole: bool,
}

impl RedactedUrl {
    /// Adds a part that was understood and is not secret.
    pub(super) fn add(&mut self, part: &str) {
        self.text.push_str(part);
    }

    /// Adds the addresses after a login, and hides the login.
    pub(super) fn add_authority(&mut self, text: &str) {
        match text.rsplit_once('@') {
            Some((_, hosts)) => self.add(&format!("{HIDDEN}@{hosts}")),
            None => self.add(text),
        }
    }

    /// Marks the whole URL as understood.
    pub(super) fn finish(&mut self) {
        self.whole = true;
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn error(&self, fault: UrlFault) -> UrlError {
        let hides = self.whole || self.text.ends_with(HIDDEN);
        let rest = if hides { "" } else { HIDDEN };
        UrlError {
            url: format!("{}{rest}", self.text),
            part: fault.part,
            problem: fault.problem,
        }
    }
}

/// A backend URL that cannot be used. Nothing was connected.
///
/// ```
/// # #[tokio::main] async fn main() {
/// use locktopus::{ConnectError, url::UrlError};
/// match locktopus::connect("memory:?renewed_lease=soon").await {
///     Err(ConnectError::Url(UrlError { part, problem, .. })) => println!("{part} {problem}"),
///     other => panic!("{other:?}"),
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bad backend URL {url:?}: {part} {problem}")]
#[non_exhaustive]
pub struct UrlError {
    /// The URL as far as it was understood, without login and secrets; the rest is `***`.
    pub url: String,
    /// The wrong part.
    pub part: String,
    /// What is wrong with it, and what to write instead.
    pub problem: String,
}

/// Whether a raw text can be a name or a value. Other libraries write a password after one of these
/// signs.
pub(super) fn is_legible(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() || ",;#=@".contains(c))
}

/// Refuses a part with a sign that other libraries write before a password.
pub(super) fn legible(text: &str, part: impl Into<String>) -> Result<(), UrlFault> {
    if is_legible(text) {
        return Ok(());
    }
    let problem = "has one of , ; # = @ or a control character in it; if that is meant, write %2C %3B %23 %3D %40. Options \
                   are written behind ? and joined by &, and a password is written redis://USER:PASSWORD@HOST";
    Err(UrlFault::new(part, problem))
}

/// Undoes percent-encoding. A `+` stays a `+`. The value itself never goes into an error: it may be
/// a password.
pub(super) fn decode(text: &str, what: &str) -> Result<String, UrlFault> {
    percent_decode_str(text)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| UrlFault::new(format!("the {what}"), "is not UTF-8 when percent-decoded"))
}

#[cfg(test)]
mod tests;
