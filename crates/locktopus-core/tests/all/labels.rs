//! Instances with a label are known by it, and nothing else depends on it.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{InstanceRecord, Label, LockError, Locktopus, OwnerId, process_uuid};
use tokio::time::{Instant, advance, sleep};

const MINUTE: Duration = Duration::from_secs(60);

/// The label that another process sees for an owner.
async fn known(locks: &Locktopus, owner: &OwnerId) -> Option<String> {
    let who = locks.who([owner]).await.unwrap();
    who.of(owner).map(|record| record.label().to_owned())
}

/// Waits until the instances have announced their labels this many times in all.
async fn said(backend: &Scripted, times: usize) {
    until("said", || backend.calls("announce").len() >= times).await;
}

async fn owner_of(locks: &Locktopus) -> OwnerId {
    let guard = locks.lock("a").acquire().await.unwrap();
    let owner = guard.owner_id().clone();
    guard.release().await.unwrap();
    owner
}

#[tokio::test(start_paused = true)]
async fn without_a_label_nothing_is_sent() {
    let backend = Scripted::new();
    let locks = backend.locks();
    let owner = owner_of(&locks).await;
    sleep(10 * MINUTE).await;
    assert!(owner.expose().starts_with(process_uuid().as_bytes()));
    let nobody: [&OwnerId; 0] = [];
    locks.who(nobody).await.unwrap();
    let foreign = OwnerId::from_bytes(*b"3f2a91c4-0b0b-4c70-9705-0c0c0c0c0c0c:7");
    assert!(locks.who([&foreign]).await.unwrap().of(&foreign).is_none());
    let _ = locks.shutdown(MINUTE).await;
    assert_eq!(backend.calls("announce").len(), 0);
    assert_eq!(backend.calls("instances").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_label_is_known_for_as_long_as_its_instance_lives() {
    let (backend, other) = (Scripted::new(), Scripted::new().other());
    let operator = backend.other();
    let worker = backend.builder().label("worker").build().unwrap();
    let owner = owner_of(&worker).await;
    assert!(!owner.expose().starts_with(process_uuid().as_bytes()));
    said(&backend, 1).await;
    for _ in 0..10 {
        assert_eq!(known(&operator, &owner).await.as_deref(), Some("worker"));
        sleep(MINUTE).await;
    }
    assert_eq!(known(&other, &owner).await, None);
    let times = backend.calls("announce").len();
    assert!(
        (24..=31).contains(&times),
        "{times} announcements in ten minutes"
    );
    let _ = worker.shutdown(MINUTE).await;
    assert_eq!(known(&operator, &owner).await, None);
    assert_eq!(backend.calls("announce").len(), times + 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_is_forgotten_and_what_dies_ends() {
    let backend = Scripted::new();
    let operator = backend.other();
    let worker = backend.builder().label("worker").build().unwrap();
    let owner = owner_of(&worker).await;
    said(&backend, 1).await;
    drop(worker);
    said(&backend, 2).await;
    assert_eq!(known(&operator, &owner).await, None);

    let worker = backend.builder().label("worker").build().unwrap();
    let owner = owner_of(&worker).await;
    said(&backend, 3).await;
    // A dead instance announces nothing any more.
    backend.always("announce", Fate::Hang);
    advance(MINUTE).await;
    assert!(known(&operator, &owner).await.is_some());
    advance(MINUTE + Duration::from_secs(1)).await;
    assert_eq!(known(&operator, &owner).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_outlives_the_instance() {
    let backend = Scripted::new();
    let operator = backend.other();
    let label = Label::new("worker").left_for(10 * MINUTE);
    let worker = backend.builder().label(label).build().unwrap();
    let owner = owner_of(&worker).await;
    let _ = worker.shutdown(MINUTE).await;
    advance(9 * MINUTE).await;
    assert_eq!(known(&operator, &owner).await.as_deref(), Some("worker"));
    advance(MINUTE).await;
    assert_eq!(known(&operator, &owner).await, None);
}

#[tokio::test(start_paused = true)]
async fn instances_of_one_process_are_told_apart() {
    let backend = Scripted::new();
    let operator = backend.other();
    let [one, two] = ["one", "two"].map(|label| backend.builder().label(label).build().unwrap());
    let guard = one.lock("a").acquire().await.unwrap();
    let permits = two.permit_semaphore("s");
    permits.initialise(1).await.unwrap();
    let permit = permits.permits(1).acquire().await.unwrap();
    said(&backend, 2).await;
    let owners = [guard.owner_id().clone(), permit.owner_id().clone()];
    let who = operator.who(&owners).await.unwrap();
    let labels = owners
        .each_ref()
        .map(|owner| who.of(owner).map(InstanceRecord::label));
    assert_eq!(labels, [Some("one"), Some("two")]);
}

/// Each instance is queried once, and in batches of limited size.
#[tokio::test(start_paused = true)]
async fn many_owners_are_few_questions() {
    let backend = Scripted::new();
    let locks = backend.locks();
    let owners: Vec<_> = (0..1000).map(|_| OwnerId::generate()).collect();
    locks.who(&owners).await.unwrap();
    assert_eq!(backend.calls("instances").len(), 1, "all of one instance");
    let strangers = (0..600_u32).map(|n| {
        let [a, b, c, d] = n.to_be_bytes();
        OwnerId::from_bytes([a, b, c, d, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    });
    let strangers: Vec<_> = strangers.collect();
    locks.who(&strangers).await.unwrap();
    assert_eq!(backend.calls("instances").len(), 1 + 3);
}

/// Locks are acquired, renewed, handed on and released as usual, and the record is written once
/// that is possible.
#[tokio::test(start_paused = true)]
async fn announcements_that_fail_harm_no_lock() {
    for fate in [Fate::Refuse, Fate::Deny, Fate::LoseReply, Fate::Hang] {
        let backend = Scripted::new();
        backend.always("announce", fate);
        let worker = backend.builder().label("worker").build().unwrap();
        let guard = worker.lock("a").acquire().await.unwrap();
        sleep(5 * MINUTE).await;
        guard.ensure_valid().unwrap();
        let said = backend.calls("announce").len();
        assert!((10..40).contains(&said), "{fate:?}: {said} announcements");
        backend.always("announce", Fate::Pass);
        sleep(MINUTE).await;
        let known = known(&backend.other(), guard.owner_id()).await;
        assert_eq!(known.as_deref(), Some("worker"), "{fate:?}");
        guard.release().await.unwrap();
        backend.always("announce", fate);
        let report = worker.shutdown(MINUTE).await;
        assert_eq!(report.abandoned, 0, "{fate:?}");
    }
}

/// Servers that were away, or that a client had no connection to, may have lost the record.
#[tokio::test(start_paused = true)]
async fn a_waiter_writes_its_record_again_after_an_outage() {
    let backend = Scripted::new();
    let worker = backend.builder().label("worker").build().unwrap();
    said(&backend, 1).await;
    let (begun, group) = (Instant::now(), backend.deafen());
    backend.next("attempt", [Fate::Refuse]);
    drop(worker.lock("a").acquire().await.unwrap());
    said(&backend, 2).await;
    let held = backend.other().lock("b").acquire().await.unwrap();
    let resync = async {
        until("waiting", || !group.is_empty()).await;
        group.resync();
        said(&backend, 3).await;
        held.release().await.unwrap();
    };
    let (waited, ()) = tokio::join!(worker.lock("b").acquire(), resync);
    drop(waited.unwrap());
    assert!(begun.elapsed() < MINUTE / 6, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_bad_label_is_refused_before_anything_is_sent() {
    let backend = Scripted::new();
    for label in [
        Label::new(""),
        Label::new("a\u{7}"),
        Label::new("a").host("\n"),
    ] {
        let built = backend.builder().label(label).build();
        assert!(matches!(built, Err(LockError::Option(_))), "{built:?}");
    }
    sleep(MINUTE).await;
    assert_eq!(backend.calls("announce").len(), 0);
}
