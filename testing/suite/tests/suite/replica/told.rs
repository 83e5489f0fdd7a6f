//! The messages of every script that hands something on, as heard at a replica.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{
    AcquireAttempt, AttemptOutcome, CounterAction, CounterRequest, DynBackend, LockKind, LockName,
    LockTarget, Mode, OwnerId, ReleaseOutcome, ReleaseRequest,
};
use locktopus_protocol::Keys;
use locktopus_servers::topology::{Deployment, Node, TopologyKind};
use tokio::time::Instant;

use crate::common::raw::{Raw, Value};
use crate::common::{LONG, SOON, eventually, unique, url_for};
use crate::replica::replica_of;

/// Longer than any lease here.
pub(crate) const QUARANTINE: &str = "&safety=quarantine&quarantine_max_lease=30s";

/// Records for the server that its history is known, so that it holds nothing back.
pub(crate) async fn vouch(place: &Deployment) {
    let node = place.primary().await.unwrap();
    let id = node.info("replication", "master_replid").await.unwrap();
    let words = [
        "HSET",
        "locktopus_history",
        "until",
        "0",
        "lease",
        "30000",
        "history",
    ];
    let words: Vec<_> = words.into_iter().chain(id.as_deref()).collect();
    assert_eq!(Raw::to(node).await.say(&words).await.int(), 3);
}

const LEASE: Duration = Duration::from_secs(30);
/// The lease of a holder that releases nothing.
const SHORT: Duration = Duration::from_millis(100);
const PLACE: Duration = Duration::from_secs(30);

/// How a held lock becomes free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Released,
    /// The lease ends, and a newcomer finds the lock free.
    Over,
    Evicted,
    /// More permits.
    Added,
}

/// Every kind with hand-off, by every script that does it; first without a listener on the primary,
/// then with one.
pub(crate) async fn by_every_script(place: Arc<Deployment>, options: &'static str) -> String {
    let url = format!("{}&timeout=5s{options}", url_for(&place, "redis"));
    let backend = locktopus::connect_backend(&url).await.unwrap();
    let mut tried = 0;
    for kind in [
        LockKind::Reentrant,
        LockKind::Mutex(Arc::default()),
        LockKind::Fair,
        LockKind::Write,
        LockKind::Read,
        LockKind::Semaphore,
        LockKind::PermitSemaphore,
    ] {
        for way in [Way::Released, Way::Over, Way::Evicted, Way::Added] {
            let counted = matches!(kind, LockKind::Semaphore | LockKind::PermitSemaphore);
            if way != Way::Added || counted {
                for listens in [false, true] {
                    let case = Told::begin(&place, &backend, &kind).await;
                    case.told(way, listens).await;
                    tried += 1;
                }
            }
        }
    }
    backend.close().await;
    format!("{tried} times nothing but the truth")
}

/// One holder, one waiter, and an observer that listens at a replica to the waiter's messages.
struct Told<'a> {
    backend: &'a DynBackend,
    target: LockTarget,
    primary: &'a Node,
    replica: &'a Node,
    sharded: bool,
}

impl<'a> Told<'a> {
    async fn begin(place: &'a Deployment, backend: &'a DynBackend, kind: &LockKind) -> Self {
        let name = unique("told");
        let target = LockTarget::new(LockName::new(&name).unwrap(), kind.clone());
        let primary = place.primary_for(&name).await.unwrap();
        let replica = replica_of(place, primary).await;
        let sharded = matches!(place.kind(), TopologyKind::Cluster { .. });
        Self {
            backend,
            target,
            primary,
            replica,
            sharded,
        }
    }

    async fn told(&self, way: Way, listens: bool) {
        let what = format!(
            "{} {way:?}, counted: {listens}",
            self.target.kind().as_str()
        );
        if self.target.kind().mode() == Mode::Permits {
            self.count(CounterAction::Initialise(1)).await;
        }
        let holder = self
            .hold(if way == Way::Over { SHORT } else { LEASE })
            .await;
        let waiter = self.target.kind().new_owner();
        let AttemptOutcome::Queued { .. } = self.attempt(&waiter, &self.target, LEASE, true).await
        else {
            panic!("{what}: no place");
        };
        let inbox = self.inbox(&waiter).await;
        let mut at_replica = self.listen(self.replica, &inbox).await;
        let at_primary = match listens {
            true => Some(self.listen(self.primary, &inbox).await),
            false => None,
        };

        self.becomes_free(way, &holder).await;

        let heard = self.heard(&mut at_replica, &inbox).await;
        let holds = self.holds(&waiter).await;
        assert_eq!(holds, listens, "{what}: {heard:?}");
        let tokens = heard
            .iter()
            .filter(|word| word.parse::<u64>().is_ok_and(|token| token > 0));
        assert_eq!(tokens.count(), usize::from(holds), "{what}: {heard:?}");
        if !listens {
            assert!(heard.contains(&"d".to_owned()), "{what}: {heard:?}");
        }
        drop(at_primary);
    }

    /// Acquires it, so that the waiter must wait. A reader waits for a writer.
    async fn hold(&self, lease: Duration) -> (LockTarget, OwnerId) {
        let kind = match self.target.kind() {
            LockKind::Read => LockKind::Write,
            kind => kind.clone(),
        };
        let target = LockTarget::new(self.target.name().clone(), kind);
        let owner = target.kind().new_owner();
        // The first use of a slot is no reason to fail.
        eventually("a holder", LONG, async || {
            match self.attempt(&owner, &target, lease, false).await {
                AttemptOutcome::Granted { .. } => Ok(()),
                other => Err(other),
            }
        })
        .await;
        (target, owner)
    }

    async fn attempt(
        &self,
        owner: &OwnerId,
        target: &LockTarget,
        lease: Duration,
        queues: bool,
    ) -> AttemptOutcome {
        let attempt = AcquireAttempt {
            place: queues.then_some(PLACE),
            ..AcquireAttempt::new(target.clone(), owner.clone(), lease, Instant::now() + SOON)
        };
        self.backend.attempt(&attempt).await.unwrap()
    }

    async fn count(&self, action: CounterAction) {
        let request = CounterRequest {
            target: self.target.clone(),
            operation: OwnerId::generate(),
            action,
            deadline: Instant::now() + SOON,
        };
        assert!(self.backend.counter(&request).await.unwrap().changed);
    }

    async fn becomes_free(&self, way: Way, (target, owner): &(LockTarget, OwnerId)) {
        let deadline = Instant::now() + SOON;
        match way {
            Way::Released => {
                let request = ReleaseRequest::new(target.clone(), owner.clone(), deadline);
                let outcome = self.backend.release(&request).await.unwrap();
                assert_eq!(outcome, ReleaseOutcome::Released);
            }
            Way::Over => {
                // An attempt without a place in the queue: its own grant is no hand-off.
                eventually("the end of a lease", SOON, async || {
                    let state = self.backend.inspect(target, Instant::now() + SOON).await;
                    match state.unwrap().holders.as_slice() {
                        [] => Ok(()),
                        holders => Err(holders.len()),
                    }
                })
                .await;
                let newcomer = target.kind().new_owner();
                let _ = self.attempt(&newcomer, target, LEASE, false).await;
            }
            Way::Evicted => {
                let evicted = self.backend.evict(target, deadline).await.unwrap();
                assert_eq!(evicted.evicted.len(), 1);
            }
            Way::Added => self.count(CounterAction::Add(1)).await,
        }
    }

    /// The waiter's channel, as its place on the server records it.
    async fn inbox(&self, waiter: &OwnerId) -> String {
        let keys = Keys::of(&self.target);
        let mut raw = Raw::to(self.primary).await;
        let record = if *self.target.kind() == LockKind::Fair {
            let waiters = keys.names[3].as_bytes();
            raw.ask(&[b"HGET", waiters, waiter.expose()]).await.text()
        } else {
            let queue = keys.names[2].as_bytes();
            raw.ask(&[b"ZRANGE", queue, b"0", b"0"]).await.list()[0].text()
        };
        let (_, inbox) = record.rsplit_once(' ').expect("a record of a place");
        inbox.to_owned()
    }

    async fn listen(&self, node: &Node, channel: &str) -> Raw {
        let mut raw = Raw::to(node).await;
        let subscribe = if self.sharded {
            "SSUBSCRIBE"
        } else {
            "SUBSCRIBE"
        };
        assert_eq!(
            raw.say(&[subscribe, channel]).await.list()[2],
            Value::Int(1)
        );
        raw
    }

    /// The first words of all messages so far.
    async fn heard(&self, raw: &mut Raw, channel: &str) -> Vec<String> {
        let publish = if self.sharded { "SPUBLISH" } else { "PUBLISH" };
        Raw::to(self.primary)
            .await
            .say(&[publish, channel, "end"])
            .await;
        let mut heard = Vec::new();
        loop {
            let message = raw.hear().await.list()[2].text();
            if message == "end" {
                return heard;
            }
            heard.push(message.split(' ').next().unwrap().to_owned());
        }
    }

    async fn holds(&self, owner: &OwnerId) -> bool {
        let state = self.backend.inspect(&self.target, Instant::now() + SOON);
        let holders = state.await.unwrap().holders;
        holders.iter().any(|holder| holder.owner == *owner)
    }
}
