//! Answers of a server.

mod server;

use std::sync::Arc;
use std::time::Duration;

use locktopus::{
    AcquireAttempt, AttemptOutcome, CounterAction, CounterRequest, Counters as _, Diagnostics as _,
    Directory as _, ExtendRequest, GroupOutcome, Groups as _, LockBackend as _, LockKind, LockName,
    LockTarget, MutexProfile, OwnerId, ReleaseOutcome, ReleaseRequest, ScanCursor, clock,
};
use locktopus_protocol::client::Reply;
use locktopus_protocol::{BackendOptions, RedisBackend};

use crate::input::Input;
use server::Server;

const LEASE: Duration = Duration::from_secs(30);
/// Short, so that retries soon stop.
const CALL: Duration = Duration::from_millis(20);

fn kinds() -> Vec<LockKind> {
    let single_key = LockKind::Mutex(MutexProfile::single_key().into());
    let held = LockKind::all().into_iter().filter(LockKind::is_held);
    held.chain([single_key]).collect()
}

/// A byte for a kind, a byte for a call, and then answers, in the format of `replies/server.rs`.
///
/// No answer makes a backend panic. An answer counts as a grant only if it says so and carries the
/// token that its kind needs.
///
/// # Panics
///
/// If one of these rules is broken.
pub fn replies(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = input.one_of(&kinds()).clone();
    let call = input.byte();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let server = Arc::new(Server::new(input));
    runtime
        .expect("a runtime")
        .block_on(asked(server, kind, call));
}

async fn asked(server: Arc<Server>, kind: LockKind, call: u8) {
    let options = BackendOptions {
        call_timeout: CALL,
        ..BackendOptions::default()
    };
    let Ok(backend) = RedisBackend::new(server.clone(), options).await else {
        return;
    };
    let name = LockName::new("lock").expect("a name");
    let target = LockTarget::new(name, kind.clone());
    let deadline = || clock::timer_in(CALL);
    let attempt = |target: &LockTarget| {
        let owner = target.kind().new_owner();
        AcquireAttempt::new(target.clone(), owner, LEASE, deadline())
    };
    match call % 9 {
        0 => {
            // Twice, because the second attempt uses what the first answer says about the server's
            // clock.
            for waits in [false, true] {
                let mut attempt = attempt(&target);
                attempt.place = waits.then_some(LEASE);
                if let Ok(AttemptOutcome::Granted { token }) = backend.attempt(&attempt).await {
                    assert_eq!(token.is_some(), kind.has_tokens(), "{kind:?}");
                    assert!(server.granted(), "a grant came of {:?}", server.last());
                }
            }
        }
        1 => {
            let other = LockTarget::new(
                LockName::new("{lock}:2").expect("a name"),
                LockKind::Reentrant,
            );
            let both = [
                attempt(&LockTarget::new(target.name().clone(), LockKind::Reentrant)),
                attempt(&other),
            ];
            if let Ok(GroupOutcome::Granted { tokens }) = backend.attempt_all(&both).await {
                assert!(
                    tokens.len() == 2 && tokens.iter().all(Option::is_some),
                    "{tokens:?}"
                );
                assert!(server.granted(), "a grant came of {:?}", server.last());
            }
        }
        2 => {
            let request = ReleaseRequest::new(target.clone(), kind.new_owner(), deadline());
            if let Ok(ReleaseOutcome::Released) = backend.release(&request).await {
                assert!(
                    matches!(server.last(), Some(Reply::Int(-1..))),
                    "{:?}",
                    server.last()
                );
            }
        }
        3 => {
            let requests =
                [(); 3].map(|()| ExtendRequest::new(target.clone(), kind.new_owner(), LEASE));
            let answers = backend.extend(&requests, deadline()).await;
            assert_eq!(answers.len(), requests.len());
        }
        4 => {
            if let Ok(state) = backend.inspect(&target, deadline()).await {
                let _ = (format!("{state:?}"), state.owners().count());
            }
        }
        5 => {
            if let Ok(eviction) = backend.evict(&target, deadline()).await {
                let _ = format!("{eviction:?}");
            }
        }
        6 => {
            for (kind, action) in [
                (LockKind::Semaphore, CounterAction::Add(1)),
                (LockKind::Latch, CounterAction::Read),
            ] {
                let target = LockTarget::new(target.name().clone(), kind);
                let operation = OwnerId::generate();
                let _ = backend
                    .counter(&CounterRequest {
                        target,
                        operation,
                        action,
                        deadline: deadline(),
                    })
                    .await;
            }
        }
        7 => {
            let cursor = server.text().map(ScanCursor);
            if let Ok(page) = backend.scan("", cursor, deadline()).await {
                let _ = format!("{page:?}");
            }
        }
        _ => {
            if let Ok(diagnosis) = backend.diagnose(deadline()).await {
                let _ = format!("{diagnosis:?}");
            }
        }
    }
    backend.close().await;
}
