//! Errors of connecting: the fact once, and what to do about it.

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

/// Adds what to do to the library's error about servers that cannot be reached.
pub(super) fn unreachable(url: &str, error: &str) -> String {
    let before = format!("cannot connect to {url}: ");
    let reason = error.strip_prefix(&before).unwrap_or(error);
    match REMEDIES.iter().find(|(part, ..)| reason.contains(part)) {
        Some((_, fact, remedy)) => {
            let fact = fact.unwrap_or(reason).trim_end_matches('.');
            format!("{before}{fact}; {remedy}")
        }
        None => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fact_comes_once_and_the_remedy_last() {
        for (reason, said) in [
            (
                "h:1: Connection refused (os error 111)",
                "h:1: Connection refused (os error 111); check the address, and that the server is running",
            ),
            (
                "NOAUTH HELLO must be called with the client already authenticated",
                "the server requires a login (NOAUTH); put it into the URL: redis://USER:PASSWORD@HOST",
            ),
            (
                "WRONGPASS invalid username-password pair or user is disabled.",
                "WRONGPASS invalid username-password pair or user is disabled; check the user and the password in the URL",
            ),
            ("something else", "something else"),
        ] {
            let error = format!("cannot connect to URL: {reason}");
            assert_eq!(
                unreachable("URL", &error),
                format!("cannot connect to URL: {said}")
            );
        }
    }
}
