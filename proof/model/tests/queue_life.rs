//! How long the keys of a queue live: as long as one of its waiters may still come, and not for
//! ever.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{
    AcquireAttempt, AttemptOutcome, LockBackend as _, LockKind, LockName, LockTarget, OwnerId,
    PlaceHint, ReleaseOutcome, ReleaseRequest,
};
use locktopus_model::ModelClient;
use locktopus_protocol::{BackendOptions, Keys, RedisBackend, RedisClient};
use tokio::time::Instant;

const HOUR: Duration = Duration::from_secs(60 * 60);
const SECOND: Duration = Duration::from_secs(1);
/// The shortest life of a queue.
const LEAST: Duration = Duration::from_secs(60);

/// A lock with a holder, and its waiters.
struct Queue {
    client: Arc<ModelClient>,
    backend: RedisBackend,
    target: LockTarget,
    holder: OwnerId,
}

impl Queue {
    async fn of(kind: LockKind) -> Self {
        let client = Arc::new(ModelClient::default());
        let connected = Arc::clone(&client) as Arc<dyn RedisClient>;
        let backend = RedisBackend::new(connected, BackendOptions::default());
        let queue = Self {
            client,
            backend: backend.await.unwrap(),
            holder: kind.new_owner(),
            target: LockTarget::new(LockName::new("it").unwrap(), kind),
        };
        let mut holding = queue.attempt(&queue.holder, None);
        (holding.recall, holding.lease) = (true, HOUR * 2);
        let held = queue.backend.attempt(&holding).await.unwrap();
        assert!(matches!(held, AttemptOutcome::Granted { .. }), "{held:?}");
        queue
    }

    /// An attempt whose holder leaves a note beside the queue for as long as its lease.
    fn attempt(&self, owner: &OwnerId, place: Option<Duration>) -> AcquireAttempt {
        let (target, deadline) = (self.target.clone(), Instant::now() + SECOND);
        AcquireAttempt {
            place,
            ..AcquireAttempt::new(target, owner.clone(), HOUR, deadline)
        }
    }

    /// Queues, or renews its place.
    async fn wait(&self, owner: &OwnerId, place: Duration) {
        let attempt = self.attempt(owner, Some(place));
        let queued = self.backend.attempt(&attempt).await.unwrap();
        let in_line = matches!(queued, AttemptOutcome::Queued { .. });
        assert!(in_line, "{queued:?}");
    }

    /// Gives back a hold or a place.
    async fn release(&self, owner: &OwnerId, place_hint: Option<PlaceHint>) -> ReleaseOutcome {
        let (target, deadline) = (self.target.clone(), Instant::now() + SECOND);
        let request = ReleaseRequest {
            place_hint,
            ..ReleaseRequest::new(target, owner.clone(), deadline)
        };
        self.backend.release(&request).await.unwrap()
    }

    /// The length of the queue, and the owners with a note beside it.
    fn standing(&self) -> (i64, Vec<String>) {
        let names = Keys::of(&self.target).names;
        let say = |command: &str, key: usize| {
            let words = [command.into(), names[key].clone().into_bytes()];
            self.client.server().command(&words).unwrap()
        };
        let notes = say("HKEYS", 3);
        let notes = notes.items().iter();
        let notes = notes.map(|note| String::from_utf8_lossy(note.bytes()).into());
        let notes = notes.filter(|note: &String| !note.starts_with('!'));
        (say("ZCARD", 2).as_int().unwrap(), notes.collect())
    }

    /// Subscribes the first waiter to its inbox.
    fn first_listens(&self) {
        let queue = Keys::of(&self.target).names[2].clone();
        let words = ["ZRANGE", &queue, "0", "0"].map(|word| word.as_bytes().to_vec());
        let mut server = self.client.server();
        let reply = server.command(&words).unwrap();
        let member = reply.items()[0].bytes();
        let inbox = member.rsplit(|byte| *byte == b' ').next().unwrap();
        server.listeners.insert((false, inbox.to_vec()), 1);
    }

    /// The remaining time of the queue, and of the records of its waiters.
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
        queue.pass(HOUR / 4);
        queue.wait(&patient, HOUR).await;
        let before = queue.left();
        assert!(before.iter().min() >= Some(&HOUR), "{kind:?}: {before:?}");
        // Both as a newcomer, whose note is left to chance, and as a known waiter.
        for _ in 0..64 {
            queue.wait(&hasty, SECOND).await;
            queue.wait(&kind.new_owner(), SECOND).await;
            queue.pass(Duration::from_micros(1));
        }
        let after = queue.left();
        assert!(after.iter().min() >= Some(&HOUR), "{kind:?}: {after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_still_waits_keeps_its_place_alive() {
    for kind in kinds() {
        let queue = Queue::of(kind.clone()).await;
        let (first, patient) = (kind.new_owner(), kind.new_owner());
        queue.wait(&first, SECOND).await;
        queue.wait(&patient, HOUR).await;
        // It has to renew its place once: a newcomer soon does that, and renewals are noted.
        queue.wait(&patient, HOUR).await;
        queue.pass(HOUR / 4);
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

/// The request of a waiter.
fn hint(place: Duration) -> PlaceHint {
    PlaceHint {
        place,
        lease: HOUR,
        tokens: 1,
    }
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_is_noted_once_the_ticket_is_old_and_forgotten_with_the_place() {
    for kind in kinds() {
        let queue = Queue::of(kind.clone()).await;
        let (waiter, other) = (kind.new_owner(), kind.new_owner());
        for owner in [&waiter, &waiter, &other] {
            queue.wait(owner, HOUR).await;
            queue.pass(Duration::from_micros(1));
        }
        assert_eq!(queue.standing(), (2, vec![]), "{kind:?}: young ones");
        queue.first_listens();
        queue.pass(HOUR / 8);
        queue.wait(&waiter, HOUR).await;
        let noted = String::from_utf8_lossy(waiter.expose()).into_owned();
        assert_eq!(queue.standing(), (2, vec![noted]), "{kind:?}");
        // All tickets have expired by now, but not the heartbeat of the first waiter.
        queue.pass(HOUR * 15 / 16);
        let released = queue.release(&queue.holder, None).await;
        assert_eq!(released, ReleaseOutcome::Released, "{kind:?}");
        assert_eq!(queue.standing().1, Vec::<String>::new(), "{kind:?}");
        let released = queue.release(&waiter, None).await;
        assert_eq!(released, ReleaseOutcome::Released, "{kind:?}: handed on");
        assert_eq!(queue.standing(), (0, vec![]), "{kind:?}: the dead");
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_is_given_up_whether_or_not_it_is_known_what_it_looks_like() {
    for kind in kinds() {
        for (terms, age) in [
            (Some(hint(HOUR)), Duration::ZERO),
            (Some(hint(HOUR)), HOUR / 4),
            (None, Duration::ZERO),
            (None, HOUR / 4),
        ] {
            let queue = Queue::of(kind.clone()).await;
            let others: Vec<OwnerId> = (0..300).map(|_| kind.new_owner()).collect();
            let (before, after) = others.split_at(280);
            let leaving = kind.new_owner();
            for owner in before.iter().chain([&leaving]).chain(after) {
                queue.wait(owner, HOUR).await;
                queue.pass(Duration::from_micros(1));
            }
            queue.pass(age);
            queue.wait(&leaving, HOUR).await;
            let released = queue.release(&leaving, terms).await;
            assert_eq!(released, ReleaseOutcome::NotHeld, "{kind:?}, {terms:?}");
            assert_eq!(queue.standing(), (300, vec![]), "{kind:?}, {terms:?}");
            // A stranger does not give up a place of others.
            let stranger = kind.new_owner();
            let _ = queue.release(&stranger, terms).await;
            assert_eq!(queue.standing().0, 300, "{kind:?}, {terms:?}");
        }
    }
}

/// Only the first waiter polls when the lease of the holder ends.
#[tokio::test(start_paused = true)]
async fn a_first_attempt_that_runs_twice_is_told_when_the_lease_in_the_way_ends() {
    for kind in kinds() {
        let queue = Queue::of(kind.clone()).await;
        let waiter = kind.new_owner();
        let attempt = AcquireAttempt {
            first: true,
            ..queue.attempt(&waiter, Some(HOUR))
        };
        for _ in 0..2 {
            let queued = queue.backend.attempt(&attempt).await.unwrap();
            let AttemptOutcome::Queued {
                remaining, ahead, ..
            } = queued
            else {
                panic!("{kind:?}: {queued:?}");
            };
            assert_eq!((remaining.is_some(), ahead), (true, 0), "{kind:?}");
        }
        assert_eq!(queue.standing().0, 1, "{kind:?}");
        let behind = AcquireAttempt {
            owner: kind.new_owner(),
            ..attempt
        };
        let queued = queue.backend.attempt(&behind).await.unwrap();
        let second = matches!(queued, AttemptOutcome::Queued { ahead: 1, .. });
        assert!(second, "{kind:?}: {queued:?}");
    }
}

impl Queue {
    async fn crowd_of_hasty(&self, kind: &LockKind, many: usize) {
        for _ in 0..many {
            self.wait(&kind.new_owner(), SECOND).await;
        }
    }

    /// Asks again, and returns whether it was granted the lock.
    async fn has(&self, owner: &OwnerId, place: Duration) -> bool {
        let attempt = self.attempt(owner, Some(place));
        let outcome = self.backend.attempt(&attempt).await.unwrap();
        matches!(outcome, AttemptOutcome::Granted { .. })
    }

    fn has_place(&self, owner: &OwnerId) -> bool {
        let queue = Keys::of(&self.target).names[2].clone();
        let words = ["ZRANGE", &queue, "0", "-1"].map(|word| word.as_bytes().to_vec());
        let members = self.client.server().command(&words).unwrap();
        let owner = owner.expose();
        members.items().iter().any(|member| {
            let mut parts = member.bytes().windows(owner.len());
            parts.any(|part| part == owner)
        })
    }

    /// Queues like another program, or another version of this one.
    fn stand_as(&self, ticket: &str, member: &str) {
        let names = Keys::of(&self.target).names;
        let words = ["ZADD", &names[2], ticket, member].map(|word| word.as_bytes().to_vec());
        self.client.server().command(&words).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_clock_was_set_back_the_dead_are_dead_when_their_place_is_over() {
    for kind in kinds() {
        let queue = Queue::of(kind.clone()).await;
        let (early, late) = (kind.new_owner(), kind.new_owner());
        queue.wait(&early, HOUR).await;
        queue.client.server().clock -= i64::try_from(HOUR.as_micros()).unwrap();
        queue.crowd_of_hasty(&kind, 70).await;
        queue.wait(&late, HOUR).await;
        queue.pass(SECOND * 2);
        assert_eq!(queue.standing().1.len(), 71, "{kind:?}: by notes alone");
        let left = queue.release(&early, Some(hint(HOUR))).await;
        assert_eq!(left, ReleaseOutcome::NotHeld, "{kind:?}");
        let released = queue.release(&queue.holder, None).await;
        assert_eq!(released, ReleaseOutcome::Released, "{kind:?}");
        assert!(queue.has(&late, HOUR).await, "{kind:?}: nobody is ahead");
        assert_eq!(queue.standing(), (0, vec![]), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_is_granted_the_lock_behind_very_many_dead_leaves_the_line() {
    for kind in kinds() {
        for deaf in [0, 1] {
            let queue = Queue::of(kind.clone()).await;
            for _ in 0..deaf {
                queue.wait(&kind.new_owner(), HOUR).await;
            }
            // The release removes a thousand, and so does each following poll.
            queue.crowd_of_hasty(&kind, 2200).await;
            let late = kind.new_owner();
            queue.wait(&late, HOUR).await;
            queue.pass(SECOND * 2);
            let released = queue.release(&queue.holder, None).await;
            assert_eq!(released, ReleaseOutcome::Released, "{kind:?}");
            while !queue.has(&late, HOUR).await {}
            assert!(!queue.has_place(&late), "{kind:?}: it would be handed back");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_place_is_removed_whenever_it_came() {
    for kind in kinds() {
        for ticket in ["1", "8000000000000000"] {
            let queue = Queue::of(kind.clone()).await;
            queue.stand_as(ticket, "somebody");
            let released = queue.release(&queue.holder, None).await;
            assert_eq!(released, ReleaseOutcome::Released, "{kind:?}, {ticket}");
            assert!(queue.has(&kind.new_owner(), HOUR).await, "{kind:?}");
            assert_eq!(queue.standing(), (0, vec![]), "{kind:?}, {ticket}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_clock_was_set_back_nothing_is_handed_to_the_dead_who_seem_to_listen() {
    for kind in kinds() {
        let queue = Queue::of(kind.clone()).await;
        let (early, hasty) = (kind.new_owner(), kind.new_owner());
        queue.wait(&early, HOUR).await;
        queue.client.server().clock -= i64::try_from(HOUR.as_micros()).unwrap();
        queue.wait(&hasty, SECOND).await;
        let left = queue.release(&early, Some(hint(HOUR))).await;
        assert_eq!(left, ReleaseOutcome::NotHeld, "{kind:?}");
        queue.first_listens();
        queue.pass(SECOND * 2);
        let released = queue.release(&queue.holder, None).await;
        assert_eq!(released, ReleaseOutcome::Released, "{kind:?}");
        let handed = queue.release(&hasty, None).await;
        assert_eq!(handed, ReleaseOutcome::NotHeld, "{kind:?}: it is dead");
    }
}
