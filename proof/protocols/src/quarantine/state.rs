//! Servers, the record of their history, clients.

/// The state at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) primary: Server,
    /// The data that its replica has.
    pub(super) replica: Data,
    /// A replaced primary that still answers, if the rules allow that.
    pub(super) old: Option<Server>,
    /// The last replaced primary, unchanged: it may be promoted again.
    pub(super) replaced: Option<Server>,
    /// How often sentinels have named another primary.
    pub(super) epoch: u8,
    /// How many failovers and restarts there were.
    pub(super) failovers: u8,
    pub(super) clients: Vec<Client>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Server {
    /// Its replication id.
    pub(super) history: u8,
    pub(super) data: Data,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Data {
    /// The holder, and the rest of its lease.
    pub(super) hold: Option<(u8, u8)>,
    /// `locktopus_history*`.
    pub(super) record: Option<Record>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Record {
    pub(super) history: u8,
    pub(super) epoch: u8,
    /// Ticks until grants are allowed.
    pub(super) left: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Client {
    pub(super) phase: Phase,
    pub(super) seen: Option<Seen>,
}

/// The history that a client watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    pub(super) history: u8,
    /// The epoch that the sentinels reported meanwhile.
    pub(super) epoch: u8,
    /// How long it has watched.
    pub(super) age: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    /// An attempt was sent this long ago, with what the client had seen then.
    Asking {
        age: u8,
        seen: Option<Seen>,
    },
    /// It believes that it holds the lock for this long; an extension was sent this long ago.
    Holding {
        left: u8,
        extending: Option<u8>,
    },
    Gone,
}

impl State {
    /// The primary has been one for a long time, and the lock is free.
    pub(super) fn beginning(clients: u8) -> Self {
        let record = Some(Record {
            history: 0,
            epoch: 0,
            left: 0,
        });
        let data = Data { hold: None, record };
        let client = Client {
            phase: Phase::Idle,
            seen: None,
        };
        Self {
            primary: Server { history: 0, data },
            replica: data,
            old: None,
            replaced: None,
            epoch: 0,
            failovers: 0,
            clients: vec![client; usize::from(clients)],
        }
    }

    pub(super) fn believers(&self) -> usize {
        let believes = |client: &&Client| matches!(client.phase, Phase::Holding { .. });
        self.clients.iter().filter(believes).count()
    }
}

impl Data {
    /// An expiry is a point in time that replicas know, so it comes on all servers at once.
    pub(super) fn tick(&mut self) {
        self.hold.take_if(|(_, left)| {
            *left -= 1;
            *left == 0
        });
        if let Some(record) = &mut self.record {
            record.left = record.left.saturating_sub(1);
        }
    }
}
