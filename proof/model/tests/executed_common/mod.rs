//! Locks on a modelled server in various states, and all operations that a backend offers on them.

mod about;

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, CounterAction, CounterRequest, Counters as _,
    Directory as _, ExtendRequest, Groups as _, Linger, LockBackend as _, LockKind, LockName,
    LockTarget, MutexProfile, OwnerId, ReleaseRequest, SafetyMode,
};
use locktopus_model::redis::{ScriptTime, Server};
use locktopus_model::{ModelClient, was_here};
use locktopus_protocol::{BackendOptions, Keys, RedisBackend};
use tokio::time::Instant;

pub(crate) use about::{is_about, is_whole};

/// Longer than any case takes.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);

/// The state of a lock before an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    HeldByAnother,
    /// Held by the caller.
    Held,
    HeldAndOthersWait,
    /// The caller is first in the queue, and the lease of the holder has ended.
    FreeAndWaitingFirst,
    FreeAndOthersWait,
}

impl State {
    pub(crate) const ALL: [Self; 6] = [
        Self::Free,
        Self::HeldByAnother,
        Self::Held,
        Self::HeldAndOthersWait,
        Self::FreeAndWaitingFirst,
        Self::FreeAndOthersWait,
    ];
}

/// The operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Attempt,
    Queue,
    Release,
    Leave,
    Extend,
    Inspect,
    Evict,
    Group,
    Count(CounterAction),
}

impl Op {
    pub(crate) const ALL: [Self; 14] = [
        Self::Attempt,
        Self::Queue,
        Self::Release,
        Self::Leave,
        Self::Extend,
        Self::Inspect,
        Self::Evict,
        Self::Group,
        Self::Count(CounterAction::Read),
        Self::Count(CounterAction::Initialise(3)),
        Self::Count(CounterAction::Resize(5)),
        Self::Count(CounterAction::Add(2)),
        Self::Count(CounterAction::Drain),
        Self::Count(CounterAction::Delete),
    ];

    pub(crate) fn is_for(self, kind: &LockKind) -> bool {
        match self {
            Self::Group => matches!(kind, LockKind::Reentrant | LockKind::Mutex(_)),
            Self::Count(_) => is_counted(kind),
            Self::Leave => kind.can_linger(),
            _ => true,
        }
    }
}

/// Every kind that has scripts of its own.
pub(crate) fn kinds() -> Vec<LockKind> {
    vec![
        LockKind::Reentrant,
        LockKind::Mutex(Arc::default()),
        LockKind::Mutex(Arc::new(MutexProfile::python_redis_lock())),
        LockKind::Fair,
        LockKind::Read,
        LockKind::Write,
        LockKind::Semaphore,
        LockKind::PermitSemaphore,
    ]
}

fn is_counted(kind: &LockKind) -> bool {
    matches!(kind, LockKind::Semaphore | LockKind::PermitSemaphore)
}

/// A lock in a state.
pub(crate) struct Bench {
    pub(crate) client: Arc<ModelClient>,
    pub(crate) target: LockTarget,
    options: BackendOptions,
    backend: RedisBackend,
    owner: OwnerId,
    before: Server,
}

impl Bench {
    pub(crate) async fn new(kind: LockKind, safety: SafetyMode, state: State) -> Self {
        let client = Arc::new(ModelClient::with_replicas(2));
        client.server().script_time = ScriptTime::Frozen;
        let target = LockTarget::new(LockName::new("it").unwrap(), kind);
        let options = BackendOptions {
            safety,
            ..BackendOptions::default()
        };
        let plain = connect(&client, &BackendOptions::default()).await;
        let owner = target.kind().new_owner();
        arrange(&plain, &client, &target, &owner, state).await;
        if matches!(safety, SafetyMode::Quarantine { .. }) {
            let words = was_here(&client.server().replid);
            client.server().command(&words).unwrap();
        }
        let before = client.server().clone();
        let backend = connect(&client, &options).await;
        Self {
            client,
            target,
            options,
            backend,
            owner,
            before,
        }
    }

    /// The part of the caller's owner id that all stored forms share.
    pub(crate) fn owner_in_short(&self) -> String {
        let owner = self.owner.expose();
        let short = if owner.len() == 16 {
            &owner[..14]
        } else {
            owner
        };
        String::from_utf8_lossy(short).into_owned()
    }

    /// Restores the state.
    pub(crate) fn reset(&self) {
        *self.client.server() = self.before.clone();
    }

    /// As [`reset`](Self::reset), and for a new client that has learned nothing.
    pub(crate) async fn reset_all(&mut self) {
        self.client.plan([]);
        self.reset();
        self.backend = connect(&self.client, &self.options).await;
    }

    /// The lock's keys.
    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        let keys = Keys::of(&self.target).names;
        keys.iter().map(|key| key.clone().into_bytes()).collect()
    }

    pub(crate) async fn ask(&self, op: Op) -> Result<(), BackendError> {
        let (target, owner) = (self.target.clone(), self.owner.clone());
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut attempt = AcquireAttempt::new(target.clone(), owner.clone(), LONG, deadline);
        attempt.recall = true;
        match op {
            Op::Attempt => self.backend.attempt(&attempt).await.map(drop),
            Op::Queue => {
                attempt.place = Some(LONG);
                self.backend.attempt(&attempt).await.map(drop)
            }
            Op::Group => {
                let name = LockName::new("another").unwrap();
                let other = LockTarget::new(name, LockKind::Reentrant);
                let second = AcquireAttempt::new(other, OwnerId::generate(), LONG, deadline);
                self.backend.attempt_all(&[second, attempt]).await.map(drop)
            }
            Op::Release => {
                let request = ReleaseRequest::new(target, owner, deadline);
                self.backend.release(&request).await.map(drop)
            }
            Op::Leave => {
                let (heir, time) = (target.kind().new_owner(), LONG / 2);
                let request = ReleaseRequest {
                    linger: Some(Linger { heir, time }),
                    ..ReleaseRequest::new(target, owner, deadline)
                };
                self.backend.release(&request).await.map(drop)
            }
            Op::Extend => {
                let batch = [ExtendRequest {
                    keep_token: Some(LONG * 4),
                    ..ExtendRequest::new(target, owner, LONG * 2)
                }];
                self.backend
                    .extend(&batch, deadline)
                    .await
                    .remove(0)
                    .map(drop)
            }
            Op::Inspect => self.backend.inspect(&target, deadline).await.map(drop),
            Op::Evict => self.backend.evict(&target, deadline).await.map(drop),
            Op::Count(action) => {
                let request = CounterRequest {
                    target,
                    operation: OwnerId::generate(),
                    action,
                    deadline,
                };
                self.backend.counter(&request).await.map(drop)
            }
        }
    }
}

async fn connect(client: &Arc<ModelClient>, options: &BackendOptions) -> RedisBackend {
    let client = Arc::clone(client) as Arc<dyn locktopus_protocol::RedisClient>;
    RedisBackend::new(client, options.clone()).await.unwrap()
}

async fn arrange(
    backend: &RedisBackend,
    client: &ModelClient,
    target: &LockTarget,
    owner: &OwnerId,
    state: State,
) {
    let deadline = Instant::now() + LONG;
    let kind = target.kind();
    if is_counted(kind) {
        let request = CounterRequest {
            target: target.clone(),
            operation: OwnerId::generate(),
            action: CounterAction::Initialise(1),
            deadline,
        };
        let _ = backend.counter(&request).await.unwrap();
    }
    let attempt = |owner: &OwnerId, lease, place| AcquireAttempt {
        place,
        ..AcquireAttempt::new(target.clone(), owner.clone(), lease, deadline)
    };
    let (another, third) = (kind.new_owner(), kind.new_owner());
    let take = async |owner: &OwnerId, lease| {
        let outcome = backend.attempt(&attempt(owner, lease, None)).await.unwrap();
        assert!(
            matches!(outcome, AttemptOutcome::Granted { .. }),
            "{outcome:?}"
        );
    };
    let wait = async |owner: &OwnerId| {
        let _ = backend
            .attempt(&attempt(owner, LONG, Some(LONG)))
            .await
            .unwrap();
    };
    match state {
        State::Free => {}
        State::HeldByAnother => take(&another, LONG).await,
        State::Held => take(owner, LONG).await,
        State::HeldAndOthersWait => {
            take(owner, LONG).await;
            wait(&another).await;
            wait(&third).await;
        }
        State::FreeAndWaitingFirst => {
            take(&third, SHORT).await;
            wait(owner).await;
            wait(&another).await;
            client.server().clock += 200_000;
        }
        State::FreeAndOthersWait => {
            take(&third, SHORT).await;
            wait(&another).await;
            client.server().clock += 200_000;
        }
    }
    listen(client, target);
}

/// Makes all waiters listen.
fn listen(client: &ModelClient, target: &LockTarget) {
    let Some(waiters) = Keys::of(target).names.get(3).cloned() else {
        return;
    };
    let mut server = client.server();
    let words = [b"HVALS".to_vec(), waiters.into_bytes()];
    let records = server.command(&words).unwrap();
    for record in records.items() {
        let record = String::from_utf8_lossy(record.bytes()).into_owned();
        if let Some(inbox) = record.rsplit(' ').next() {
            let inbox = inbox.as_bytes().to_vec();
            server.listeners.insert((false, inbox), 1);
        }
    }
}

/// The keys on the server, except the replication marks, which say nothing.
pub(crate) fn picture(server: &Server) -> String {
    let dump = server.dump();
    let lines = dump.lines().filter(|line| !line.contains("locktopus_mark"));
    lines.collect::<Vec<_>>().join("\n")
}
