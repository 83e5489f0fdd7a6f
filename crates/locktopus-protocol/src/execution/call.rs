//! One call of a script, and what becomes of it while its slot is being moved to another node.

use std::borrow::Cow;

use tokio::time::Instant;

use crate::client::{ClientError, Deployment};
use crate::scripts::Script;

/// A script with its keys and arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) script: &'static Script,
    /// All of them are in `slot`.
    pub(crate) keys: &'a [&'a [u8]],
    pub(crate) args: &'a [&'a [u8]],
    pub(crate) slot: u16,
    pub(crate) deadline: Instant,
    pub(crate) effect: Effect,
    pub(crate) on_split: OnSplit,
}

/// The effect of a script on locks. The safety mode decides by this how it runs the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changes no lock.
    Look,
    /// It may grant a lock. The grant counts once the safety mode is satisfied.
    Grant,
    /// It extends a lease. This counts as a grant does, but nothing is granted.
    Extend,
    /// It ends a hold and may hand the lock on. It must not overtake an attempt of the same owner.
    Release,
}

/// The way out when the slot of a call is being moved and some of its keys are on each node.
///
/// A safety mode that sends more than the call itself makes it wait.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OnSplit {
    /// It is sent again until the keys are on one node.
    Wait,
    /// It is sent with the first key alone. That key exists, so one of the nodes runs the script.
    FirstKey,
    /// It fails at once, with [`HalfMoved`] as the source of the error: each of its keys can be
    /// asked for alone.
    Tell,
}

impl<'a> Call<'a> {
    /// A call that waits while its slot is being moved.
    pub(crate) fn new(
        effect: Effect,
        script: &'static Script,
        keys: &'a [&'a [u8]],
        args: &'a [&'a [u8]],
        slot: u16,
        deadline: Instant,
    ) -> Self {
        Self {
            script,
            keys,
            args,
            slot,
            deadline,
            effect,
            on_split: OnSplit::Wait,
        }
    }

    /// `EVALSHA` with the script's digest. `count` is the number of keys.
    pub(super) fn command(&self, count: &'a str) -> Vec<&'a [u8]> {
        let mut command: Vec<&[u8]> = Vec::with_capacity(3 + self.keys.len() + self.args.len());
        command.extend([
            b"EVALSHA",
            self.script.digest().as_bytes(),
            count.as_bytes(),
        ]);
        command.extend(self.keys.iter().chain(self.args));
        command
    }
}

/// The source of an error: the script did not run. Its slot is being moved, and its keys are on two
/// nodes.
#[derive(Debug, thiserror::Error)]
#[error("its keys are on two nodes, as their slot is being moved")]
pub(crate) struct HalfMoved;

/// Advice if a server names another node, and the user did not ask for a cluster.
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

/// How many keys or arguments there are, as text. Without an allocation where it has one digit.
pub(super) fn count_of(words: &[&[u8]]) -> Cow<'static, str> {
    const DIGITS: &str = "0123456789";
    match words.len() {
        count @ ..10 => DIGITS[count..=count].into(),
        count => count.to_string().into(),
    }
}
