//! What this process and the server have at a moment.

use std::collections::BTreeSet;

use locktopus_testbed::topology::{Node, Resp, TopologyError};
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
        // One of them is the folder's own.
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

/// What the server has when everybody is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Keys that are not meant to stay.
    pub keys: BTreeSet<String>,
    /// Keys that are, and have an end: counters of tokens, which outlive their locks so that tokens keep growing, and answers
    /// to attempts that may come once more.
    pub kept: u64,
    /// Places in queues.
    pub waiters: u64,
    /// Channels that somebody listens to, of shards too.
    pub channels: u64,
    /// Patterns.
    pub patterns: u64,
    /// Connections, but for the one that asks.
    pub connections: u64,
}

impl Left {
    /// Nothing of what must be gone.
    pub(super) fn is_nothing(&self) -> bool {
        let counted = self.waiters + self.channels + self.patterns + self.connections;
        self.keys.is_empty() && counted == 0
    }
}

/// What is meant to stay for a while, by name: counters of tokens, and answers to attempts that may come once more.
const KEPT: [&str; 2] = ["redisson_lock_token:", "locktopus_done:"];
/// A page of the keys: all that are not meant to stay. What is must have an end.
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
/// Where waiters stand.
const QUEUES: [&str; 4] = [
    "locktopus_queue",
    "locktopus_waiters",
    "redisson_lock_queue",
    "redisson_lock_timeout",
];

/// Looks at everything that the server has.
pub(super) async fn look(node: &Node) -> Result<Left, TopologyError> {
    let mut left = Left::default();
    let mut cursor = "0".to_owned();
    loop {
        let [first, second] = KEPT;
        let page = node
            .command(&["EVAL", PAGE, "0", &cursor, first, second])
            .await?;
        let [next, Resp::Int(kept), keys] = page.items() else {
            break;
        };
        left.kept += kept.unsigned_abs();
        for key in keys.items().iter().map(Resp::text) {
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
    let channels = node.command(&["PUBSUB", "CHANNELS"]).await?;
    let shards = node.command(&["PUBSUB", "SHARDCHANNELS"]).await?;
    left.channels = (channels.items().len() + shards.items().len()) as u64;
    if let Resp::Int(patterns) = node.command(&["PUBSUB", "NUMPAT"]).await? {
        left.patterns = patterns.unsigned_abs();
    }
    let connections = node.command(&["CLIENT", "LIST"]).await?.text();
    left.connections = (connections.lines().count() as u64).saturating_sub(1);
    Ok(left)
}
