//! Finds what is left on the servers after all workers have released everything.

use std::collections::HashSet;
use std::time::Duration;

use locktopus::LockKind;
use locktopus_history::Leftovers;
use locktopus_servers::topology::{Deployment, Node, Resp, Role, TopologyError};
use tokio::time::Instant;

use super::{RunError, load};
use crate::failover::plan::Cell;

/// Polling interval.
const LOOK: Duration = Duration::from_millis(200);
/// Waiters that died stay in the queue for three heartbeats.
const SLACK: Duration = Duration::from_secs(8);

/// Waits until everything with a reachable time to live is gone, and returns what is left even
/// then.
pub(super) async fn look(
    cell: &Cell,
    place: &Deployment,
    prefix: &str,
) -> Result<Leftovers, RunError> {
    let end = Instant::now() + cell.longest_lease() + SLACK;
    loop {
        let left = once(cell, place, prefix).await?;
        if left.count() == 0 || Instant::now() >= end {
            return Ok(left);
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn once(cell: &Cell, place: &Deployment, prefix: &str) -> Result<Leftovers, RunError> {
    let mut left = Leftovers::default();
    let to_stay = meant_to_stay(cell, prefix);
    let groups = cell.scenario.groups.iter();
    let locks: HashSet<String> = groups.flat_map(|group| group.lock_names(prefix)).collect();
    for node in place.nodes() {
        if node.role().await? != Role::Primary {
            continue;
        }
        for key in keys(node, prefix).await? {
            if to_stay.contains(&key) || is_by_design(&key) || is_over(node, &key).await? {
                continue;
            }
            // The locks themselves must be gone by now. Keys that go with them may stay until they
            // expire.
            if !locks.contains(&key) && number(node, &["PTTL", &key]).await? != -1 {
                continue;
            }
            let queue = [
                "locktopus_queue",
                "locktopus_waiters",
                "redisson_lock_queue",
            ];
            let list = if queue.iter().any(|name| key.starts_with(name)) {
                &mut left.waiters
            } else {
                &mut left.keys
            };
            list.push(format!("{key} on {}", node.name()));
        }
    }
    Ok(left)
}

/// The permits of a semaphore are its state. They stay until a user deletes them, and so does the
/// key that marks their kind.
fn meant_to_stay(cell: &Cell, prefix: &str) -> HashSet<String> {
    let names = semaphores(cell, prefix);
    names
        .flat_map(|name| [format!("locktopus_kind:{{{name}}}"), name])
        .collect()
}

fn semaphores(cell: &Cell, prefix: &str) -> impl Iterator<Item = String> {
    let groups = cell.scenario.groups.iter();
    groups
        .filter(|group| group.kind == LockKind::Semaphore)
        .flat_map(|group| group.lock_names(prefix))
}

/// Counters of tokens outlive their locks, so that tokens keep growing. The queue of a fair lock is
/// Redisson's, which gives it no expiry: the next waiter to arrive removes dead ones. The keys of
/// the load are not locks.
fn is_by_design(key: &str) -> bool {
    let kept = [
        "redisson_lock_token:",
        "redisson_lock_queue:",
        "redisson_lock_timeout:",
    ];
    kept.iter().any(|prefix| key.starts_with(prefix))
        || key.ends_with(":count")
        || key.contains(load::NAME)
}

/// Whether this is the list of a semaphore's permit holders, and all their leases have expired.
/// Their permits return at the next visit, which no worker makes any more.
async fn is_over(node: &Node, key: &str) -> Result<bool, TopologyError> {
    if !key.starts_with("locktopus_holders:")
        || node.command(&["TYPE", key]).await?.text() != "zset"
    {
        return Ok(false);
    }
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let now = since.as_millis().to_string();
    Ok(number(node, &["ZCOUNT", key, &now, "+inf"]).await? == 0)
}

async fn number(node: &Node, command: &[&str]) -> Result<i64, TopologyError> {
    match node.command(command).await? {
        Resp::Int(number) => Ok(number),
        odd => Err(TopologyError::odd(node.name(), command[0], &odd)),
    }
}

async fn keys(node: &Node, prefix: &str) -> Result<Vec<String>, TopologyError> {
    let pattern = format!("*{prefix}*");
    let ask = async |cursor: &str| {
        node.command(&["SCAN", cursor, "MATCH", &pattern, "COUNT", "1000"])
            .await
    };
    every_page(node.name(), ask).await
}

/// A reply that cannot be parsed is an error: ending here would count the unseen keys as gone.
async fn every_page(
    node: &str,
    ask: impl AsyncFn(&str) -> Result<Resp, TopologyError>,
) -> Result<Vec<String>, TopologyError> {
    let mut cursor = "0".to_owned();
    let mut keys = Vec::new();
    loop {
        let reply = ask(&cursor).await?;
        let page = page(&reply).ok_or_else(|| TopologyError::odd(node, "SCAN", &reply))?;
        cursor = page.0;
        keys.extend(page.1);
        if cursor == "0" {
            return Ok(keys);
        }
    }
}

/// The start of the next page, and the keys of this one.
fn page(reply: &Resp) -> Option<(String, Vec<String>)> {
    let [next @ Resp::Bulk(_), Resp::Array(keys)] = reply.items() else {
        return None;
    };
    let keys = keys.iter().map(|key| match key {
        Resp::Bulk(_) => Some(key.text()),
        _ => None,
    });
    Some((next.text(), keys.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Resp {
        Resp::Bulk(text.into())
    }

    fn page_of(next: &str, keys: &[&str]) -> Resp {
        let keys = keys.iter().map(|key| bulk(key)).collect();
        Resp::Array(vec![bulk(next), Resp::Array(keys)])
    }

    /// Two pages; the second is given.
    async fn seen(second: &Resp) -> Result<Vec<String>, TopologyError> {
        let ask = async |cursor: &str| {
            Ok(match cursor {
                "0" => page_of("7", &["a", "b"]),
                "7" => second.clone(),
                other => panic!("nobody said {other}"),
            })
        };
        every_page("node-3", ask).await
    }

    #[tokio::test]
    async fn what_is_no_page_is_an_error_that_names_it() {
        assert_eq!(seen(&page_of("0", &["c"])).await.unwrap(), ["a", "b", "c"]);
        for odd in [
            Resp::Nil,
            bulk("0"),
            Resp::Array(vec![bulk("0")]),
            Resp::Array(vec![bulk("0"), bulk("c")]),
            Resp::Array(vec![Resp::Nil, Resp::Array(Vec::new())]),
            Resp::Array(vec![bulk("0"), Resp::Array(vec![Resp::Nil])]),
        ] {
            let error = seen(&odd).await.unwrap_err().to_string();
            let named = format!("{odd:?}");
            assert!(error.contains("node-3 answered SCAN"), "{error}");
            assert!(error.contains(&named), "{named}: {error}");
        }
    }
}
