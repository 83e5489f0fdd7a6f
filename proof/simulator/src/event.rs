//! What is under way in the world, and what reaches a process.

use locktopus_model::redis::{Change, Published};
use locktopus_protocol::{Channel, ClientError, PushEvent, Reply};
use tokio::sync::oneshot;

use crate::plan::Fault;

/// The connections of a client: to ask, to wait for replicas, to listen.
pub(crate) const ASKING: usize = 0;
pub(crate) const BLOCKING: usize = 1;
pub(crate) const LISTENING: usize = 2;

/// Where the answers of one call go. It is dropped if its connection breaks.
pub(crate) type Answers = oneshot::Sender<Vec<Result<Reply, ClientError>>>;

/// What a client has sent.
#[derive(Debug)]
pub(crate) enum Call {
    Commands(Vec<Vec<Vec<u8>>>),
    /// A command to a server that is about to serve its slot.
    Asking(Vec<Vec<Vec<u8>>>),
    Subscribe(Vec<Channel>),
    Unsubscribe(Vec<Channel>),
}

/// A request on its way, or at the server.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) link: usize,
    pub(crate) connection: usize,
    /// Which connection of those that follow each other.
    pub(crate) epoch: u64,
    pub(crate) node: usize,
    pub(crate) number: u64,
    pub(crate) call: Call,
}

/// A pipeline whose next command is to wait for replicas, or that is behind such a one.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) request: Request,
    /// The commands that were run.
    pub(crate) replies: Vec<Result<Reply, ClientError>>,
    /// Up to which offset, how many replicas, and until when. `None`: it has not begun.
    pub(crate) wait: Option<(u64, usize, u64)>,
}

/// What happens at a moment.
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
    /// A server follows another one, with all that it has.
    Resync {
        node: usize,
        stream: u64,
    },
    Start {
        node: usize,
        keeps_data: bool,
    },
    /// A client looks where it may connect.
    Connect(usize),
    Fault(usize, Fault),
    /// Something that lasted is over.
    Over(Lasting),
    /// The next key of a slot moves; after the last, the slot does.
    MoveKey(u16),
}

/// What ends by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lasting {
    OutOfMemory(usize),
    LacksReplicas(usize),
    Lag(usize),
    Split(usize),
    /// A server stands still.
    Still(usize),
    /// A client stays where it is, though sentinels name another primary.
    Stays(usize),
}

/// What reaches a process at a moment.
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
