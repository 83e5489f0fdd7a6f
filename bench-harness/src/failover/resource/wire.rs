//! The messages between a worker and the resource, as lines of JSON.

use serde::{Deserialize, Serialize};

/// A holder's request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Ask {
    /// The holder enters and asks for the current versions.
    Enter {
        lock: String,
        worker: u32,
        /// Its token, in the text form of a `Fence`.
        fence: Option<String>,
    },
    /// Write back what was read, with a new element.
    Append {
        lock: String,
        /// The versions that were read.
        read: Heads,
        fence: Option<String>,
        /// Whether to leave the unchecked data alone, because the holder knows of its loss.
        only_fenced: bool,
    },
}

/// The newest versions of a lock's data: without checks, and with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Heads {
    pub(in super::super) plain: u64,
    pub(in super::super) fenced: u64,
}

/// The resource's response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Reply {
    /// The holder may enter; these are the versions to write back.
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
    /// The request makes no sense.
    Bad { reason: String },
}
