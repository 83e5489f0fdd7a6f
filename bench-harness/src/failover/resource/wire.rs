//! What a worker and the resource say to each other, in lines of JSON.

use serde::{Deserialize, Serialize};

/// What a holder asks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Ask {
    /// The holder has come: where does the data stand?
    Enter {
        lock: String,
        worker: u32,
        /// Its token, as the word of a `Fence`.
        fence: Option<String>,
    },
    /// Write back what was read, with something added.
    Append {
        lock: String,
        /// What was read.
        read: Heads,
        fence: Option<String>,
        /// Whether to spare the data that nobody checks, because the holder knows that it must not
        /// write.
        only_fenced: bool,
    },
}

/// Where the data of a lock stands: the newest version without checks, and with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Heads {
    pub(in super::super) plain: u64,
    pub(in super::super) fenced: u64,
}

/// What the resource answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Reply {
    /// Come in: the data, to be written back.
    Heads {
        heads: Heads,
        /// The resource's own number of this decision.
        order: u64,
    },
    /// A later holder has been here.
    Refused {
        /// As above.
        order: u64,
    },
    /// The write was done.
    Done {
        /// As above.
        order: u64,
    },
    /// The question makes no sense.
    Bad { reason: String },
}
