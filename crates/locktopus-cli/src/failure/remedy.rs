//! Errors of connecting: the fact once, and what to do about it.

use std::error::Error;

/// A part of the reason, a shorter fact unless the reason is short itself, and the remedy.
const REMEDIES: [(&str, Option<&str>, &str); 10] = [
    (
        "NOAUTH",
        Some("the server requires a login (NOAUTH)"),
        "put it into the URL: redis://USER:PASSWORD@HOST",
    ),
    (
        "WRONGPASS",
        None,
        "check the user and the password in the URL",
    ),
    (
        "cluster support disabled",
        Some("this server is not part of a cluster"),
        "use redis:// or redis-sentinel://",
    ),
    (
        "onnection refused",
        None,
        "check the address, and that the server is running",
    ),
    (
        "No such file",
        None,
        "check the path, and that the server is running",
    ),
    ("lookup address", None, "check the host name"),
    ("no address", None, "check the host name"),
    (
        "certificate",
        None,
        "name its authority with ca=FILE in the URL",
    ),
    ("within", None, SILENT),
    ("timed out", None, SILENT),
];

const SILENT: &str = "check the address, use rediss:// if and only if the server has TLS, or raise connect_timeout= in the URL";

/// Says that the servers of this URL cannot be reached. Client libraries repeat the address in
/// front of the reason.
pub(super) fn unreachable(url: &str, source: &dyn Error) -> String {
    let text = super::chain(source);
    let reason = text
        .strip_prefix("cannot connect to ")
        .and_then(|rest| rest.split_once(": "))
        .map_or(&*text, |(_, reason)| reason);
    let known = REMEDIES.iter().find(|(part, ..)| reason.contains(part));
    match known {
        Some((_, fact, remedy)) => {
            let fact = fact.unwrap_or(reason).trim_end_matches('.');
            format!("cannot connect to {url}: {fact}; {remedy}")
        }
        None => format!("cannot connect to {url}: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fact_comes_once_and_the_remedy_last() {
        for (source, said) in [
            (
                "cannot connect to the server h:1: Connection refused (os error 111)",
                "cannot connect to URL: Connection refused (os error 111); check the address, and that the server is running",
            ),
            (
                "cannot connect to the primary \"m\" through sentinels h:1: h:1: Connection refused (os error 111)",
                "cannot connect to URL: h:1: Connection refused (os error 111); check the address, and that the server is running",
            ),
            (
                "cannot connect to h:1: NOAUTH HELLO must be called with the client already authenticated",
                "cannot connect to URL: the server requires a login (NOAUTH); put it into the URL: redis://USER:PASSWORD@HOST",
            ),
            (
                "cannot connect to h:1: WRONGPASS invalid username-password pair or user is disabled.",
                "cannot connect to URL: WRONGPASS invalid username-password pair or user is disabled; check the user and the \
                 password in the URL",
            ),
            ("something else", "cannot connect to URL: something else"),
        ] {
            let source = std::io::Error::other(source);
            assert_eq!(unreachable("URL", &source), said);
        }
    }
}
