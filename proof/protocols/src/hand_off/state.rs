//! The state: a server, clients, and messages between them.

use super::rules::LEASE;

/// The state at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) server: Server,
    pub(super) clients: Vec<Client>,
    /// Sorted, so that the order of sending does not split one state into two.
    pub(super) messages: Vec<Message>,
    pub(super) faults: u8,
    /// The largest token that a client believed.
    pub(super) highest: u8,
    /// A client believed a token that was not larger than all before it.
    pub(super) went_back: bool,
    /// How many ticks a healthy client has waited while the lock was free.
    pub(super) idle: u8,
    /// How many of those ticks the faults so far may explain.
    pub(super) excused: u8,
}

/// The lock on the server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Server {
    pub(super) holder: Option<Hold>,
    /// The last token given.
    pub(super) token: u8,
    /// In the order of tickets.
    pub(super) queue: Vec<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Hold {
    pub(super) owner: u8,
    pub(super) left: u8,
}

/// A waiter's place. With no time left it is dead, and the next one to see it removes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) owner: u8,
    pub(super) left: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Client {
    pub(super) phase: Phase,
    pub(super) inbox: Inbox,
}

/// The server of a client's inbox subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Inbox {
    Nowhere,
    Primary,
    Replica,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    Waiting(Waiting),
    /// It believes that it holds the lock, by an attempt that was sent this long ago.
    Holding {
        age: u8,
        late: bool,
    },
    /// It releases what it may have.
    Leaving {
        /// Whether to release once more afterwards, because an attempt may still be on its way.
        again: bool,
        /// Ticks until a release is sent; `None` while one is in flight.
        pause: Option<u8>,
        /// How long the release has been in flight.
        age: u8,
    },
    /// No trace of it is left.
    Gone,
    Dead,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    /// How long ago the unanswered attempt was sent.
    pub(super) asking: Option<u8>,
    /// It must subscribe before it continues.
    pub(super) subscribes: bool,
    /// Ticks until it tries again; 0 means now.
    pub(super) pause: u8,
    /// The place that the last answer confirmed.
    pub(super) place: Option<Confirmed>,
    /// An unanswered attempt may still arrive.
    pub(super) late: bool,
}

/// `Place` in `state.rs` of the acquisition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Confirmed {
    pub(super) age: u8,
    pub(super) fence: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Message {
    /// The sender of the attempt or release, or the recipient.
    pub(super) client: u8,
    pub(super) what: What,
    /// How many ticks ago it was sent, as far as that matters.
    pub(super) age: u8,
    /// It is lost, or arrives at any time.
    pub(super) stuck: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum What {
    /// `newcomer`: the owner has never requested anything. `heard`: the client waits for the
    /// answer.
    Attempt {
        newcomer: bool,
        heard: bool,
    },
    Granted {
        token: u8,
    },
    Queued {
        fence: u8,
    },
    TooLate,
    Release {
        heard: bool,
    },
    Released,
    /// Published to the inbox: a token, or a message without one.
    Token {
        token: u8,
        via: Inbox,
    },
    PassedOver {
        via: Inbox,
    },
}

impl What {
    /// Whether it answers a request; without that request the answer has no recipient.
    pub(super) fn answers(self) -> bool {
        matches!(
            self,
            Self::Granted { .. } | Self::Queued { .. } | Self::TooLate | Self::Released
        )
    }

    /// Whether a client waits for this request or this answer.
    pub(super) fn is_awaited(self) -> bool {
        self.answers()
            || matches!(
                self,
                Self::Attempt { heard: true, .. } | Self::Release { heard: true }
            )
    }
}

impl State {
    /// The first client holds the lock, and no other wants it yet.
    pub(super) fn beginning(clients: u8) -> Self {
        let client = |index| Client {
            phase: match index {
                0 => Phase::Holding {
                    age: 0,
                    late: false,
                },
                _ => Phase::Idle,
            },
            inbox: Inbox::Nowhere,
        };
        Self {
            server: Server {
                holder: Some(Hold {
                    owner: 0,
                    left: LEASE,
                }),
                token: 1,
                queue: Vec::new(),
            },
            clients: (0..clients).map(client).collect(),
            messages: Vec::new(),
            faults: 0,
            highest: 1,
            went_back: false,
            idle: 0,
            excused: 0,
        }
    }

    pub(super) fn send(&mut self, client: u8, what: What) {
        self.add(Message {
            client,
            what,
            age: 0,
            stuck: false,
        });
    }

    pub(super) fn add(&mut self, message: Message) {
        let at = self.messages.partition_point(|other| *other < message);
        self.messages.insert(at, message);
    }

    /// The clients that believe they hold the lock.
    pub(super) fn believers(&self) -> impl Iterator<Item = (u8, u8)> + '_ {
        let clients = (0..).zip(&self.clients);
        clients.filter_map(|(index, client)| match client.phase {
            Phase::Holding { age, .. } if age < LEASE => Some((index, LEASE - age)),
            _ => None,
        })
    }
}
