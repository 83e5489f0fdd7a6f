//! Servers, the record of their history, clients.

/// Everything at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) primary: Server,
    /// What its replica has of it.
    pub(super) replica: Data,
    /// A primary that was replaced and goes on, where that is possible.
    pub(super) old: Option<Server>,
    /// The last primary that was replaced, as it is: it may be promoted again.
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
    /// Who holds the lock, and for how long.
    pub(super) hold: Option<(u8, u8)>,
    /// `locktopus_history*`.
    pub(super) record: Option<Record>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Record {
    pub(super) history: u8,
    pub(super) epoch: u8,
    /// Ticks until something may be granted.
    pub(super) left: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Client {
    pub(super) phase: Phase,
    pub(super) seen: Option<Seen>,
}

/// What a client watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    pub(super) history: u8,
    /// What the sentinels said meanwhile.
    pub(super) epoch: u8,
    /// For how long it has.
    pub(super) age: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    /// An attempt was sent so long ago, with what the client had seen then.
    Asking {
        age: u8,
        seen: Option<Seen>,
    },
    /// It believes for so long; an extension was sent so long ago.
    Holding {
        left: u8,
        extending: Option<u8>,
    },
    Gone,
}

impl State {
    /// The primary has been one for long, and nobody holds the lock.
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
    /// Expiry is a moment in time, which a replica is told; so it comes on all servers at once.
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
