//! What may be shown of a backend URL, and the errors about it, which show nothing else.
//!
//! A URL is hidden by its raw text, before anybody tries to understand it: a wrong URL is where a password ends up in
//! the wrong place. So
//!
//! * everything up to the **last** `@` is a login, whatever stands in it, except a scheme that is known;
//! * options are shown up to the first one that is not known to be harmless, as a mistyped `sentinel_pasword` is not;
//!   everything behind its name may belong to a password, because a raw `&` in one looks like the next option;
//! * a port that is not a number may be a password whose `@HOST` was forgotten.
//!
//! And an error quotes a piece of a URL only if the redacted text shows that piece anyway ([`Redacted::quote`]).

use percent_encoding::percent_decode_str;

/// What an option whose `=` was forgotten is not shown for, whatever the case: the secret is a part of the name then.
const SECRETIVE: [&str; 5] = ["pass", "pwd", "secret", "auth", "cred"];

/// What stands for something that is not shown.
const HIDDEN: &str = "***";

/// The option whose name may be shown, and whose value may not.
const SECRET_OPTION: &str = "sentinel_password";

/// Options whose values may be shown.
const PLAIN_OPTIONS: [&str; 31] = [
    "client",
    "connect",
    "timeout",
    "connect_timeout",
    "pubsub",
    "checks",
    "router",
    "namespace",
    "names",
    "renewed_lease",
    "label",
    "label_host",
    "token_retention",
    "safety",
    "replicas",
    "replication_timeout",
    "quarantine_max_lease",
    "client_name",
    "sentinel_user",
    "ca",
    "cert",
    "key",
    "tls_server_name",
    "danger_accept_invalid_certs",
    "sentinel_tls",
    "sentinel_ca",
    "sentinel_cert",
    "sentinel_key",
    "sentinel_tls_server_name",
    "sentinel_danger_accept_invalid_certs",
    "db",
];

/// Schemes that may be shown in front of a hidden login; any other may be a part of it.
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

/// A URL without its login and without options that are secrets.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Redacted(String);

impl Redacted {
    pub(crate) fn new(text: &str) -> Self {
        // Compared as it will be parsed: `sentinel%5Fpassword` is a password too.
        let text = plain(text);
        let start = known_start(&text);
        Self::of(&text, start)
    }

    /// As [`new`](Self::new), for a URL of a connector. `start` is its scheme with `:` or `://`.
    pub(crate) fn with_start(text: &str, start: &str) -> Self {
        Self::of(&plain(text), start)
    }

    fn of(text: &str, start: &str) -> Self {
        let login_end = text.rfind('@').map_or(0, |at| at + 1);
        let mut shown = String::new();
        if login_end > 0 {
            shown.push_str(start);
            shown.push_str(HIDDEN);
            shown.push('@');
        }
        let hidden = hidden_from(text);
        // The last `@` may stand in a secret option, which then goes on behind it.
        if let Some(rest) = text.get(login_end..hidden.unwrap_or(text.len())) {
            // An `@` behind the `?` leaves the end of an option here.
            let options = options_of(text).map_or(rest.len(), |at| at.saturating_sub(login_end));
            let (place, options) = rest.split_at(options.min(rest.len()));
            shown.push_str(&without_odd_ports(place, start));
            shown.push_str(options);
        }
        if hidden.is_some() {
            shown.push_str(HIDDEN);
        }
        Self(shown)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The only way for a piece of a URL into an error.
    pub(crate) fn quote(&self, piece: &str) -> String {
        let piece = plain(piece);
        let shown = if self.0.contains(&piece) {
            &piece
        } else {
            HIDDEN
        };
        format!("{shown:?}")
    }

    /// As [`quote`](Self::quote), for `HOST:PORT`.
    pub(crate) fn quote_address(&self, address: &str) -> String {
        self.quote(&without_odd_port(&plain(address)))
    }

    /// Whether this is the quotation of something that is not shown.
    pub(crate) fn hides(&self, quoted: &str) -> bool {
        quoted == format!("{HIDDEN:?}")
    }

    pub(crate) fn error(&self, part: impl Into<String>, problem: impl Into<String>) -> UrlError {
        UrlError {
            url: self.0.clone(),
            part: part.into(),
            problem: problem.into(),
        }
    }
}

/// A backend URL that cannot be used. Nothing was connected.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
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
    /// The URL, without login and secrets.
    pub url: String,
    /// Which part of it is wrong.
    pub part: String,
    /// What is wrong with it, and what to write instead.
    pub problem: String,
}

/// The scheme in front of a login, if it certainly is one.
fn known_start(login: &str) -> &str {
    if login.starts_with("memory:") {
        return "memory:";
    }
    match login.split_once("://") {
        Some((scheme, _)) if SCHEMES.contains(&scheme) => &login[..scheme.len() + "://".len()],
        _ => "",
    }
}

/// Undoes the percent-encoding of what names are made of, and of nothing else.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        let digits = behind.get(..2).filter(|digits| digits.is_ascii());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let letter = byte.filter(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte));
        match letter {
            Some(letter) => {
                out.push(char::from(letter));
                rest = &behind[2..];
            }
            None => {
                out.push('%');
                rest = behind;
            }
        }
    }
    out + rest
}

/// Where the options begin.
fn options_of(text: &str) -> Option<usize> {
    text.find(['?', '&'])
}

/// Where the value begins of the first option that is not known to be harmless; where that option itself begins or ends,
/// if it has no value or no decent name.
fn hidden_from(text: &str) -> Option<usize> {
    let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut at = options_of(text)? + 1;
    for option in text[at..].split(['?', '&']) {
        let (name, value) = option
            .split_once('=')
            .map_or((option, None), |(n, v)| (n, Some(v)));
        if !name.is_empty() && !PLAIN_OPTIONS.contains(&name) {
            let small = name.to_ascii_lowercase();
            let secretive = SECRETIVE.iter();
            let secretive = secretive.filter_map(|word| Some(small.find(word)? + word.len()));
            let shown = match (value, secretive.min()) {
                _ if !name.chars().all(is_of_a_name) => 0,
                (Some(_), _) if name == SECRET_OPTION => name.len() + "=".len(),
                // Where a `=` was forgotten, the one that is there belongs to the secret.
                (Some(_), Some(end)) if end < name.len() => end,
                (Some(_), _) => name.len() + "=".len(),
                (None, Some(_)) => 0,
                (None, None) => name.len(),
            };
            return Some(at + shown);
        }
        at += option.len() + 1;
    }
    None
}

fn without_odd_ports(place: &str, start: &str) -> String {
    if place.starts_with("memory:") {
        return place.to_owned();
    }
    // A connector's URL may do without `//`.
    let begin = if !start.is_empty() && place.starts_with(start) {
        start.len()
    } else {
        place.find("://").map_or(0, |at| at + "://".len())
    };
    let (scheme, rest) = place.split_at(begin);
    let (hosts, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let hosts: Vec<_> = hosts.split(',').map(without_odd_port).collect();
    format!("{scheme}{}{path}", hosts.join(","))
}

fn without_odd_port(address: &str) -> String {
    let numeric = |c: char| c.is_ascii_hexdigit() || ":.[]".contains(c);
    let (host, port) = match address.find("]:") {
        Some(at) => address.split_at(at + 1),
        None => address.split_at(address.find(':').unwrap_or(address.len())),
    };
    let good = port.is_empty() || port[1..].chars().all(|c| c.is_ascii_digit());
    if good || address.chars().all(numeric) {
        address.to_owned()
    } else {
        format!("{host}:{HIDDEN}")
    }
}

/// Undoes percent-encoding. A `+` stays a `+`. The value itself never goes into an error: it may be a password.
pub(crate) fn decode(text: &str, what: &str, url: &Redacted) -> Result<String, UrlError> {
    percent_decode_str(text)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| url.error(format!("the {what}"), "is not UTF-8 when percent-decoded"))
}
