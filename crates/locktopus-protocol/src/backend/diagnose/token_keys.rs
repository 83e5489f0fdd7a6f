//! How much of a server's memory the last fencing tokens of unused names take.
//!
//! Every name leaves a token key for the retention time. If a server evicts nothing, names used
//! once (one per request, say) fill its memory. A sample shows this early enough.

use std::fmt::Write as _;
use std::time::Duration;

use locktopus_contract::{BackendError, Finding, Severity};
use tokio::time::Instant;

use super::ask::{ask_all, finding};
use crate::backend::context::Context;
use crate::client::Reply;

/// The prefix of a token key's name.
const TOKEN_KEY: &[u8] = b"redisson_lock_token:";
/// How many keys a server examines for the sample. Keys come in hash order, so the first ones are
/// as good as any.
const SAMPLE: &str = "1000";
/// A smaller sample is not representative.
const LEAST_SAMPLE: usize = 100;
/// Fewer token keys (about 18 MB) are not reported.
const MANY: u64 = 100_000;
/// Bytes of a token key with a name of average length, including its entries in the tables
/// (measured in docs/memory.md of the repository).
const BYTES: u64 = 180;

/// The memory of a server, from `INFO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// All keys of the database. Servers with several databases are not sampled.
    keys: u64,
    /// 0: no limit.
    limit: u64,
}

impl Room {
    pub(super) fn from_info<'a>(
        text: &'a str,
        field: impl Fn(&str) -> Option<&'a str>,
    ) -> Option<Self> {
        let limit = field("maxmemory").and_then(|limit| limit.parse().ok())?;
        let mut databases = text
            .lines()
            .filter_map(|line| line.strip_prefix("db")?.split_once(":keys="));
        let (_, counts) = databases.next()?;
        let keys = counts.split(',').next()?.parse().ok()?;
        databases.next().is_none().then_some(Self { keys, limit })
    }
}

/// Samples the servers that have enough keys. Without the right to `SCAN` it reports nothing.
pub(super) async fn check(
    context: &Context,
    rooms: &[(String, Room)],
    deadline: Instant,
) -> Result<Vec<Finding>, BackendError> {
    if rooms.iter().all(|(_, room)| room.keys < MANY) {
        return Ok(Vec::new());
    }
    let answers = ask_all(
        &context.executor,
        &[b"SCAN", b"0", b"COUNT", SAMPLE.as_bytes()],
        deadline,
    )
    .await?;
    let kept = context.token_retention();
    let findings = answers.iter().filter_map(|(node, answer)| {
        let (_, room) = rooms.iter().find(|(other, _)| other == node)?;
        let (tokens, seen) = sampled(answer.as_ref().ok()?)?;
        advice(node, *room, (tokens, seen), kept)
    });
    Ok(findings.collect())
}

/// The number of token keys, and the number of keys seen.
fn sampled(reply: &Reply) -> Option<(usize, usize)> {
    let [_, Reply::Array(keys)] = reply.items()? else {
        return None;
    };
    let is_token = |key: &&Reply| matches!(key, Reply::Bytes(name) if name.starts_with(TOKEN_KEY));
    Some((keys.iter().filter(is_token).count(), keys.len()))
}

fn advice(
    node: &str,
    room: Room,
    (tokens, seen): (usize, usize),
    kept: Option<Duration>,
) -> Option<Finding> {
    if seen < LEAST_SAMPLE {
        return None;
    }
    let share = |part: u64| part.saturating_mul(tokens as u64) / seen as u64;
    let count = share(room.keys);
    if count < MANY {
        return None;
    }
    let bytes = count * BYTES;
    let mut message = format!(
        "{node}: about {} thousand keys ({} MB) are the last fencing tokens of names, each kept ",
        count / 1_000,
        bytes / 1_000_000
    );
    let _ = match kept {
        Some(kept) => write!(
            message,
            "for {} minutes after its last grant",
            kept.as_secs() / 60
        ),
        None => write!(message, "for ever"),
    };
    message.push_str(
        "; where names are used once, such as one for each request, ask for a shorter token_retention, or the server \
         will be full one day and refuse locks",
    );
    let tight = room.limit != 0 && bytes > room.limit / 10;
    let severity = if tight || count >= MANY * 10 {
        Severity::Warning
    } else {
        Severity::Note
    };
    Some(finding(severity, "token retention", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(keys: u64, limit: u64) -> Room {
        Room { keys, limit }
    }

    const DAY: Option<Duration> = Some(Duration::from_secs(24 * 60 * 60));

    #[test]
    fn the_sample_is_scaled_up() {
        let half = advice("n", room(400_000, 0), (500, 1_000), DAY).unwrap();
        assert_eq!(half.severity, Severity::Note);
        assert!(
            half.message.contains("about 200 thousand keys (36 MB)"),
            "{half}"
        );
        assert!(half.message.contains("for 1440 minutes"), "{half}");
        for (room, sample) in [
            (room(400_000, 0), (100, 1_000)),
            (room(50_000, 0), (1_000, 1_000)),
            (room(400_000, 0), (50, 50)),
        ] {
            assert_eq!(advice("n", room, sample, DAY), None, "{room:?} {sample:?}");
        }
    }

    #[test]
    fn little_memory_makes_it_a_warning() {
        for (room, kept) in [
            (room(200_000, 200_000_000), DAY),
            (room(2_000_000, 0), None),
        ] {
            let found = advice("n", room, (1_000, 1_000), kept).unwrap();
            assert_eq!(found.severity, Severity::Warning, "{found}");
        }
    }

    #[test]
    fn one_database_is_looked_at() {
        let info =
            |more: &str| format!("maxmemory:100\r\n# Keyspace\r\ndb0:keys=7,expires=1\r\n{more}");
        let of = |text: &str| {
            let field = |name: &str| (name == "maxmemory").then_some("100");
            Room::from_info(text, field)
        };
        assert_eq!(of(&info("")), Some(room(7, 100)));
        assert_eq!(of(&info("db3:keys=1,expires=0\r\n")), None);
        assert_eq!(of("maxmemory:100\r\n"), None);
    }
}
