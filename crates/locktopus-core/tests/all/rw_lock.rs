//! Read-write locks: sharing, order, re-entry, downgrade, no upgrade.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{LockError, Locktopus, LostCause, Mode, Owner};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, sleep, timeout};

const MOMENT: Duration = Duration::from_millis(50);

fn locks() -> Locktopus {
    Locktopus::builder(MemoryBackend::new()).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn readers_share_and_writers_do_not() {
    let locks = locks();
    let rw = locks.rw_lock("a");
    let one = rw.read().acquire().await.unwrap();
    let two = rw.read().acquire().await.unwrap();
    assert_eq!((one.token(), one.fence()), (None, None));
    assert!(rw.write().try_acquire().await.unwrap().is_none());
    let state = rw.inspect().await.unwrap();
    assert_eq!(state.holders.len(), 2);
    assert!(state.holders.iter().all(|holder| holder.mode == Mode::Read));
    one.release().await.unwrap();
    two.release().await.unwrap();
    let writer = rw.write().acquire().await.unwrap();
    assert_eq!(writer.fence().unwrap().token(), writer.token().unwrap());
    assert!(rw.read().try_acquire().await.unwrap().is_none());
    assert!(rw.write().try_acquire().await.unwrap().is_none());
    writer.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiting_writer_comes_before_later_readers() {
    let locks = locks();
    let rw = locks.rw_lock("a");
    let reader = rw.read().acquire().await.unwrap();
    let writer = tokio::spawn(rw.write().acquire());
    sleep(MOMENT).await;
    assert!(
        rw.read().try_acquire().await.unwrap().is_none(),
        "overtakes the writer"
    );
    let late = [
        tokio::spawn(rw.read().acquire()),
        tokio::spawn(rw.read().acquire()),
    ];
    sleep(MOMENT).await;
    reader.release().await.unwrap();
    let writer = timeout(MOMENT, writer).await.unwrap().unwrap().unwrap();
    assert!(late.iter().all(|task| !task.is_finished()));
    writer.release().await.unwrap();
    let begun = Instant::now();
    for task in late {
        task.await.unwrap().unwrap().release().await.unwrap();
    }
    assert!(begun.elapsed() < MOMENT, "readers go together");
}

#[tokio::test(start_paused = true)]
async fn an_owner_enters_again_past_a_waiting_writer() {
    let locks = locks();
    let (rw, me) = (locks.rw_lock("a"), Owner::new());
    let outer = rw.read().owner(&me).acquire().await.unwrap();
    let writer = tokio::spawn(rw.write().acquire());
    sleep(MOMENT).await;
    let inner = rw.read().owner(&me).try_acquire().await.unwrap().unwrap();
    assert_eq!(inner.hold_count(), 2);
    outer.release().await.unwrap();
    sleep(MOMENT).await;
    assert!(!writer.is_finished());
    inner.release().await.unwrap();
    let writer = writer.await.unwrap().unwrap();
    let again = writer.reenter().unwrap();
    writer.release().await.unwrap();
    again.ensure_valid().unwrap();
    again.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn reading_does_not_become_writing() {
    let locks = locks();
    let (rw, me) = (locks.rw_lock("a"), Owner::new());
    let reading = rw.read().owner(&me).acquire().await.unwrap();
    let writing = rw.write().owner(&me).wait_at_most(MOMENT);
    let error = writing.acquire().await.unwrap_err();
    assert!(matches!(error, LockError::UpgradeRefused { .. }), "{error}");
    assert!(error.to_string().contains("downgrade"), "{error}");
    let error = me
        .scope(async { rw.write().try_acquire().await.unwrap_err() })
        .await;
    assert!(matches!(error, LockError::UpgradeRefused { .. }), "{error}");
    // Others may wait as usual, and the owner may write once it has stopped reading.
    assert!(rw.write().try_acquire().await.unwrap().is_none());
    reading.release().await.unwrap();
    let writing = rw.write().owner(&me).acquire().await.unwrap();
    writing.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_writer_reads_at_once_and_releases_in_any_order() {
    let store = MemoryBackend::new();
    let locks = Locktopus::builder(store.clone()).build().unwrap();
    let rw = locks.rw_lock("a");
    for write_first in [true, false] {
        let me = Owner::new();
        let writing = rw.write().owner(&me).acquire().await.unwrap();
        let waiting = tokio::spawn(rw.read().acquire());
        sleep(MOMENT).await;
        let reading = rw.read().owner(&me).try_acquire().await.unwrap().unwrap();
        assert_eq!(reading.owner_id(), writing.owner_id());
        assert!(!waiting.is_finished(), "the writer is alone");
        if write_first {
            writing.release().await.unwrap();
            let other = timeout(MOMENT, waiting).await.unwrap().unwrap().unwrap();
            reading.ensure_valid().unwrap();
            assert!(rw.write().try_acquire().await.unwrap().is_none());
            reading.release().await.unwrap();
            other.release().await.unwrap();
        } else {
            reading.release().await.unwrap();
            sleep(MOMENT).await;
            assert!(!waiting.is_finished());
            writing.release().await.unwrap();
            waiting.await.unwrap().unwrap().release().await.unwrap();
        }
        until("nothing is left", || store.population() == (0, 0)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn downgrading_wakes_readers_and_lets_no_writer_in() {
    let locks = locks();
    let (rw, me) = (locks.rw_lock("a"), Owner::new());
    let request = rw.write().owner(&me).fixed_lease(Duration::from_secs(9));
    let writing = request.acquire().await.unwrap();
    let readers = [(); 3].map(|()| tokio::spawn(rw.read().acquire()));
    sleep(MOMENT).await;
    let reading = timeout(MOMENT, writing.downgrade()).await.unwrap().unwrap();
    for reader in readers {
        let reader = timeout(MOMENT, reader).await.expect("woken at once");
        reader.unwrap().unwrap().release().await.unwrap();
    }
    assert!(rw.write().try_acquire().await.unwrap().is_none());
    assert!(reading.remaining() <= Duration::from_secs(9));
    let again = rw.read().owner(&me).acquire().await.unwrap();
    assert_eq!(again.hold_count(), 2, "the owner is known as a reader");
    let writing = rw.write().owner(&me).wait_at_most(MOMENT);
    let error = writing.acquire().await.unwrap_err();
    assert!(matches!(error, LockError::UpgradeRefused { .. }), "{error}");
    again.release().await.unwrap();
    let Ok(ticket) = reading.into_ticket() else {
        panic!("the id belongs to the reader alone now")
    };
    let reading = rw
        .read()
        .adopt(&ticket.expose().parse().unwrap())
        .await
        .unwrap();
    reading.release().await.unwrap();
    assert!(rw.write().try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_used_twice_does_not_travel() {
    let locks = locks();
    let writing = locks.rw_lock("a").write().acquire().await.unwrap();
    let reading = writing.read().await.unwrap();
    let Err(reading) = reading.into_ticket() else {
        panic!("the writer still uses the id")
    };
    let Err(writing) = writing.into_ticket() else {
        panic!("the reader still uses the id")
    };
    reading.release().await.unwrap();
    let Ok(ticket) = writing.into_ticket() else {
        panic!("the writer is alone again")
    };
    let writing = locks.rw_lock("a").write().adopt(&ticket).await.unwrap();
    let reading = writing.downgrade().await.unwrap();
    reading.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_writer_is_not_downgraded() {
    let store = MemoryBackend::new();
    let locks = Locktopus::builder(store.clone()).build().unwrap();
    let rw = locks.rw_lock("a");
    let writing = rw.write().acquire().await.unwrap();
    let target =
        locktopus_core::LockTarget::new(writing.name().clone(), locktopus_core::LockKind::Write);
    assert!(store.forget(&target));
    let thief = rw.write().acquire().await.unwrap();
    let error = writing.downgrade().await.unwrap_err();
    let Some(guard) = error.into_guard() else {
        panic!("the guard comes back")
    };
    drop(guard);
    until("given back", || locks.background_tasks() == 0).await;
    thief.ensure_valid().unwrap();
    // The same with readers only: the old id reads, but not as a continuation.
    thief.release().await.unwrap();
    let writing = rw.write().acquire().await.unwrap();
    assert!(store.forget(&target));
    let error = LockError::from(writing.downgrade().await.unwrap_err());
    let LockError::Lost { cause, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(cause, LostCause::Missing);
    until("nothing is left", || store.population() == (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_under_a_writers_id_survives_lost_answers() {
    let (script, locks) = Scripted::with_locks();
    let writing = locks.rw_lock("a").write().acquire().await.unwrap();
    script.next("attempt", [Fate::LoseReply, Fate::LoseReply]);
    let reading = writing.downgrade().await.unwrap();
    let attempts = script.calls("attempt");
    assert_eq!(attempts.len(), 4);
    assert!(
        attempts
            .iter()
            .all(|call| call.owners == attempts[0].owners)
    );
    reading.release().await.unwrap();
    until("nothing is left", || script.store.population() == (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_release_on_its_way_does_not_end_the_next_reading() {
    let (script, locks) = Scripted::with_locks();
    let writing = locks.rw_lock("a").write().acquire().await.unwrap();
    let reading = writing.read().await.unwrap();
    // The release of this reader arrives late.
    script.next("release", [Fate::Late(MOMENT)]);
    drop(reading);
    let reading = writing.read().await.unwrap();
    writing.release().await.unwrap();
    sleep(MOMENT * 4).await;
    let state = locks.rw_lock("a").inspect().await.unwrap();
    assert_eq!(state.holders.len(), 1, "the reader is still there");
    reading.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reading_that_was_given_up_leaves_nothing() {
    let (script, locks) = Scripted::with_locks();
    let writing = locks.rw_lock("a").write().acquire().await.unwrap();
    script.next("attempt", [Fate::Late(MOMENT)]);
    assert!(timeout(MOMENT / 2, writing.read()).await.is_err(), "cut");
    until("given back", || locks.background_tasks() == 0).await;
    let state = locks.rw_lock("a").inspect().await.unwrap();
    let modes: Vec<_> = state.holders.iter().map(|holder| holder.mode).collect();
    assert_eq!(modes, [Mode::Exclusive]);
    writing.read().await.unwrap().release().await.unwrap();
    writing.release().await.unwrap();
    assert_eq!(script.store.population(), (0, 0));
}
