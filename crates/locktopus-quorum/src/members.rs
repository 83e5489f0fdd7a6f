//! All nodes of a quorum, and their background tasks.

use std::future::Future;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::abstention::BACKEND_NAME;
use super::claim::{Claim, Ledger};
use super::node::Node;
use super::proposals::Proposals;
use locktopus_contract::clock::{self, timer_in};
use locktopus_contract::{
    BackendError, BackendErrorKind, Executed, PerRuntime, ReleaseRequest, ValidityMargin, internal,
    lock,
};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Even with a very short lease, a node gets this long for its answer.
const SHORTEST_CALL: Duration = Duration::from_millis(5);
/// A node's answer may take at most this fraction of the lease. A round is two calls, for the grant
/// and for its token. So half of the lease remains for the winner.
const CALLS_PER_LEASE: u32 = 4;
/// How much longer than its calls a round may take.
pub(super) const SPARE_TIME: Duration = Duration::from_millis(50);

/// The nodes and how to call them.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) node_timeout: Duration,
    pub(super) max_lease: Duration,
    pub(super) margin: ValidityMargin,
    pub(super) ledger: Ledger,
    pub(super) proposals: Proposals,
    pub(super) tasks: TaskTracker,
    pub(super) closed: CancellationToken,
    /// The runtimes that use this quorum.
    pub(super) runtimes: PerRuntime<Handle>,
    /// Nodes to clean whose task ended with its runtime. The next call starts it again.
    pub(super) unclean: Mutex<Vec<(Arc<Claim>, usize)>>,
}

/// A node that is being cleaned.
struct Cleaning {
    members: Weak<Members>,
    claim: Arc<Claim>,
    node: usize,
    done: bool,
}

impl Cleaning {
    fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Cleaning {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        if let Some(members) = self.members.upgrade() {
            let claim = Arc::clone(&self.claim);
            lock(&members.unclean).push((claim, self.node));
        }
    }
}

impl Members {
    /// How many nodes make a majority.
    pub(super) fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// How long a node may take to answer a call about a lease of this length.
    pub(super) fn share_of(&self, lease: Duration) -> Duration {
        let share = (lease / CALLS_PER_LEASE).max(SHORTEST_CALL);
        self.node_timeout.min(share)
    }

    /// Call this before sending anything.
    pub(super) fn ready(self: &Arc<Self>) -> Result<(), BackendError> {
        if self.closed.is_cancelled() {
            let (kind, executed) = (BackendErrorKind::Closed, Executed::No);
            return Err(BackendError::new(
                BACKEND_NAME,
                kind,
                executed,
                "the quorum was closed",
            ));
        }
        let here = self.runtimes.here(Handle::clone);
        here.map_err(|_| BackendError::no_runtime(BACKEND_NAME))?;
        let unclean = std::mem::take(&mut *lock(&self.unclean));
        for (claim, node) in unclean {
            self.clean_later(&claim, node);
        }
        Ok(())
    }

    /// Like [`ready`](Self::ready), for a request with a deadline. If that is over, no node is
    /// asked and nothing has happened.
    pub(super) fn ready_before(self: &Arc<Self>, deadline: Instant) -> Result<(), BackendError> {
        self.ready()?;
        if Instant::now() < deadline {
            return Ok(());
        }
        let (kind, executed) = (BackendErrorKind::Timeout, Executed::No);
        let message = "the deadline was over before any node was asked";
        Err(BackendError::new(BACKEND_NAME, kind, executed, message))
    }

    pub(super) fn check_lease(&self, lease: Duration) -> Result<(), BackendError> {
        if lease <= self.max_lease {
            return Ok(());
        }
        let message = format!(
            "a lease of {lease:?} is longer than the max_lease of this quorum, {:?}; restarted nodes wait that \
             long before they vote",
            self.max_lease
        );
        let (kind, executed) = (BackendErrorKind::Refused, Executed::No);
        Err(BackendError::new(BACKEND_NAME, kind, executed, message))
    }

    /// Runs work that no caller waits for, until the quorum is closed.
    pub(super) fn background(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        let runtimes = self.runtimes.all();
        let lasting = |runtime: &&Arc<Handle>| internal::drives_itself(runtime);
        let here = || Handle::try_current().ok();
        let lasting = runtimes
            .iter()
            .find(lasting)
            .map(|runtime| (**runtime).clone());
        // Futures may be dropped outside a runtime.
        let any = || runtimes.first().map(|runtime| (**runtime).clone());
        let Some(runtime) = lasting.or_else(here).or_else(any) else {
            return;
        };
        let closed = self.closed.clone();
        let until_closed = async move {
            tokio::select! {
                biased;
                () = closed.cancelled() => {}
                () = work => {}
            }
        };
        self.tasks.spawn_on(until_closed, &runtime);
    }

    /// Gives a claim up, and in the background gives back everything that the nodes may hold of it.
    pub(super) fn give_up(self: &Arc<Self>, claim: &Arc<Claim>) {
        let nodes = claim.give_up();
        if nodes.is_empty() {
            self.ledger.tidy(claim);
        }
        for node in nodes {
            self.clean_later(claim, node);
        }
    }

    /// Cleans one node in the background. It must be marked as being cleaned.
    pub(super) fn clean_later(self: &Arc<Self>, claim: &Arc<Claim>, node: usize) {
        let cleaning = Cleaning {
            members: Arc::downgrade(self),
            claim: Arc::clone(claim),
            node,
            done: false,
        };
        let members = Arc::clone(self);
        self.background(async move {
            members.clean(&cleaning.claim, node).await;
            cleaning.done();
        });
    }

    /// Sends releases to one node until the answer is definite and nothing can arrive after it, or
    /// the lease has ended.
    async fn clean(&self, claim: &Arc<Claim>, node: usize) {
        let mut pause = FIRST_PAUSE;
        let backend = &self.nodes[node].backend;
        loop {
            // An attempt under way is answered soon, or given up and counted as late.
            claim.landed(node, Instant::now() + self.node_timeout).await;
            if claim.is_settled(node) {
                break;
            }
            // A late attempt was already released once. The last release waits until no attempt can
            // arrive.
            if let Some(due) = claim.due(node) {
                tokio::time::sleep_until(due).await;
            }
            let deadline = timer_in(self.node_timeout.max(backend.info().call_timeout));
            let (target, owner) = (claim.target.clone(), claim.owner.clone());
            let request = ReleaseRequest {
                permits: claim.permits(),
                linger: claim.linger(),
                ..ReleaseRequest::new(target, owner, deadline)
            };
            let release = backend.release(&request);
            let sent = claim.releasing(node);
            match self.nodes[node].call(deadline, release).await {
                Ok(outcome) if !claim.released(node, outcome, sent) => break,
                Ok(_) => {}
                Err(abstention) => {
                    claim.not_released(node, &abstention);
                    let label = &self.nodes[node].label;
                    tracing::debug!(lock = %claim.target, node = %label, %abstention, "background release failed");
                    if clock::now() >= claim.until() {
                        claim.lapsed(node);
                        break;
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
        self.ledger.tidy(claim);
    }
}
