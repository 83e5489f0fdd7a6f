//! Whether the locks share a database with other data, such as a cache.
//!
//! A cache gets emptied (`FLUSHDB`), or its server evicts keys when full, and locks among its keys
//! go too. A lock may also have the name of a cache key. A sample shows whether the database has
//! other keys.

use futures_util::future::join_all;
use locktopus_contract::{BackendError, Finding, FoundLock, LockKind, Severity};
use tokio::time::{Instant, timeout_at};

use super::ask::{ask_all, finding};
use super::info::UNCHECKED;
use crate::backend::context::Context;
use crate::backend::directory::classify;
use crate::client::{ClientError, Reply, Route};
use crate::layout::slot::key_slot;

/// The name of this check.
const CHECK: &str = "shared database";
/// How many keys a server examines for the sample.
const SAMPLE: &str = "200";
/// How many keys of the sample are checked for being locks.
const ASKED: usize = 8;
/// Part of the name of every reader's expiry key.
const READERS_EXPIRY: &[u8] = b":rwlock_timeout:";
/// The end of the name of the permits of a permit semaphore.
const PERMITS_EXPIRY: &[u8] = b"}:timeout";
/// The prefixes of the keys beside a lock.
const BESIDE: [&[u8]; 2] = [b"redisson_", b"locktopus_"];

/// Samples every primary. `evicting` are the servers that evict keys when they are full.
pub(super) async fn check(
    context: &Context,
    evicting: &[String],
    deadline: Instant,
) -> Result<Vec<Finding>, BackendError> {
    let scan: [&[u8]; 4] = [b"SCAN", b"0", b"COUNT", SAMPLE.as_bytes()];
    let answers = ask_all(&context.executor, &scan, deadline).await?;
    let namespace = context.options.probe_prefix.as_str();
    let mut found = Vec::new();
    for (node, answer) in &answers {
        if let Err(error @ ClientError::Rejected { .. }) = answer {
            let error: String = error.to_string().chars().take(100).collect();
            let message = format!(
                "{node}: SCAN is refused ({error}), so it could not be checked whether other keys are in the database"
            );
            found.push(finding(Severity::Note, UNCHECKED, message));
        }
        let parts = answer.as_ref().ok().and_then(Reply::items);
        let Some([_, Reply::Array(keys)]) = parts else {
            continue;
        };
        let keys = keys.iter().filter_map(|key| match key {
            Reply::Bytes(key) => Some(&key[..]),
            _ => None,
        });
        let candidates = keys.filter(|key| !is_of_a_lock(namespace, key));
        let asked = candidates
            .take(ASKED)
            .map(|key| stands_alone(context, key, deadline));
        let alone: Vec<_> = join_all(asked).await.into_iter().flatten().collect();
        let names = alone.iter().filter_map(|key| std::str::from_utf8(key).ok());
        let names = names.map(str::to_owned).collect();
        let locks = classify(context, names, deadline).await.unwrap_or_default();
        // A mutex that stands alone may be ours.
        let shares = |lock: &&FoundLock| !matches!(lock.kind, LockKind::Mutex(_));
        let locks: Vec<_> = locks.iter().filter(shares).collect();
        let is_lock = |key: &&[u8]| locks.iter().any(|lock| lock.name.as_bytes() == *key);
        let (theirs, others): (Vec<_>, Vec<_>) = alone.into_iter().partition(is_lock);
        found.extend(theirs.first().map(|key| shared(node, key, namespace)));
        let (shares, evicts) = (!theirs.is_empty(), evicting.contains(node));
        found.extend(
            others
                .first()
                .map(|key| advice(node, key, namespace, evicts, shares)),
        );
    }
    Ok(found)
}

/// Whether a key's name says that it belongs to a lock.
fn is_of_a_lock(namespace: &str, key: &[u8]) -> bool {
    let beside = BESIDE.iter().any(|prefix| key.starts_with(prefix));
    let permits = key.starts_with(b"{") && key.ends_with(PERMITS_EXPIRY);
    // Other libraries' mutexes have the namespace after a prefix.
    beside
        || permits
        || has(key, READERS_EXPIRY)
        || !namespace.is_empty() && has(key, namespace.as_bytes())
}

fn has(key: &[u8], part: &[u8]) -> bool {
    key.windows(part.len()).any(|window| window == part)
}

/// The key, unless it has a token or the mark of a kind beside it, as every lock of ours has.
async fn stands_alone<'a>(context: &Context, key: &'a [u8], deadline: Instant) -> Option<&'a [u8]> {
    let tag = hash_tag(key);
    let braced = [b"{", tag, b"}"].concat();
    let whole = if tag == key { &braced[..] } else { key };
    let beside = [
        (b"redisson_lock_token:", whole),
        (b"redisson_lock_token:", &braced),
    ]
    .map(|(prefix, name)| [&prefix[..], name].concat());
    let marks = [whole, &braced].map(|name| [&b"locktopus_kind:"[..], name].concat());
    let question: [&[u8]; 5] = [b"EXISTS", &beside[0], &beside[1], &marks[0], &marks[1]];
    // A read-write lock that only readers hold has no token.
    let shared: [&[u8]; 3] = [b"HEXISTS", key, b"mode"];
    let ask = async |question: &[&[u8]]| {
        let route = Route::Slot(key_slot(key));
        let answer = context.executor.client().command(route, question);
        timeout_at(deadline, answer).await.ok()
    };
    let nothing_beside = matches!(ask(&question).await, Some(Ok(Reply::Int(0))));
    let alone = nothing_beside && !matches!(ask(&shared).await, Some(Ok(Reply::Int(1))));
    alone.then_some(key)
}

/// The text in the first braces, or the whole key if it has none.
fn hash_tag(key: &[u8]) -> &[u8] {
    let position = |bytes: &[u8], brace| bytes.iter().position(|byte| *byte == brace);
    let inside = position(key, b'{').map(|open| &key[open + 1..]);
    let tag = inside.and_then(|rest| Some(&rest[..position(rest, b'}')?]));
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

fn shown(key: &[u8]) -> String {
    String::from_utf8_lossy(key).chars().take(40).collect()
}

/// Another library, such as Redisson, holds locks in the same layout.
fn shared(node: &str, key: &[u8], namespace: &str) -> Finding {
    let shown = shown(key);
    let advice = match namespace.is_empty() {
        true => "keep the namespace empty while you share them".to_owned(),
        false => format!("locks named in the namespace {namespace:?} are not shared with it"),
    };
    let message = format!(
        "{node}: another library on the same wire layout holds locks, such as {shown:?}; {advice}"
    );
    finding(Severity::Note, CHECK, message)
}

/// `shares`: another library holds locks in the same layout.
fn advice(node: &str, key: &[u8], namespace: &str, evicting: bool, shares: bool) -> Finding {
    let shown = shown(key);
    let start =
        format!("{node}: the database has keys that are no locks of ours, such as {shown:?}");
    let apart = "give locks a server of their own";
    let (severity, message) = match (evicting, namespace.is_empty()) {
        (true, _) => (
            Severity::Danger,
            format!(
                "{start}, on a server that evicts keys: it is used as a cache, and drops locks that are held when it is \
                 full; {apart}, with maxmemory-policy noeviction"
            ),
        ),
        (false, true) => (
            Severity::Warning,
            format!(
                "{start}, and locks have no namespace: a lock may be asked for by the name of such a key, and whoever empties \
                 the database ends all locks; {}{apart}",
                match shares {
                    true => "",
                    false => "set a namespace (unless you share locks with Java), or better ",
                }
            ),
        ),
        (false, false) => (
            Severity::Note,
            format!("{start}: whoever empties the database ends all locks; better {apart}"),
        ),
    };
    finding(severity, CHECK, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_locks_are_known_by_their_names() {
        for (namespace, key, of_a_lock) in [
            ("shop:", "shop:order", true),
            ("shop:", "{shop:order}:timeout", true),
            ("shop:", "lock:shop:order", true),
            ("shop:", "redisson_lock_token:{other:order}", true),
            ("shop:", "x{other}:owner:rwlock_timeout:1", true),
            ("shop:", "user:1", false),
            ("shop:", "", false),
            ("", "locktopus_kind:{a}", true),
            ("", "{a}:timeout", true),
            ("", "a", false),
        ] {
            let found = is_of_a_lock(namespace, key.as_bytes());
            assert_eq!(found, of_a_lock, "{namespace} {key}");
        }
    }

    #[test]
    fn a_name_in_braces_is_found() {
        for (key, tag) in [
            ("a", "a"),
            ("{a}:timeout", "a"),
            ("{}a", "{}a"),
            ("{a", "{a"),
            ("x{a}{b}", "a"),
        ] {
            assert_eq!(hash_tag(key.as_bytes()), tag.as_bytes(), "{key}");
        }
    }

    #[test]
    fn a_cache_is_worse_than_a_neighbour() {
        for (evicting, namespace, shares, severity, said) in [
            (true, "", false, Severity::Danger, "noeviction"),
            (true, "shop:", false, Severity::Danger, "noeviction"),
            (false, "", false, Severity::Warning, "set a namespace"),
            (
                false,
                "",
                true,
                Severity::Warning,
                "locks; give locks a server",
            ),
            (false, "shop:", false, Severity::Note, "empties"),
        ] {
            let found = advice("n:1", b"user:1", namespace, evicting, shares);
            assert_eq!(found.severity, severity, "{found}");
            assert!(found.message.contains(said) && found.message.contains("user:1"));
        }
    }
}
