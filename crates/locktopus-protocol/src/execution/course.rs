//! How a script is sent, and what becomes of it while its slot migrates.

use crate::client::{ClientError, Deployment};

/// Which of a client's connections to a node.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    Usual,
    Blocking,
}

/// What becomes of a script whose slot migrates, while some of its keys are on either node.
#[derive(Debug, Clone, Copy)]
pub(super) enum Apart {
    /// It is sent again until they are together.
    Waits,
    /// It has so many keys and can do with the first.
    FirstKey(usize),
    /// It is told at once: see [`HalfMoved`].
    Tells,
}

pub(super) const USUAL: (Way, Apart) = (Way::Usual, Apart::Waits);
pub(super) const IN_LINE: (Way, Apart) = (Way::Blocking, Apart::Waits);
pub(super) const TOGETHER: (Way, Apart) = (Way::Usual, Apart::Tells);

/// The source of an error: a script was not run because its keys are on two nodes, while their slot migrates.
#[derive(Debug, thiserror::Error)]
#[error("its keys are on two nodes, as their slot is being moved")]
pub(crate) struct HalfMoved;

/// What to do about a server that names another one, if no cluster was asked for.
pub(super) const ONE_NODE: &str =
    "; this server is a node of a cluster, which redis:// does not follow: write redis-cluster://";

/// Whether a refusal names another node to a client that knows only one server. It will not pass.
pub(super) fn names_a_node(code: &str, deployment: Deployment) -> bool {
    matches!(code, "MOVED" | "ASK") && deployment == Deployment::Standalone
}

/// Whether a slot migrates, and some of the keys of a script with it.
pub(super) fn is_half_moved(error: &ClientError) -> bool {
    matches!(error, ClientError::Rejected { code, .. } if code == "TRYAGAIN")
}
