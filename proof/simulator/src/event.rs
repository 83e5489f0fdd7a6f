//! Events under way in the world, and deliveries to processes.

use locktopus_model::redis::{Change, Published};
use locktopus_protocol::{Channel, ClientError, PushEvent, Reply};
use tokio::sync::oneshot;

use crate::plan::Fault;

/// The three connections of a client: for commands, for `WAIT`, and for messages.
pub(crate) const ASKING: usize = 0;
pub(crate) const BLOCKING: usize = 1;
pub(crate) const LISTENING: usize = 2;

/// Receives the replies of one call. Dropped if its connection breaks.
pub(crate) type Answers = oneshot::Sender<Vec<Result<Reply, ClientError>>>;

/// A call of a client.
#[derive(Debug)]
pub(crate) enum Call {
    Commands(Vec<Vec<Vec<u8>>>),
    /// Commands after `ASKING`, to a server that is about to serve their slot.
    Asking(Vec<Vec<Vec<u8>>>),
    Subscribe(Vec<Channel>),
    Unsubscribe(Vec<Channel>),
}

/// A request on its way, or at the server.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) link: usize,
    pub(crate) connection: usize,
    /// Which of the successive connections it was sent on.
    pub(crate) epoch: u64,
    pub(crate) node: usize,
    pub(crate) number: u64,
    pub(crate) call: Call,
}

/// A pipeline whose next command is `WAIT`, or one queued behind it.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) request: Request,
    /// The replies of the commands that ran.
    pub(crate) replies: Vec<Result<Reply, ClientError>>,
    /// The offset, how many replicas, and until when. `None`: the wait has not begun.
    pub(crate) wait: Option<(u64, usize, u64)>,
}

/// An event of the world.
#[derive(Debug)]
pub(crate) enum Event {
    Arrive(Request),
    Replicate {
        from: usize,
        to: usize,
        stream: u64,
        offset: u64,
        changes: Vec<Change>,
        published: Vec<Published>,
    },
    Confirm {
        from: usize,
        to: usize,
        stream: u64,
        offset: u64,
    },
    WaitOver(usize),
    /// The sentinels agree on another primary.
    Promote(usize),
    /// A server copies everything from its primary and follows it.
    Resync {
        node: usize,
        stream: u64,
    },
    Start {
        node: usize,
        keeps_data: bool,
    },
    /// A client connects to the primary, if there is one.
    Connect(usize),
    Fault(usize, Fault),
    /// A lasting fault ends.
    Over(Lasting),
    /// The next key of a slot moves; after the last one, the slot itself.
    MoveKey(u16),
}

/// Faults that end after a while.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lasting {
    OutOfMemory(usize),
    LacksReplicas(usize),
    Lag(usize),
    Split(usize),
    /// A frozen server.
    Still(usize),
    /// A client that stays connected though sentinels name another primary.
    Stays(usize),
}

/// A delivery to a process.
#[derive(Debug)]
pub(crate) enum Delivery {
    Answer {
        connection: usize,
        epoch: u64,
        number: u64,
        replies: Vec<Result<Reply, ClientError>>,
    },
    Push {
        epoch: u64,
        event: PushEvent,
    },
    /// These connections are gone.
    Broken {
        epochs: [u64; 3],
    },
    Connected {
        node: usize,
    },
}
