//! Semaphores: permits, crashes, resizing, draining.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{
    Executed, LockError, Locktopus, MAX_PERMITS, MAX_SEMAPHORE_PERMITS, Owner, Phase, Semaphore,
};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn both(locks: &Locktopus) -> [Semaphore; 2] {
    [locks.semaphore("plain"), locks.permit_semaphore("ids")]
}

fn locks() -> Locktopus {
    Locktopus::builder(MemoryBackend::new()).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn permits_are_shared_out_and_come_back() {
    for semaphore in both(&locks()) {
        assert_eq!(semaphore.available().await.unwrap(), None);
        assert!(semaphore.initialise(5).await.unwrap());
        assert!(!semaphore.initialise(9).await.unwrap(), "only once");
        let two = semaphore.permits(2).acquire().await.unwrap();
        let three = semaphore.permits(3).acquire().await.unwrap();
        assert_eq!((two.permits(), two.token()), (2, None));
        assert_eq!(semaphore.available().await.unwrap(), Some(0));
        assert!(semaphore.permits(1).try_acquire().await.unwrap().is_none());
        let state = semaphore.inspect().await.unwrap();
        let mut held: Vec<_> = state.holders.iter().map(|holder| holder.holds).collect();
        held.sort_unstable();
        assert_eq!((held, state.available), (vec![2, 3], Some(0)));
        two.release().await.unwrap();
        drop(three);
        let back = || async { semaphore.available().await.unwrap() };
        while back().await != Some(5) {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_big_request_is_not_starved_by_small_ones() {
    for semaphore in both(&locks()) {
        semaphore.initialise(3).await.unwrap();
        let [one, two] = [semaphore.permits(1), semaphore.permits(1)];
        let (one, two) = (one.acquire().await.unwrap(), two.acquire().await.unwrap());
        let big = tokio::spawn(semaphore.permits(3).acquire());
        sleep(SECOND / 10).await;
        assert!(
            semaphore.permits(1).try_acquire().await.unwrap().is_none(),
            "one is free, but somebody waits for it"
        );
        one.release().await.unwrap();
        sleep(SECOND / 10).await;
        assert!(!big.is_finished());
        two.release().await.unwrap();
        let big = timeout(SECOND / 10, big).await.unwrap().unwrap().unwrap();
        big.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_permits_of_a_crashed_holder_come_back_after_its_lease() {
    let store = MemoryBackend::new();
    let locks = Locktopus::builder(store.clone()).build().unwrap();
    for semaphore in both(&locks) {
        semaphore.initialise(2).await.unwrap();
    }
    let crashed = Locktopus::builder(store.another_client()).build().unwrap();
    let lease = 4 * SECOND;
    for semaphore in both(&crashed) {
        let guard = semaphore.permits(2).renewed_lease(lease).acquire().await;
        // Neither released nor renewed any more.
        std::mem::forget(guard.unwrap());
    }
    // Renewed as long as the process lives.
    sleep(20 * lease).await;
    for semaphore in both(&locks) {
        assert_eq!(semaphore.available().await.unwrap(), Some(0));
    }
    let waiting = both(&locks).map(|semaphore| tokio::spawn(semaphore.permits(2).acquire()));
    sleep(SECOND / 10).await;
    let _ = crashed.shutdown(Duration::ZERO).await;
    drop(crashed);
    for task in waiting {
        let guard = timeout(lease + SECOND, task).await.expect("after a lease");
        guard.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_fixed_lease_ends_by_itself() {
    for semaphore in both(&locks()) {
        semaphore.initialise(1).await.unwrap();
        let request = semaphore.permits(1).fixed_lease(SECOND);
        let guard = request.acquire().await.unwrap();
        guard.lost().await;
        sleep(SECOND / 10).await;
        assert_eq!(semaphore.available().await.unwrap(), Some(1));
        assert!(guard.release().await.is_err());
        assert_eq!(semaphore.available().await.unwrap(), Some(1), "not twice");
    }
}

/// A number too large for the answer is not reported as zero.
#[tokio::test(start_paused = true)]
async fn draining_more_than_can_be_told() {
    for semaphore in both(&locks()) {
        semaphore.initialise(1).await.unwrap();
        for _ in 0..3 {
            semaphore.add(i32::MAX).await.unwrap();
        }
        assert_eq!(semaphore.drain().await.unwrap(), u32::MAX);
        assert_eq!(semaphore.available().await.unwrap(), Some(0));
    }
}

#[tokio::test(start_paused = true)]
async fn resizing_adding_and_draining() {
    for semaphore in both(&locks()) {
        assert_eq!(semaphore.resize(3).await.unwrap(), 3);
        let held = semaphore.permits(2).acquire().await.unwrap();
        assert_eq!(semaphore.resize(1).await.unwrap(), -1, "nobody loses any");
        held.ensure_valid().unwrap();
        let waiting = tokio::spawn(semaphore.permits(1).acquire());
        sleep(SECOND / 10).await;
        assert!(!waiting.is_finished());
        assert_eq!(semaphore.add(2).await.unwrap(), 1);
        waiting.await.unwrap().unwrap().release().await.unwrap();
        assert_eq!(semaphore.drain().await.unwrap(), 1);
        assert_eq!(semaphore.drain().await.unwrap(), 0);
        held.release().await.unwrap();
        assert_eq!(semaphore.available().await.unwrap(), Some(2));
        assert_eq!(semaphore.add(-1).await.unwrap(), 1);
        assert!(semaphore.delete().await.unwrap());
        assert!(!semaphore.delete().await.unwrap());
        assert_eq!(semaphore.available().await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_go_when_there_are_enough() {
    for semaphore in both(&locks()) {
        semaphore.initialise(6).await.unwrap();
        assert_eq!(semaphore.drain().await.unwrap(), 6);
        let waiting = [(); 3].map(|()| tokio::spawn(semaphore.permits(2).acquire()));
        sleep(SECOND).await;
        semaphore.add(6).await.unwrap();
        for task in waiting {
            let guard = timeout(SECOND / 10, task).await.expect("all at once");
            std::mem::drop(guard.unwrap().unwrap());
        }
    }
}

/// At its next heartbeat a waiter learns that there are too few permits, and leaves the queue.
#[tokio::test(start_paused = true)]
async fn a_wait_for_what_is_gone_ends() {
    for semaphore in both(&locks()) {
        semaphore.initialise(3).await.unwrap();
        let all = semaphore.permits(3).acquire().await.unwrap();
        let big = tokio::spawn(semaphore.permits(3).acquire());
        sleep(SECOND / 10).await;
        let small = tokio::spawn(semaphore.permits(1).acquire());
        sleep(SECOND / 10).await;
        semaphore.resize(2).await.unwrap();
        let told = timeout(3 * SECOND, big).await.expect("a heartbeat");
        let error = told.unwrap().unwrap_err();
        let told = error.too_few_permits().unwrap();
        assert_eq!((told.asked, told.total), (3, Some(2)));
        let text = error.to_string();
        let said = "failed: there are 2 permits in all, and 3 were asked for; ask for fewer, or raise the number (`resize`); \
                    you do not hold it";
        assert!(text.ends_with(said) && !error.is_busy(), "{text}");
        all.release().await.unwrap();
        let one = timeout(SECOND, small).await.expect("nobody is ahead");
        let waiting = tokio::spawn(semaphore.permits(2).acquire());
        sleep(SECOND / 10).await;
        assert!(semaphore.delete().await.unwrap());
        let told = timeout(3 * SECOND, waiting).await.expect("a heartbeat");
        let error = told.unwrap().unwrap_err();
        let told = error.too_few_permits().unwrap();
        assert_eq!(told.total, None);
        let text = error.to_string();
        assert!(
            text.contains("never set") && text.contains("`initialise`"),
            "{text}"
        );
        drop(one);
    }
}

#[tokio::test(start_paused = true)]
async fn impossible_numbers_are_refused_before_anything_is_sent() {
    let script = Scripted::new();
    for semaphore in both(&script.locks()) {
        for permits in [0, MAX_PERMITS + 1, u32::MAX] {
            let error = semaphore.permits(permits).acquire().await.unwrap_err();
            let LockError::Option(error) = error else {
                panic!("{error}")
            };
            assert_eq!(
                (error.option, error.value),
                ("permits", permits.to_string())
            );
        }
        let error = semaphore
            .initialise(MAX_SEMAPHORE_PERMITS + 1)
            .await
            .unwrap_err();
        assert!(error.to_string().starts_with("initialise = 2147483648"));
        let error = semaphore.resize(u32::MAX).await.unwrap_err();
        assert!(error.to_string().starts_with("resize = 4294967295"));
    }
    assert!(script.calls("attempt").is_empty() && script.calls("counter").is_empty());
}

#[tokio::test(start_paused = true)]
async fn counting_has_the_effect_of_once() {
    let script = Scripted::new();
    let semaphore = script.locks().semaphore("a");
    script.next(
        "counter",
        [Fate::LoseReply, Fate::Refuse, Fate::LoseReply, Fate::Pass],
    );
    assert_eq!(semaphore.add(2).await.unwrap(), 2);
    let calls = script.calls("counter");
    assert_eq!(calls.len(), 4);
    assert!(calls.iter().all(|call| call.owners == calls[0].owners));
    assert_eq!(semaphore.add(2).await.unwrap(), 4, "a new operation");
}

#[tokio::test(start_paused = true)]
async fn counting_says_whether_it_may_have_run() {
    let script = Scripted::new();
    let locks = script.builder().tolerate_outage(SECOND).build().unwrap();
    let semaphore = locks.semaphore("a");
    let outcome = async |first: Fate| {
        script.next("counter", [first]);
        script.always("counter", Fate::Refuse);
        let LockError::Backend { phase, source, .. } = semaphore.add(1).await.unwrap_err() else {
            panic!("a backend error")
        };
        (phase, source.executed())
    };
    assert_eq!(outcome(Fate::Refuse).await, (Phase::Count, Executed::No));
    assert_eq!(
        outcome(Fate::LoseReply).await,
        (Phase::Count, Executed::Maybe)
    );
}

/// Requests to an unreachable backend are repeated while the outage is tolerated, and not once
/// more.
#[tokio::test(start_paused = true)]
async fn counting_ends_when_the_outage_is_not_put_up_with_any_more() {
    let script = Scripted::new();
    let locks = script.builder().tolerate_outage(SECOND).build().unwrap();
    script.always("counter", Fate::Refuse);
    let begun = Instant::now();
    let error = locks.semaphore("a").available().await.unwrap_err();
    assert!(
        matches!(
            error,
            LockError::Backend {
                phase: Phase::Inspect,
                ..
            }
        ),
        "{error:?}"
    );
    let took = begun.elapsed();
    assert!(took < SECOND && took > SECOND / 2, "{took:?}");
    // After 10, 20, 40, 80, 160 and 320 ms; after 500 more its time would be over.
    assert_eq!(
        (took, script.calls("counter").len()),
        (SECOND * 630 / 1000, 7)
    );
}

#[tokio::test(start_paused = true)]
async fn owners_play_no_part() {
    for semaphore in both(&locks()) {
        semaphore.initialise(2).await.unwrap();
        let me = Owner::new();
        let held = me
            .scope(async {
                let one = semaphore.permits(1).acquire().await.unwrap();
                let two = semaphore.permits(1).acquire().await.unwrap();
                assert_eq!((one.hold_count(), two.hold_count()), (1, 1));
                assert!(one.reenter().is_err());
                semaphore.available().await.unwrap()
            })
            .await;
        assert_eq!(held, Some(0));
    }
}

#[tokio::test(start_paused = true)]
async fn tickets_carry_the_permits() {
    let store = MemoryBackend::new();
    let locks = Locktopus::builder(store.clone()).build().unwrap();
    let other = Locktopus::builder(store.another_client()).build().unwrap();
    for (here, there) in both(&locks).into_iter().zip(both(&other)) {
        here.initialise(4).await.unwrap();
        let Ok(ticket) = here.permits(3).acquire().await.unwrap().into_ticket() else {
            panic!("a good guard")
        };
        let ticket: locktopus_core::LeaseTicket = ticket.expose().parse().unwrap();
        assert_eq!(ticket.permits(), 3);
        let error = there.permits(2).adopt(&ticket).await.unwrap_err();
        assert!(matches!(error, LockError::Ticket { .. }), "{error}");
        let guard = there.permits(3).adopt(&ticket).await.unwrap();
        assert_eq!(here.available().await.unwrap(), Some(1));
        guard.release().await.unwrap();
        assert_eq!(here.available().await.unwrap(), Some(4));
    }
    until("nothing is left", || store.population() == (0, 0)).await;
}

/// Backends remember the result of an operation for two minutes. After that, an operation that may
/// have run is not repeated, however long an outage is tolerated.
#[tokio::test(start_paused = true)]
async fn what_may_have_run_is_not_repeated_for_longer_than_it_is_remembered() {
    let script = Scripted::new();
    let patient = script.builder().tolerate_outage(SECOND * 600);
    let semaphore = patient.build().unwrap().semaphore("a");
    for (first, longest, executed) in [
        (Fate::LoseReply, SECOND * 100, Executed::Maybe),
        (Fate::Refuse, SECOND * 601, Executed::No),
    ] {
        let before = script.calls("counter").len();
        script.next("counter", [first]);
        script.always("counter", Fate::Refuse);
        let LockError::Backend { source, .. } = semaphore.add(1).await.unwrap_err() else {
            panic!("a backend error")
        };
        assert_eq!(source.executed(), executed);
        let calls = &script.calls("counter")[before..];
        let lasted = calls[calls.len() - 1].at - calls[0].at;
        assert!(lasted <= longest, "{first:?}: {lasted:?}");
        assert!(lasted >= longest / 2, "{first:?}: {lasted:?}");
    }
}
