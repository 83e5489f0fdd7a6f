//! What happens in a schedule, and when.

use std::fmt;
use std::rc::Rc;

use crate::redis::Keyspace;
use crate::sim::ask::Ask;
use crate::sim::client::Input;
use crate::sim::rules::Micros;

/// Something that will happen.
#[derive(Debug)]
pub(super) enum Event {
    /// A request arrives at a server.
    Arrive(Arrival),
    /// Something reaches a process.
    Reach {
        process: usize,
        input: Input,
    },
    Resume {
        process: usize,
    },
    Fault(Fault),
    /// Judge whether something has been overdue since then.
    Overdue {
        since: u64,
    },
    /// Judge whether a waiter still shows life.
    Silent {
        process: usize,
        task: usize,
    },
    End,
}

/// A request at a server's door.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub(super) node: usize,
    pub(super) process: usize,
    pub(super) call: u64,
    pub(super) ask: Rc<Ask>,
    /// It had to wait, because the server was busy.
    pub(super) waited: bool,
}

/// Something that goes wrong.
#[derive(Debug)]
pub(super) enum Fault {
    Crash,
    Pause(Micros),
    /// A process stops hearing messages, and notices after this time, or never.
    Cut(Option<Micros>),
    Step(Micros),
    Drought(bool),
    /// Somebody takes the name for another kind, or loses the number of a semaphore.
    Stranger,
    /// The primary dies; a replica takes over after a while.
    Die {
        outage: Micros,
        clock: Micros,
    },
    /// The primary and its replica change places, in order: nothing is lost, and nobody is told.
    ChangePlaces {
        outage: Micros,
    },
    TakeOver(Box<Successor>),
    /// Servers forget a process that is gone.
    Forget {
        process: usize,
    },
}

/// The replica that takes over.
pub(super) struct Successor {
    pub(super) base: Keyspace,
    pub(super) offset: Micros,
    /// The old primary is its replica, and whoever listened to the one still does.
    pub(super) in_order: bool,
}

impl fmt::Debug for Successor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Successor")
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}
