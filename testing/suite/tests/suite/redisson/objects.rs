//! Every object of Redisson with one holder, and its counterpart here, in both roles.

use std::time::Duration;

use locktopus::{LockError, Locktopus, WaitStrategy};

use crate::common::{HANDED, HANDED_LEASE, PATIENT, close, eventually};
use crate::redisson_topology::ours::{Held, Ours};
use crate::redisson_topology::theirs::{LONG_LEASE, Theirs};
use crate::redisson_topology::{At, our_waiters};

/// A lease whose end a case waits for.
const SHORT: Duration = Duration::from_millis(400);

pub(crate) struct Pair {
    pub(crate) theirs: &'static str,
    ours: Ours,
    /// Whether they announce their release.
    announces: bool,
    /// Whether their thread shows that their waiter waits for a message.
    waits: bool,
}

pub(crate) static PAIRS: [Pair; 7] = [
    pair("lock", Ours::Lock),
    Pair {
        waits: false,
        ..pair("fenced", Ours::Lock)
    },
    Pair {
        announces: false,
        waits: false,
        ..pair("spin", Ours::Lock)
    },
    pair("fair", Ours::Fair),
    pair("write", Ours::Write),
    pair("non-reentrant", Ours::Lock),
    pair("non-reentrant-fair", Ours::Fair),
];

const fn pair(theirs: &'static str, ours: Ours) -> Pair {
    Pair {
        theirs,
        ours,
        announces: true,
        waits: true,
    }
}

/// Their hold blocks us. Their release serves our waiter, by its message if there is one, and then
/// the lock is ours.
pub(crate) async fn they_hold(at: At, pair: &'static Pair) -> String {
    let locks = at.locks().await;
    let mut theirs = Theirs::new(&at, pair.theirs);
    let name = theirs.name.clone();
    theirs.does("lock", &[LONG_LEASE]).await;
    assert!(pair.ours.try_take(&locks, &name).await.is_none());
    let strategy = match pair.announces {
        true => HANDED,
        false => WaitStrategy::default(),
    };
    let waiter = pair.ours.waits(&locks, &name, strategy);
    our_waiters(&at.place, &name, pair.ours, 1).await;
    assert!(!waiter.is_finished());
    theirs.does("unlock", &[]).await;
    let held = served(waiter).await;
    theirs.cannot("try", &[]).await;
    theirs.does("is-locked", &[]).await;
    theirs.cannot("is-mine", &[]).await;
    theirs.cannot_unlock().await;
    held.ensure_valid().unwrap();
    held.release().await.unwrap();
    theirs.cannot("is-locked", &[]).await;
    theirs.does("try", &["0", LONG_LEASE]).await;
    theirs.does("unlock", &[]).await;
    close(locks).await;
    pair.theirs.to_owned()
}

/// As [`they_hold`] and [`we_hold`], with a `NameMapper` in Java and a namespace in `locks`. The
/// messages must use both as well.
pub(crate) async fn under_mapped_names(at: At, locks: Locktopus, pair: &'static Pair) -> String {
    let mut theirs = Theirs::new(&at, pair.theirs);
    let name = theirs.name.clone();
    theirs.does("lock", &[LONG_LEASE]).await;
    assert!(pair.ours.try_take(&locks, &name).await.is_none());
    let strategy = match pair.announces {
        true => HANDED,
        false => WaitStrategy::default(),
    };
    let waiter = pair.ours.waits(&locks, &name, strategy);
    eventually("a waiter of ours", PATIENT, async || {
        let state = match pair.ours {
            Ours::Lock => locks.lock(&*name).inspect().await,
            Ours::Fair => locks.fair_lock(&*name).inspect().await,
            Ours::Write => locks.rw_lock(&*name).inspect().await,
        };
        match state.unwrap().waiters.len() {
            1 => Ok(()),
            other => Err(other),
        }
    })
    .await;
    assert!(!waiter.is_finished());
    theirs.does("unlock", &[]).await;
    let held = served(waiter).await;
    theirs.cannot("try", &[]).await;
    handed_over(held, &mut theirs, &locks, pair).await;
    pair.theirs.to_owned()
}

/// Their waiter gets the lock that we release.
async fn handed_over(held: Held, theirs: &mut Theirs, locks: &Locktopus, pair: &Pair) {
    let name = theirs.name.clone();
    theirs.begins("lock", &[LONG_LEASE]).await;
    if pair.waits {
        theirs.still_waits().await;
    }
    held.ensure_valid().unwrap();
    held.release().await.unwrap();
    theirs.served().await;
    theirs.does("is-mine", &[]).await;
    assert!(pair.ours.try_take(locks, &name).await.is_none());
    theirs.does("unlock", &[]).await;
}

/// Our hold blocks them; their waiter gets the lock when we release it.
pub(crate) async fn we_hold(at: At, pair: &'static Pair) -> String {
    let locks = at.locks().await;
    let mut theirs = Theirs::new(&at, pair.theirs);
    let name = theirs.name.clone();
    let strategy = WaitStrategy::default();
    let held = pair.ours.take(&locks, &name, HANDED_LEASE, strategy).await;
    theirs.cannot("try", &[]).await;
    theirs.cannot_unlock().await;
    handed_over(held, &mut theirs, &locks, pair).await;
    let again = pair.ours.try_take(&locks, &name).await.expect("free");
    again.release().await.unwrap();
    close(locks).await;
    pair.theirs.to_owned()
}

/// When a lease ends the other side gets in, and the former holder's late release is refused.
pub(crate) async fn leases_end(at: At, pair: &'static Pair) -> String {
    let locks = at.locks().await;
    let mut theirs = Theirs::new(&at, pair.theirs);
    let name = theirs.name.clone();
    let lease = SHORT.as_millis().to_string();
    theirs.does("try", &["0", &lease]).await;
    let strategy = WaitStrategy::default();
    let held = served(pair.ours.waits(&locks, &name, strategy)).await;
    theirs.cannot_unlock().await;
    held.ensure_valid().unwrap();
    held.release().await.unwrap();

    let held = pair.ours.take(&locks, &name, SHORT, strategy).await;
    theirs.begins("lock", &[LONG_LEASE]).await;
    held.ended().await;
    theirs.served().await;
    let late = held.release().await;
    assert!(matches!(late, Err(LockError::Lost { .. })), "{late:?}");
    theirs.does("is-mine", &[]).await;
    theirs.does("unlock", &[]).await;
    close(locks).await;
    pair.theirs.to_owned()
}

/// A forced release takes the lock away from the other side, which hears of it.
pub(crate) async fn by_force(at: At, pair: &'static Pair) -> String {
    let locks = at.locks().await;
    let mut theirs = Theirs::new(&at, pair.theirs);
    let name = theirs.name.clone();
    let held = pair
        .ours
        .take(&locks, &name, HANDED_LEASE, WaitStrategy::default())
        .await;
    theirs.does("force-unlock", &[]).await;
    let mut next = theirs.another();
    next.does("try", &["0", LONG_LEASE]).await;
    let late = held.release().await;
    assert!(matches!(late, Err(LockError::Lost { .. })), "{late:?}");
    next.does("is-mine", &[]).await;
    let broken = match pair.ours {
        Ours::Lock => locks.lock(&*name).force_release("test").await,
        Ours::Fair => locks.fair_lock(&*name).force_release("test").await,
        Ours::Write => locks.rw_lock(&*name).force_release("test").await,
    };
    assert_eq!(broken.unwrap().evicted.len(), 1);
    // In Redisson, releasing a free fair lock is no error.
    match pair.ours {
        Ours::Fair => drop(next.does("unlock", &[]).await),
        Ours::Lock | Ours::Write => next.cannot_unlock().await,
    }
    let held = pair.ours.try_take(&locks, &name).await.expect("free");
    next.cannot_unlock().await;
    held.ensure_valid().unwrap();
    held.release().await.unwrap();
    close(locks).await;
    pair.theirs.to_owned()
}

async fn served(waiter: tokio::task::JoinHandle<Held>) -> Held {
    let served = tokio::time::timeout(crate::common::PATIENT, waiter).await;
    served.expect("ours is served").unwrap()
}
