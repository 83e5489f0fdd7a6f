//! The server freezes or dies while many requests wait for their answers. The client sends most of
//! them together, and each must end as a request that was sent alone.

use std::time::Duration;

use futures_util::future::join_all;
use locktopus::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, DynBackend, Executed, LockKind,
    LockName, LockTarget, OwnerId, ReleaseRequest,
};
use tokio::time::Instant;

use crate::common::raw::{Raw, Value};
use crate::common::{LONG, SOON, eventually, unique, url_for};
use crate::failover::At;

const CROWD: usize = 60;
const PATIENCE: Duration = Duration::from_millis(700);
/// Longer than the test.
const LEASE: Duration = Duration::from_secs(300);

struct One {
    target: LockTarget,
    owner: OwnerId,
}

fn crowd() -> Vec<One> {
    let one = |_| One {
        target: LockTarget::new(LockName::new(unique("crowd")).unwrap(), LockKind::Reentrant),
        owner: LockKind::Reentrant.new_owner(),
    };
    (0..CROWD).map(one).collect()
}

impl One {
    async fn attempt(
        &self,
        backend: &DynBackend,
        patience: Duration,
    ) -> Result<AttemptOutcome, BackendError> {
        let (target, owner) = (self.target.clone(), self.owner.clone());
        let deadline = Instant::now() + patience;
        let attempt = AcquireAttempt::new(target, owner, LEASE, deadline);
        backend.attempt(&attempt).await
    }

    async fn release(&self, backend: &DynBackend) -> Result<(), BackendError> {
        let (target, owner) = (self.target.clone(), self.owner.clone());
        let request = ReleaseRequest::new(target, owner, Instant::now() + SOON);
        backend.release(&request).await.map(drop)
    }
}

pub(crate) async fn in_the_middle((place, client): At) -> String {
    let backend = locktopus::connect_backend(&url_for(&place, client))
        .await
        .unwrap();
    let node = &place.nodes()[0];
    node.freeze().await.unwrap();
    let (late, lost) = (crowd(), crowd());
    let times_out = async {
        let answers = join_all(late.iter().map(|one| one.attempt(&backend, PATIENCE))).await;
        for answer in answers {
            let error = answer.unwrap_err();
            let told = (error.kind(), error.executed());
            assert_eq!(
                told,
                (BackendErrorKind::Timeout, Executed::Maybe),
                "{error}"
            );
        }
        // The others were sent before these timed out.
        node.crash().await.unwrap();
    };
    let attempts = lost.iter().map(|one| one.attempt(&backend, SOON));
    let (answers, ()) = tokio::join!(join_all(attempts), times_out);
    for answer in answers {
        let error = answer.unwrap_err();
        let told = (error.kind(), error.executed());
        let unavailable = (BackendErrorKind::Unavailable, Executed::Maybe);
        assert_eq!(told, unavailable, "{error}");
    }
    node.start().await.unwrap();
    let mut raw = Raw::to(node).await;
    for one in late.iter().chain(&lost) {
        eventually("a release", LONG, async || one.release(&backend).await).await;
        let key = one.target.name().to_string();
        assert_eq!(raw.say(&["EXISTS", &key]).await, Value::Int(0), "{key}");
    }
    // The server works again.
    let again = crowd();
    let granted = join_all(again.iter().map(|one| one.attempt(&backend, SOON))).await;
    for (answer, one) in granted.into_iter().zip(&again) {
        let answer = answer.unwrap();
        assert!(
            matches!(answer, AttemptOutcome::Granted { .. }),
            "{answer:?}"
        );
        one.release(&backend).await.unwrap();
    }
    backend.close().await;
    format!("{CROWD} timed out, {CROWD} were lost, and {CROWD} were granted later")
}
