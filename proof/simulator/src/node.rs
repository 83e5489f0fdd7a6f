//! One simulated server: the modelled server, its clock, its script cache and its replication.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use locktopus_model::redis::{Role, Server};

use crate::event::Waiting;

/// A server of the world.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) server: Server,
    /// The shard that it is the primary or a replica of.
    pub(crate) shard: usize,
    /// Whether it runs and answers.
    pub(crate) up: bool,
    /// Digests of the scripts in its cache.
    pub(crate) scripts: BTreeSet<String>,
    /// How far its clock is from true time, in µs.
    pub(crate) skew: i64,
    /// Its clock was set, so the time may go back.
    pub(crate) clock_set: bool,
    /// How many writes it has made since it became a primary.
    pub(crate) offset: u64,
    /// Grows whenever its replication stream starts anew, and whenever it begins to follow another
    /// server.
    pub(crate) stream: u64,
    /// Its replicas, and the offset that each has confirmed.
    pub(crate) replicas: BTreeMap<usize, u64>,
    /// The offset up to which it follows its primary. A failover promotes the greatest.
    pub(crate) applied: u64,
    /// How much later than other replicas it receives writes, in µs.
    pub(crate) lag: u64,
    /// When the last write sent to it arrives.
    pub(crate) stream_busy_until: u64,
    /// Pipelines that wait for replicas, and those queued behind them.
    pub(crate) waiting: VecDeque<Waiting>,
    /// When it last started.
    pub(crate) started: u64,
    pub(crate) run_id: u64,
}

/// True time 0, on a server's clock in µs.
pub(crate) const EPOCH: i64 = 1_700_000_000_000_000;

impl Node {
    pub(crate) fn new(number: usize, shard: usize, role: Role) -> Self {
        let mut server = Server::default();
        server.role = role;
        server.replid = replid(number as u64);
        Self {
            server,
            shard,
            up: true,
            scripts: BTreeSet::new(),
            skew: 0,
            clock_set: false,
            offset: 0,
            stream: 0,
            replicas: BTreeMap::new(),
            applied: 0,
            lag: 0,
            stream_busy_until: 0,
            waiting: VecDeque::new(),
            started: 0,
            run_id: number as u64,
        }
    }

    /// Sets its clock for this true time. Scripts advance it by a microsecond for each command.
    pub(crate) fn set_time(&mut self, now: u64) {
        let shown = EPOCH + now as i64 + self.skew;
        if shown > self.server.clock || self.clock_set {
            self.server.clock = shown;
            self.clock_set = false;
        }
    }

    /// Add this to the server's clock to get true time.
    pub(crate) fn to_true(&self) -> i64 {
        -EPOCH - self.skew
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.up && self.server.role == Role::Primary
    }
}

/// A unique replication id.
pub(crate) fn replid(number: u64) -> String {
    format!("{:040x}", u128::from(number) + 0xabc_0000)
}
