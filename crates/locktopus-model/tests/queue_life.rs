//! How long the keys of a waiting queue live: as long as somebody in it may still come, and not for ever.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{
    AcquireAttempt, AttemptOutcome, LockBackend as _, LockKind, LockName, LockTarget, OwnerId,
};
use locktopus_model::ModelClient;
use locktopus_protocol::{BackendOptions, Keys, RedisBackend, RedisClient};
use tokio::time::Instant;

const HOUR: Duration = Duration::from_secs(60 * 60);
const SECOND: Duration = Duration::from_secs(1);
/// Even a queue of the hasty is kept for this long.
const LEAST: Duration = Duration::from_secs(60);

/// A lock that somebody holds, and who waits for it.
struct Queue {
    client: Arc<ModelClient>,
    backend: RedisBackend,
    target: LockTarget,
}

impl Queue {
    async fn of(kind: LockKind) -> Self {
        let client = Arc::new(ModelClient::default());
        let connected = Arc::clone(&client) as Arc<dyn RedisClient>;
        let backend = RedisBackend::new(connected, BackendOptions::default());
        let queue = Self {
            client,
            backend: backend.await.unwrap(),
            target: LockTarget::new(LockName::new("it").unwrap(), kind),
        };
        let mut holding = queue.attempt(&queue.target.kind().new_owner(), None);
        holding.recall = true;
        let held = queue.backend.attempt(&holding).await.unwrap();
        assert!(matches!(held, AttemptOutcome::Granted { .. }), "{held:?}");
        queue
    }

    /// Of a holder that leaves a note beside the queue for as long as its lease.
    fn attempt(&self, owner: &OwnerId, place: Option<Duration>) -> AcquireAttempt {
        let (target, deadline) = (self.target.clone(), Instant::now() + SECOND);
        AcquireAttempt {
            place,
            ..AcquireAttempt::new(target, owner.clone(), HOUR, deadline)
        }
    }

    /// Comes to wait, or says that it still does.
    async fn wait(&self, owner: &OwnerId, place: Duration) {
        let attempt = self.attempt(owner, Some(place));
        let queued = self.backend.attempt(&attempt).await.unwrap();
        assert!(
            matches!(queued, AttemptOutcome::Queued { .. }),
            "{queued:?}"
        );
    }

    /// What is left of the queue, and of the records of its waiters.
    fn left(&self) -> [Duration; 2] {
        let names = Keys::of(&self.target).names;
        [2, 3].map(|key: usize| {
            let words = [b"PTTL".to_vec(), names[key].clone().into_bytes()];
            let left = self.client.server().command(&words).unwrap();
            let left = left.as_int().unwrap();
            let left = u64::try_from(left).expect("the key is there, and has an end");
            Duration::from_millis(left)
        })
    }

    fn pass(&self, time: Duration) {
        self.client.server().clock += i64::try_from(time.as_micros()).unwrap();
    }
}

fn kinds() -> [LockKind; 3] {
    [
        LockKind::Reentrant,
        LockKind::Mutex(Arc::default()),
        LockKind::Write,
    ]
}

#[tokio::test(start_paused = true)]
async fn a_hasty_waiter_does_not_shorten_the_life_of_a_patient_ones_place() {
    for kind in kinds() {
        let queue = Queue::of(kind.clone()).await;
        let (patient, hasty) = (kind.new_owner(), kind.new_owner());
        queue.wait(&patient, HOUR).await;
        let before = queue.left();
        assert!(
            before.iter().all(|left| *left >= HOUR),
            "{kind:?}: {before:?}"
        );
        // Both as a newcomer, for whom chance decides, and as one that is known.
        for _ in 0..64 {
            queue.wait(&hasty, SECOND).await;
            queue.wait(&kind.new_owner(), SECOND).await;
            queue.pass(Duration::from_micros(1));
        }
        let after = queue.left();
        assert!(
            after.iter().all(|left| *left >= HOUR),
            "{kind:?}: {after:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_still_waits_keeps_its_place_alive() {
    for kind in kinds() {
        let queue = Queue::of(kind.clone()).await;
        let (first, patient) = (kind.new_owner(), kind.new_owner());
        queue.wait(&first, SECOND).await;
        queue.wait(&patient, HOUR).await;
        // Once it says so again; a newcomer's word is soon followed by that.
        queue.wait(&patient, HOUR).await;
        let left = queue.left();
        assert!(left.iter().all(|left| *left >= HOUR), "{kind:?}: {left:?}");
        queue.pass(HOUR / 2);
        queue.wait(&patient, HOUR).await;
        let left = queue.left();
        assert!(left.iter().all(|left| *left >= HOUR), "{kind:?}: {left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_waiter_does_not_shorten_the_life_of_the_holders_note() {
    let queue = Queue::of(LockKind::Reentrant).await;
    queue.wait(&LockKind::Reentrant.new_owner(), SECOND).await;
    let [places, records] = queue.left();
    assert!(places <= LEAST, "{places:?}: nobody waits for longer");
    assert!(
        records > LEAST,
        "{records:?}: the holder is asked to give the lock back by it"
    );
}
