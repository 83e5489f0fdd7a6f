//! The answer of an attempt if too few replicas have its grant: undone, or unknown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{
    AcquireAttempt, BackendErrorKind, Executed, LockBackend as _, LockKind, LockName, LockTarget,
    OwnerId, ReplicaNeed, SafetyMode, WakeUps as _,
};
use locktopus_protocol::{BackendOptions, ClientError, Pipelined, RedisBackend, Reply, Route};
use tokio::time::Instant;

use crate::stub::{self, Stub};

/// A token, and the time of its server in µs.
const NOW: i64 = 1_700_000_000_000_000;

/// Grants everything, and confirms nothing.
#[derive(Debug)]
struct Unconfirming {
    /// Its answer to `WAIT`, if not a number.
    refuses: Option<&'static str>,
    /// Whether it answers releases.
    undoes: bool,
    /// Whether the first attempt finds another library's clients in the queue, and that is
    /// confirmed.
    queues: AtomicBool,
}

#[async_trait]
impl Stub for Unconfirming {
    async fn command(&self, _: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        match args {
            [b"TIME"] => Ok(Reply::Array([NOW / 1_000_000, 0].map(Reply::Int).to_vec())),
            _ => std::future::pending().await,
        }
    }
    async fn pipeline(&self, _: Route, commands: &[&[&[u8]]]) -> Result<Pipelined, ClientError> {
        let replies = match commands {
            [_release] if self.undoes => vec![Ok(Reply::Int(0))],
            [_release] => std::future::pending().await,
            _ if self.queues.swap(false, Ordering::SeqCst) => vec![
                Ok(Reply::Array(
                    [3, 100, NOW, 1, NOW, 1].map(Reply::Int).to_vec(),
                )),
                Ok(Reply::Bytes("OK".into())),
                Ok(Reply::Int(1)),
            ],
            _ => vec![
                Ok(Reply::Int(NOW)),
                Ok(Reply::Bytes("OK".into())),
                self.refuses
                    .map_or(Ok(Reply::Int(0)), |line| Err(ClientError::rejected(line))),
            ],
        };
        let node = "n".to_owned();
        Ok(Pipelined { node, replies })
    }
}

async fn attempt(refuses: Option<&'static str>, undoes: bool) -> (BackendErrorKind, Executed) {
    asked(LockKind::Reentrant, refuses, undoes, false).await
}

async fn asked(
    kind: LockKind,
    refuses: Option<&'static str>,
    undoes: bool,
    queues: bool,
) -> (BackendErrorKind, Executed) {
    let options = BackendOptions {
        safety: SafetyMode::Replicated {
            need: ReplicaNeed::One,
            timeout: Duration::from_millis(50),
        },
        ..BackendOptions::default()
    };
    let client = Arc::new(Unconfirming {
        refuses,
        undoes,
        queues: queues.into(),
    });
    let backend = RedisBackend::new(stub::client(&client), options)
        .await
        .unwrap();
    let target = LockTarget::new(LockName::new("a").unwrap(), kind);
    let second = Duration::from_secs(1);
    let deadline = Instant::now() + second;
    let owner = OwnerId::generate();
    let waits = backend.subscribe(&target, deadline).await.unwrap();
    waits.claim(&owner);
    let attempt = AcquireAttempt::new(target, owner, second * 30, deadline);
    let error = backend.attempt(&attempt).await.unwrap_err();
    (error.kind(), error.executed())
}

/// The owner id must not be used again, for any reason that `WAIT` failed.
#[tokio::test(start_paused = true)]
async fn what_was_not_surely_undone_is_not_replicated() {
    use BackendErrorKind::{Denied, NotReplicated, Unavailable};
    let (denied, lost) = (Some("NOPERM no WAIT for you"), Some("READONLY a replica"));
    for (refuses, kind) in [(None, NotReplicated), (denied, Denied), (lost, Unavailable)] {
        assert_eq!(attempt(refuses, true).await, (kind, Executed::No));
        let unknown = (NotReplicated, Executed::Maybe);
        assert_eq!(attempt(refuses, false).await, unknown);
    }
}

/// A waiter of a fair lock attempts again once it listens as other libraries' waiters do. If that
/// attempt gets the lock, and undoing it is uncertain, the waiter no longer has the place that the
/// first answer reported.
#[tokio::test(start_paused = true)]
async fn a_second_question_that_was_not_surely_undone_is_no_place_in_line() {
    let told = asked(LockKind::Fair, None, false, true).await;
    assert_eq!(told, (BackendErrorKind::NotReplicated, Executed::Maybe));
}
