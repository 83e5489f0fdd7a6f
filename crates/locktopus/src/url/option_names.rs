//! The names of the options, and the error for an unknown name.

use super::shown::UrlFault;

/// The option that holds a password.
pub(super) const SECRET_OPTION: &str = "sentinel_password";

/// Whether messages hide the value of this option. A `key` is the path of a file here, but a
/// password in other libraries.
pub(super) fn is_hidden(name: &str) -> bool {
    [SECRET_OPTION, "key", "sentinel_key"].contains(&name)
}

pub(super) const OPTIONS: [&str; 32] = [
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
    SECRET_OPTION,
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

/// Whether this unknown name is a plain word that cannot be a piece of a password: no secret comes
/// before it, and no sign in the options hints at one, such as the `@` behind a login.
pub(super) fn is_plain_name(name: &str, query: &str, before: &[&str]) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c == '_';
    (1..=24).contains(&name.len())
        && name.chars().all(plain)
        && !query.contains(|c: char| c.is_control() || ",;#@".contains(c))
        && !before.iter().any(|known| is_hidden(known))
}

/// The error for an unknown option that follows these. It suggests a similar known option. Without
/// `shows`, it does not quote the text itself, which may be a piece of a password.
pub(super) fn unknown(name: &str, before: &[&str], shows: bool) -> UrlFault {
    let part = match shows {
        true => format!("option {name:?}"),
        false => format!("option number {}", before.len() + 1),
    };
    let name = name.to_ascii_lowercase();
    let begins = |known: &str| name.len() > 3 && known.starts_with(&name);
    let alike = |known: &&&str| begins(known) || edits(&name, known) * 3 <= known.len();
    let nearest = OPTIONS.iter().filter(alike);
    let nearest = nearest.min_by_key(|known| (!begins(known), edits(&name, known)));
    let meant = nearest.map(|known| format!(". Did you mean {known:?}?"));
    let meant = meant.unwrap_or_default();
    let hint = if before.contains(&SECRET_OPTION) {
        "if it belongs to the password, write & as %26"
    } else {
        "see the table of URL options"
    };
    UrlFault::new(part, format!("is unknown; {hint}{meant}"))
}

/// The edit distance: how many letters to change, add or remove to turn one word into the other.
fn edits(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, wanted) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(letter != wanted);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
