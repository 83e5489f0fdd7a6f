//! Properties of every text that might be taken for a backend URL.
//!
//! The generators produce what people write and mistype: passwords of any characters wherever one
//! can occur, in URLs that are right, wrong in one place, or not URLs at all.

mod foreign;

use std::fmt::Write as _;
use std::time::Duration;

use locktopus_core::SafetyMode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;
use proptest::sample::select;

use super::options::{LONGEST_LEASE, LONGEST_WAIT};
use super::{BackendUrl, Endpoint};

/// Characters that occur in no message, so a piece of a password with two of them proves a leak.
const TELLTALES: &str = "QXZJЖ漢ß";

/// All characters with a meaning in a URL, and some that should have none.
const SPECIAL: &str = "/?#@:&=%+;,[]()!*'\"\\<>{}|^~$` \t\n\u{0}-._017aefs";

const TOKENS: [&str; 38] = [
    "://",
    "redis",
    "rediss",
    "valkey",
    "-sentinel",
    "-cluster",
    "+unix",
    "unix",
    "db",
    "sentinel_ca",
    "memory:",
    "user",
    ":",
    "@",
    "/",
    "?",
    "&",
    "=",
    "%",
    "%4",
    "%40",
    "%FF",
    "+",
    ",",
    "[::1]",
    "host",
    ":6379",
    "0",
    "18446744073709551616",
    "100000000000y",
    "1ns",
    "-1",
    "forever",
    "timeout",
    "token_retention",
    "sentinel_password",
    "client",
    "漢",
];

fn password() -> impl Strategy<Value = String> {
    let telltale = select(TELLTALES.chars().collect::<Vec<_>>());
    let special = select(SPECIAL.chars().collect::<Vec<_>>());
    let word = select(
        &[
            "pass",
            "&pass=",
            "://",
            "redis://",
            "***",
            "?timeout=1s&",
            "&renewed_lease=",
            "%2F",
            ":1/",
            "@h/",
        ][..],
    );
    let part = prop_oneof![
        8 => telltale.prop_map(String::from),
        5 => special.prop_map(String::from),
        1 => word.prop_map(String::from),
    ];
    prop::collection::vec(part, 1..14).prop_map(|parts| parts.concat())
}

/// A URL with a password in it, and the secrets: the password as it is and as it was written.
pub(crate) fn url_with_password() -> impl Strategy<Value = (String, Vec<String>)> {
    let start = select(
        &[
            "redis://",
            "rediss://",
            "valkey://",
            "redis-sentinel://",
            "rediss-cluster://",
            "http://",
            "",
            "redis:",
            "redis:/",
            "redis//",
            "redis+unix://",
            "unix://",
            "memory:",
            "://",
        ][..],
    );
    let before = select(&["", "app:", ":", "app", "a%40b:", "app:1/", "app:1?"][..]);
    let place = select(
        &[
            "h", "h:1", "h:port", "a,b:2", "[::1]:7", "[::1", "::1", "", "h h",
        ][..],
    );
    let path = select(
        &[
            "",
            "/",
            "/0",
            "/mymaster",
            "/mymaster/4294967296",
            "/x",
            "/m/x/y",
        ][..],
    );
    let other = select(
        &[
            "",
            "timeout=5s",
            "timeout=soon",
            "timeot=1s",
            "client=fred&checks=no",
            "ca=/x.pem",
            "sentinel_ca=/x.pem",
            "cert=/x.pem",
            "sentinel_cert=/x.pem",
            "tls_server_name=x",
            "db=3",
            "names=escaped",
            "client_name=a@b",
            "&&",
            "=",
            "timeout",
            "safety=quarantine&renewed_lease=1h",
        ][..],
    );
    let option = select(
        &[
            "key",
            "sentinel_key",
            "sentinel_password",
            "sentinel_pass",
            "password",
            "Sentinel_Password",
            "PASSWD",
            "sentinel%5Fpassword",
            "%70assword",
            "sentinel_%50ASS",
            "auth",
            "secret",
            "sentinel_pwd",
            "credentials",
        ][..],
    );
    let joint = select(&["=", "=", "=", "", ":"][..]);
    let place_of_it = (start, before, place, path, any::<bool>());
    let options = (other.clone(), option, joint, other, 0..3u8);
    (password(), any::<bool>(), place_of_it, options).prop_map(
        |(
            password,
            encode,
            (start, before, place, path, forgotten),
            (first, option, joint, last, kind),
        )| {
            let encoded = utf8_percent_encode(&password, NON_ALPHANUMERIC).to_string();
            let written = if encode { &encoded } else { &password };
            let mut url = start.to_owned();
            // The place of the password: the login, an option, or both.
            if kind != 1 {
                // A user who forgets the host writes no `@`.
                let forgotten =
                    forgotten && kind == 0 && encode && start.len() > 3 && start.ends_with("://");
                let host = if forgotten { "" } else { "@" };
                let before = if host.is_empty() { ":" } else { before };
                let _ = write!(url, "{before}{written}{host}");
                if host.is_empty() {
                    return (url, vec![encoded.clone(), password]);
                }
            }
            let _ = write!(url, "{place}{path}");
            if kind != 0 {
                let _ = write!(url, "?{first}&{option}{joint}{written}&{last}");
            } else if !first.is_empty() {
                let _ = write!(url, "?{first}");
            }
            (url, vec![encoded.clone(), password])
        },
    )
}

/// Every text that the result of parsing shows.
fn shown(text: &str) -> String {
    match text.parse::<BackendUrl>() {
        Ok(url) => format!("{url} {url:?} {url:#?}"),
        Err(error) => {
            let super::UrlError { url, part, problem } = &error;
            format!("{error} {error:?} {error:#?} {url} {part} {problem}")
        }
    }
}

/// Pieces of a secret that prove a leak if they are seen: four characters, two of which occur in no
/// message.
pub(crate) fn pieces(secret: &str) -> impl Iterator<Item = String> {
    let chars: Vec<_> = secret.chars().collect();
    let all: Vec<String> = chars
        .windows(4)
        .map(|piece| piece.iter().collect())
        .collect();
    all.into_iter().filter(|piece| {
        // Percent-encoded, a non-ASCII telltale looks like any other character.
        piece.chars().filter(|c| TELLTALES.contains(*c)).count() >= 2
            || piece.contains("%D0")
            || piece.contains("%E6")
    })
}

fn hides(url: &str, secrets: &[String]) -> Result<(), TestCaseError> {
    let shown = shown(url);
    for piece in secrets.iter().flat_map(|secret| pieces(secret)) {
        prop_assert!(
            !shown.contains(&piece),
            "{url:?}: {piece:?} is shown in {shown}"
        );
    }
    Ok(())
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_message_shows_a_piece_of_a_password((url, secrets) in url_with_password()) {
        hides(&url, &secrets)?;
    }

    #[test]
    fn a_password_that_is_encoded_is_what_was_meant(password in password(), sentinel in password()) {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let (login, option) = (encode(&password), encode(&sentinel));
        let url = format!("redis-sentinel://app:{login}@h/m?sentinel_password={option}&timeout=1s");
        let url: BackendUrl = url.parse().map_err(|error| TestCaseError::fail(format!("{error}")))?;
        let Endpoint::Servers { authority, .. } = &url.endpoint else { panic!("no servers") };
        prop_assert_eq!(authority.password.as_ref(), Some(&password));
        prop_assert_eq!(url.options.sentinel_password.as_ref(), Some(&sentinel));
    }

    /// A raw password is taken literally, or the URL is refused. It never becomes another password
    /// or another host.
    #[test]
    fn a_raw_password_is_itself_or_refused(password in password()) {
        let password = password.replace('%', "");
        if let Ok(url) = format!("redis://app:{password}@h:7").parse::<BackendUrl>() {
            let Endpoint::Servers { authority, .. } = &url.endpoint else { panic!("no servers") };
            prop_assert_eq!(authority.password.as_ref(), Some(&password));
            prop_assert_eq!(&authority.hosts, &[("h".to_owned(), 7)]);
        }
    }

    /// An encoded socket path is decoded correctly, and next to a login it is neither host nor
    /// option.
    #[test]
    fn the_path_of_a_socket_is_what_was_meant(path in "/[^\0]{1,20}", password in password(), db in any::<u32>()) {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let (written, login) = (encode(&path).replacen("%2F", "/", 1), encode(&password));
        let url = format!("redis+unix://app:{login}@{written}?db={db}");
        let url: BackendUrl = url.parse().map_err(|error| TestCaseError::fail(format!("{error}")))?;
        let Endpoint::Servers { authority, .. } = &url.endpoint else { panic!("no servers") };
        prop_assert_eq!(&authority.hosts, &[(path, 0)]);
        prop_assert_eq!(authority.password.as_ref(), Some(&password));
        prop_assert_eq!(url.options.db, Some(db));
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        usable(&text);
    }

    #[test]
    fn no_sentence_of_its_words_makes_it_panic(words in prop::collection::vec(select(&TOKENS[..]), 0..16)) {
        usable(&words.concat());
    }

    #[test]
    fn no_number_makes_it_panic(
        number in prop_oneof![any::<u128>().prop_map(|n| n.to_string()), Just("9".repeat(40)), any::<f64>().prop_map(|f| f.to_string())],
        unit in select(&["", "ns", "us", "ms", "s", "m", "h", "d", "w", "M", "y", "years", "y 1s"][..]),
        name in select(&DURATIONS[..]),
    ) {
        let text = format!("redis-sentinel://h:1/m/0?safety={}&{name}={number}{unit}", mode_of(name));
        usable(&text);
        if let Err(error) = text.parse::<BackendUrl>() {
            prop_assert!(error.part.contains(name), "{text}: {error}");
        }
        for text in [format!("redis://h:{number}"), format!("redis://h/{number}")] {
            usable(&text);
        }
    }
}

const DURATIONS: [&str; 6] = [
    "timeout",
    "connect_timeout",
    "renewed_lease",
    "token_retention",
    "replication_timeout",
    "quarantine_max_lease",
];

fn mode_of(option: &str) -> &'static str {
    match option {
        "replication_timeout" => "replicated",
        "quarantine_max_lease" => "quarantine",
        _ => "plain",
    }
}

/// Parses, and computes with every duration like the code that connects.
fn usable(text: &str) {
    let Ok(url) = text.parse::<BackendUrl>() else {
        return;
    };
    let options = &url.options;
    for wait in [options.timeout, options.connect_timeout.unwrap_or_default()] {
        assert!(wait <= LONGEST_WAIT, "{url}");
        let _ = std::time::Instant::now() + wait * 4 + wait * 8;
    }
    let quarantine = match options.safety {
        SafetyMode::Quarantine { max_lease } => Some(max_lease),
        _ => None,
    };
    let leases = [
        options.renewed_lease,
        quarantine,
        options.token_retention.after_lease(Duration::ZERO),
    ];
    for lease in leases.into_iter().flatten() {
        assert!(lease <= LONGEST_LEASE, "{url}");
    }
    let _ = format!("{url} {url:?}");
}

/// URLs that caused trouble once, and that cover the grammar: unchanged, and with every slip of one
/// character.
#[test]
fn the_corpus_and_its_neighbours_never_panic_and_hide_their_secret() {
    let corpus = include_str!("properties/corpus.txt");
    for line in corpus
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
    {
        let secret = ["QXZJQXZJ".to_owned()];
        let check = |text: &str| {
            usable(text);
            hides(text, &secret).unwrap_or_else(|error| panic!("{error}"));
        };
        check(line);
        let places: Vec<_> = line
            .char_indices()
            .map(|(at, c)| (at, c.len_utf8()))
            .collect();
        for (at, width) in places {
            let (before, behind) = (&line[..at], &line[at + width..]);
            // Without the signs that make a text a secret, none is a secret.
            let is_a_sign = "@:=?&/pas".contains(&line[at..at + width]);
            if !is_a_sign {
                check(&format!("{before}{behind}"));
            }
            for slip in ["@", "/", "?", "&", "%", "+", ":", "#", " ", "漢"] {
                check(&format!("{before}{slip}{}", &line[at..]));
            }
        }
    }
}
