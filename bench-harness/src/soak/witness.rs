//! What this process and the server have at a moment.

use std::collections::BTreeSet;

use locktopus_servers::topology::{Node, Resp, TopologyError};
use serde::Serialize;

/// What this process has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Own {
    /// Open file descriptors.
    pub files: u64,
    /// Tasks of the runtime that have not ended.
    pub tasks: u64,
    /// Resident memory, in bytes.
    pub memory: u64,
}

impl Own {
    /// As it is now.
    pub(super) fn now() -> std::io::Result<Self> {
        // One of them is the directory itself.
        let files = std::fs::read_dir("/proc/self/fd")?.count() as u64;
        let tasks = tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks();
        let pages = std::fs::read_to_string("/proc/self/status")?;
        let resident = pages
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"))
            .and_then(|kilobytes| kilobytes.trim().parse::<u64>().ok());
        let resident = resident.ok_or_else(|| std::io::Error::other("no VmRSS of this process"))?;
        Ok(Self {
            files,
            tasks: tasks as u64,
            memory: resident * 1024,
        })
    }
}

/// The server's state after all clients have left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Keys that are not meant to stay.
    pub keys: BTreeSet<String>,
    /// Keys that are meant to stay until they expire: token counters, which outlive their locks so
    /// that tokens keep growing, and replies to attempts that may be repeated.
    pub kept: u64,
    /// Places in queues.
    pub waiters: u64,
    /// Channels with subscribers, including sharded ones.
    pub channels: u64,
    /// Patterns.
    pub patterns: u64,
    /// Connections, except the one that asks.
    pub connections: u64,
}

impl Left {
    /// Whether everything that must be gone is gone.
    pub(super) fn is_nothing(&self) -> bool {
        let counted = self.waiters + self.channels + self.patterns + self.connections;
        self.keys.is_empty() && counted == 0
    }
}

/// Keys that are meant to stay for a while, by name: token counters, and replies to attempts that
/// may be repeated.
const KEPT: [&str; 2] = ["redisson_lock_token:", "locktopus_done:"];
/// A page of the keys: all that are not meant to stay. Keys that are must expire.
const PAGE: &str = "\
local page = redis.call('SCAN', ARGV[1], 'COUNT', 5000)
local found, kept = {}, 0
for _, key in ipairs(page[2]) do
    local is_kept = false
    for at = 2, #ARGV do
        if string.sub(key, 1, #ARGV[at]) == ARGV[at] then is_kept = true end
    end
    if is_kept and redis.call('PTTL', key) > 0 then kept = kept + 1 else table.insert(found, key) end
end
return {page[1], kept, found}";
/// The queues of waiters.
const QUEUES: [&str; 4] = [
    "locktopus_queue",
    "locktopus_waiters",
    "redisson_lock_queue",
    "redisson_lock_timeout",
];

/// Inspects everything that the server has.
pub(super) async fn look(node: &Node) -> Result<Left, TopologyError> {
    let ask = async |words: &[&str]| node.command(words).await;
    look_by(node.name(), ask).await
}

/// A reply that cannot be parsed is an error: what was not seen would count as gone.
async fn look_by(
    node: &str,
    ask: impl AsyncFn(&[&str]) -> Result<Resp, TopologyError>,
) -> Result<Left, TopologyError> {
    let mut left = Left::default();
    let mut cursor = "0".to_owned();
    let [first, second] = KEPT;
    loop {
        let reply = ask(&["EVAL", PAGE, "0", &cursor, first, second]).await?;
        let [next @ Resp::Bulk(_), Resp::Int(kept), Resp::Array(keys)] = reply.items() else {
            return Err(TopologyError::odd(node, "SCAN", &reply));
        };
        left.kept += kept.unsigned_abs();
        for key in keys.iter().map(Resp::text) {
            if QUEUES.iter().any(|queue| key.starts_with(queue)) {
                left.waiters += 1;
            }
            left.keys.insert(key);
        }
        cursor = next.text();
        if cursor == "0" {
            break;
        }
    }
    for command in [["PUBSUB", "CHANNELS"], ["PUBSUB", "SHARDCHANNELS"]] {
        left.channels += match ask(&command).await? {
            Resp::Array(channels) => channels.len() as u64,
            odd => return Err(TopologyError::odd(node, command[1], &odd)),
        };
    }
    left.patterns = match ask(&["PUBSUB", "NUMPAT"]).await? {
        Resp::Int(patterns) => patterns.unsigned_abs(),
        odd => return Err(TopologyError::odd(node, "NUMPAT", &odd)),
    };
    let connections = ask(&["CLIENT", "LIST"]).await?;
    let others = connections.text().lines().count().checked_sub(1);
    // The connection that asks is among them.
    let others = others.ok_or_else(|| TopologyError::odd(node, "CLIENT LIST", &connections))?;
    left.connections = others as u64;
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Resp {
        Resp::Bulk(text.into())
    }

    /// The result if `answer` is the reply to `what`; of the keys it is the second page.
    async fn seen(what: &str, answer: Resp) -> Result<Left, TopologyError> {
        let page = |next: &str, keys: &[&str]| {
            let keys = keys.iter().map(|key| bulk(key)).collect();
            Resp::Array(vec![bulk(next), Resp::Int(2), Resp::Array(keys)])
        };
        let ask = async |words: &[&str]| {
            let asks_for = match words {
                ["EVAL", _, _, "0", ..] => return Ok(page("9", &["a"])),
                ["EVAL", _, _, "9", ..] => "SCAN",
                ["CLIENT", "LIST"] => "CLIENT LIST",
                ["PUBSUB", of] => of,
                other => panic!("nobody asks {other:?}"),
            };
            Ok(match asks_for {
                _ if asks_for == what => answer.clone(),
                "SCAN" => page("0", &["locktopus_queue:{b}"]),
                "CLIENT LIST" => bulk("id=1\nid=2\n"),
                "NUMPAT" => Resp::Int(3),
                _ => Resp::Array(vec![bulk("c")]),
            })
        };
        look_by("node-3", ask).await
    }

    #[tokio::test]
    async fn what_is_no_answer_is_an_error_that_names_it() {
        let left = seen("nothing", Resp::Nil).await.unwrap();
        assert_eq!((left.keys.len(), left.kept, left.waiters), (2, 4, 1));
        let rest = (left.channels, left.patterns, left.connections);
        assert_eq!(rest, (2, 3, 1));
        for what in ["SCAN", "CHANNELS", "SHARDCHANNELS", "NUMPAT", "CLIENT LIST"] {
            let mut odd = vec![Resp::Nil, bulk("")];
            if what == "SCAN" {
                let cursor = || bulk("0");
                odd.push(Resp::Array(vec![cursor(), Resp::Int(0)]));
                odd.push(Resp::Array(vec![cursor(), Resp::Int(0), Resp::Nil]));
                odd.push(Resp::Array(vec![
                    Resp::Nil,
                    Resp::Int(0),
                    Resp::Array(Vec::new()),
                ]));
            }
            for odd in odd {
                let named = format!("{odd:?}");
                let error = seen(what, odd).await.unwrap_err().to_string();
                let begin = format!("node-3 answered {what} with");
                assert!(error.starts_with(&begin), "{error}");
                assert!(error.ends_with(&named), "{named}: {error}");
            }
        }
    }
}
