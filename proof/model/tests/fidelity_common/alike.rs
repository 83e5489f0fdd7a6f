//! Compares replies.

use locktopus_model::redis::Reply;

/// By how many milliseconds times may differ, since the two servers have two clocks. Any known
/// delay comes on top.
pub(crate) const SPARE: u64 = 2_000;

/// Whether two replies are the same, except for so many milliseconds between them.
pub(crate) fn alike(real: &Reply, modelled: &Reply, spare: u64) -> bool {
    match (real, modelled) {
        // The remaining milliseconds of an expiry.
        (Reply::Int(a), Reply::Int(b)) => {
            let expiry = (1_000..10_000_000_000).contains(a);
            a == b || (expiry && a.abs_diff(*b) < spare) || (*a > 0 && is_time(*a, *b, spare))
        }
        (Reply::Array(a), Reply::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b, spare))
        }
        (Reply::Error(a), Reply::Error(b)) => plain(a) == plain(b),
        _ => real == modelled,
    }
}

pub(crate) fn sorted(reply: &Reply) -> Reply {
    let Reply::Array(items) = reply else {
        return reply.clone();
    };
    let mut items: Vec<Reply> = items.iter().map(sorted).collect();
    items.sort_by_key(text);
    Reply::Array(items)
}

/// Absolute times in milliseconds.
fn is_time(a: i64, b: i64, spare: u64) -> bool {
    (1_000_000_000_000..10_000_000_000_000).contains(&a) && a.abs_diff(b) < spare
}

/// A server adds the place in the script to its error.
fn plain(error: &str) -> &str {
    error
        .split(" script: ")
        .next()
        .unwrap_or(error)
        .trim_end_matches(". ")
        .trim_end_matches('.')
}

/// A reply in one line.
pub(crate) fn text(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => format!("'{}'", bytes.escape_ascii()),
        Reply::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            format!("[{}]", items.join(", "))
        }
        other => format!("{other:?}"),
    }
}
