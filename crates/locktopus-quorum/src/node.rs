//! One node of a quorum: a backend, and whether its answers count.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout_at};

use super::abstention::Abstention;
use super::eligibility::{Eligibility, Judgement};
use super::witnesses::{self, Age, Witnesses};
use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{BackendError, DynBackend, NodeIdentity, NodeProbe, lock};

/// How long after its deadline a node's call is abandoned. The backend should answer by the
/// deadline, and its own error is usually better.
const ANSWER_GRACE: Duration = Duration::from_millis(10);

/// How often to ask a server in one turn. The question itself may open the connection that carries
/// the answer, and a second one as well.
const MAX_IDENTITY_TRIES: u32 = 3;

/// The servers behind the nodes, by run id. So no server votes twice, and a node that returns
/// learns about the others.
pub(super) type SeenServers = Arc<Mutex<BTreeMap<String, SeenServer>>>;

/// The node behind which a server was first seen.
#[derive(Debug, Clone)]
pub(super) struct SeenServer {
    index: usize,
    label: Arc<str>,
    /// The time when it had this age.
    at: BootInstant,
    age: Age,
}

/// A backend that votes.
pub(super) struct Node {
    pub(super) label: Arc<str>,
    pub(super) backend: DynBackend,
    pub(super) probe: Option<Arc<dyn NodeProbe>>,
    pub(super) index: usize,
    pub(super) max_lease: Duration,
    /// An identity older than this is read again.
    pub(super) recheck: Duration,
    pub(super) servers: SeenServers,
    /// The probes of the nodes that keep notes about its server.
    pub(super) witnesses: Witnesses,
    pub(super) eligibility: Mutex<Eligibility>,
    /// One question at a time. Other callers wait for its answer.
    pub(super) asking: Arc<tokio::sync::Mutex<()>>,
    /// How long it has to tell its identity.
    pub(super) timeout: Duration,
    /// The last call got no answer.
    pub(super) silent: AtomicBool,
}

impl Node {
    /// Makes a call whose answer counts: the server may vote, and it was the same server all the
    /// time. The call may take `share`, which begins once the server is identified. Both together
    /// end at `limit`.
    pub(super) async fn vote<T, F>(
        self: &Arc<Self>,
        limit: Instant,
        share: Duration,
        call: impl FnOnce(Instant) -> F,
    ) -> Result<T, Abstention>
    where
        F: Future<Output = Result<T, BackendError>>,
    {
        let unknown = |_: &Abstention| self.silent.store(true, Ordering::Relaxed);
        let generation = self.admitted(limit).await.inspect_err(unknown)?;
        let deadline = limit.min(Instant::now() + share);
        let answer = self.call(deadline, call(deadline)).await?;
        if self.probe.as_ref().map(|probe| probe.generation()) != generation {
            let reason = "it reconnected during the call, perhaps to a server that lost its data";
            return Err(Abstention::void(reason));
        }
        Ok(answer)
    }

    /// Makes a call whose answer is only information.
    pub(super) async fn call<T>(
        &self,
        deadline: Instant,
        call: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, Abstention> {
        let begun = Instant::now();
        let answer = match timeout_at(deadline + ANSWER_GRACE, call).await {
            Ok(answer) => answer.map_err(Abstention::from),
            Err(_) => Err(Abstention::late(begun.elapsed())),
        };
        self.silent.store(answer.is_err(), Ordering::Relaxed);
        answer.inspect_err(|_| self.suspect())
    }

    /// Whether the last call failed, so that the next one may fail too.
    pub(super) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// The identity of the node's server, if it was ever read.
    pub(super) fn identity(&self) -> Option<NodeIdentity> {
        lock(&self.eligibility).identity().cloned()
    }

    /// Reads the server's identity unless it is known, and waits for any answer.
    pub(super) async fn identify(self: &Arc<Self>, deadline: Instant) -> Result<(), Abstention> {
        self.admitted(deadline).await.map(drop)
    }

    async fn admitted(self: &Arc<Self>, deadline: Instant) -> Result<Option<u64>, Abstention> {
        let known = timeout_at(deadline + ANSWER_GRACE, self.admit()).await;
        known.unwrap_or_else(|_| Err(Abstention::not_asked("it did not say who it is in time")))
    }

    /// The connection that the node may vote on now. `None` if it is assumed never to lose data.
    async fn admit(self: &Arc<Self>) -> Result<Option<u64>, Abstention> {
        let Some(probe) = &self.probe else {
            return Ok(None);
        };
        if self.judge(probe.generation()).asks() {
            let turn = Arc::clone(&self.asking).lock_owned().await;
            if self.judge(probe.generation()).asks() {
                // Continues even without a caller. Otherwise a node that answers more slowly than
                // leases allow would never become known.
                let node = Arc::clone(self);
                let asked = tokio::spawn(async move {
                    let _turn = turn;
                    node.ask().await
                });
                let stopped = |_| Err(Abstention::not_asked("it was not asked who it is"));
                asked.await.unwrap_or_else(stopped)?;
            }
        }
        let generation = probe.generation();
        match self.judge(generation) {
            Judgement::Votes => Ok(Some(generation)),
            Judgement::Twin(label) => Err(Abstention::twin_of(&label)),
            Judgement::NotYet(left) => Err(Abstention::not_yet(left)),
            Judgement::Unvouched { left, .. } => Err(Abstention::unvouched(left)),
            Judgement::Ask => Err(Abstention::not_asked("it is reconnecting")),
        }
    }

    async fn ask(&self) -> Result<(), Abstention> {
        let Some(probe) = &self.probe else {
            return Ok(());
        };
        let deadline = Instant::now() + self.timeout;
        for _ in 0..MAX_IDENTITY_TRIES {
            let before = probe.generation();
            let identity = match timeout_at(deadline + ANSWER_GRACE, probe.identity(deadline)).await
            {
                Ok(Ok(identity)) => identity,
                Ok(Err(error)) => {
                    let reason = format!("it did not say who it is: {error}");
                    return Err(Abstention::not_asked(reason));
                }
                Err(_) => return Err(Abstention::not_asked("it did not say who it is in time")),
            };
            // Otherwise either of two connections may have carried this answer.
            if probe.generation() == before {
                let age = self.age(&identity, deadline).await;
                let twin = self.twin(&identity, age);
                let mut eligibility = lock(&self.eligibility);
                eligibility.learn(before, (identity, age), twin, clock::now(), self.max_lease);
                drop(eligibility);
                self.tell_of_others(probe, deadline);
                break;
            }
        }
        Ok(())
    }

    /// The age that the other nodes know of, unless this client already knows it. They get half of
    /// the remaining time: one that hangs must not keep this node from voting.
    async fn age(&self, identity: &NodeIdentity, deadline: Instant) -> Age {
        let run_id = &identity.run_id;
        let proven = lock(&self.eligibility).proven(run_id, clock::now(), self.max_lease);
        if let Some(proven) = proven {
            return Age {
                least: proven.min(identity.uptime),
                vouched: true,
            };
        }
        let half = deadline.saturating_duration_since(Instant::now()) / 2;
        let limits = (Instant::now() + half, self.timeout, self.max_lease);
        let node = (self.index, &*self.label);
        witnesses::age(&self.witnesses, node, identity, limits).await
    }

    /// Tells the server about the others that it does not know, because it may have been away when
    /// they were identified. No caller waits for this.
    fn tell_of_others(&self, probe: &Arc<dyn NodeProbe>, deadline: Instant) {
        let now = clock::now();
        let others: Vec<_> = lock(&self.servers)
            .iter()
            .filter(|(_, seen)| seen.index != self.index)
            .map(|(run_id, seen)| {
                let least = seen.age.least + now.since(seen.at);
                let sighting = witnesses::note_of(run_id, Age { least, ..seen.age });
                (Arc::clone(&seen.label), sighting)
            })
            .collect();
        let probe = Arc::clone(probe);
        tokio::spawn(async move {
            let told = others
                .iter()
                .map(|(label, sighting)| witnesses::remind(&probe, label, sighting, deadline));
            join_all(told).await;
        });
    }

    /// The other node behind which this server was first seen.
    fn twin(&self, identity: &NodeIdentity, age: Age) -> Option<Arc<str>> {
        let run_id = &identity.run_id;
        let mut servers = lock(&self.servers);
        servers.retain(|known, seen| seen.index != self.index || known == run_id);
        let own = || SeenServer {
            index: self.index,
            label: Arc::clone(&self.label),
            at: clock::now(),
            age,
        };
        let seen = servers.entry(run_id.clone()).or_insert_with(own);
        if seen.index == self.index && !seen.age.vouched {
            *seen = own();
        }
        (seen.index != self.index).then(|| Arc::clone(&seen.label))
    }

    fn judge(&self, generation: u64) -> Judgement {
        lock(&self.eligibility).judge(generation, clock::now(), self.recheck)
    }

    pub(super) fn suspect(&self) {
        lock(&self.eligibility).suspect();
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("label", &self.label)
            .field("backend", &self.backend.info().description)
            .field("probed", &self.probe.is_some())
            .finish_non_exhaustive()
    }
}
