//! Operators inspect locks, list them, and take them away.

use crate::common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::{Fate, Scripted};
use locktopus_core::{
    CohortSettings, FencingToken, LockError, LockKind, Locktopus, LostCause, MAX_NAME_BYTES,
    NameEncoding, Owner, Phase,
};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, sleep, timeout};

const MOMENT: Duration = Duration::from_millis(50);
const LEASE: Duration = Duration::from_secs(9);

fn pair() -> (Locktopus, Locktopus) {
    let store = MemoryBackend::new();
    let client = || Locktopus::builder(store.another_client()).build().unwrap();
    (client(), client())
}

#[tokio::test(start_paused = true)]
async fn a_lock_can_be_looked_at() {
    let store = MemoryBackend::new();
    // Otherwise only one task of a process waits at the backend.
    let cohort = CohortSettings {
        turns: 1,
        ..CohortSettings::default()
    };
    let client = || Locktopus::builder(store.another_client()).cohort(cohort);
    let (here, there) = (client().build().unwrap(), client().build().unwrap());
    let guard = here.lock("a").fixed_lease(LEASE).acquire().await.unwrap();
    let first = tokio::spawn(here.lock("a").acquire());
    sleep(MOMENT).await;
    let second = tokio::spawn(there.lock("a").acquire());
    sleep(MOMENT).await;
    let state = there.lock("a").inspect().await.unwrap();
    let holder = state.holder().unwrap();
    assert_eq!(
        (&holder.owner, state.last_token),
        (guard.owner_id(), guard.token())
    );
    let left = holder.remaining.unwrap();
    assert!(left > LEASE / 2 && left < LEASE, "{left:?}");
    assert_eq!(state.waiters.len(), 2);
    guard.release().await.unwrap();
    let (first, state) = (
        first.await.unwrap().unwrap(),
        here.lock("a").inspect().await.unwrap(),
    );
    assert_eq!(
        (&state.holder().unwrap().owner, state.waiters.len()),
        (first.owner_id(), 1)
    );
    first.release().await.unwrap();
    second.await.unwrap().unwrap().release().await.unwrap();
    assert!(here.lock("a").inspect().await.unwrap().holders.is_empty());
}

#[tokio::test(start_paused = true)]
async fn force_fences_the_victim_and_wakes_the_next() {
    let (here, there) = pair();
    let victim = here.lock("a").acquire().await.unwrap();
    let again = victim.reenter().unwrap();
    let next = tokio::spawn(there.lock("a").acquire());
    sleep(MOMENT).await;
    let eviction = there.lock("a").force_release("it hangs").await.unwrap();
    assert_eq!(eviction.evicted, [victim.owner_id().clone()]);
    let next = timeout(MOMENT, next).await.unwrap().unwrap().unwrap();
    assert!(eviction.fence >= victim.token() && next.token() > eviction.fence);
    // The victim is in another process: it learns at its next renewal.
    victim.ensure_valid().unwrap();
    let cause = timeout(Duration::from_secs(15), victim.lost()).await;
    assert_eq!(
        cause.unwrap(),
        LostCause::Evicted {
            reason: "it hangs".to_owned()
        }
    );
    drop(again);
    let error = victim.release().await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    next.ensure_valid().unwrap();
    next.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_victim_in_this_process_hears_at_once() {
    let (here, _) = pair();
    let rw = here.rw_lock("b");
    let bystander = here.lock("c").acquire().await.unwrap();
    let victims = [
        here.lock("a").acquire().await.unwrap(),
        rw.read().acquire().await.unwrap(),
        rw.read().acquire().await.unwrap(),
    ];
    assert_eq!(here.held_locks().len(), 4);
    here.lock("a").force_release("why not").await.unwrap();
    let eviction = rw.force_release("why not").await.unwrap();
    assert_eq!(eviction.evicted.len(), 2);
    for victim in victims {
        let cause = timeout(Duration::ZERO, victim.lost()).await.unwrap();
        let reason = "why not".to_owned();
        assert_eq!(cause, LostCause::Evicted { reason });
        let text = victim.ensure_valid().unwrap_err().to_string();
        assert!(text.contains("by force (why not)"), "{text}");
    }
    bystander.ensure_valid().unwrap();
    assert_eq!(here.held_locks().len(), 1);
}

/// Every error of a victim in another process has the reason.
#[tokio::test(start_paused = true)]
async fn a_victim_elsewhere_is_told_the_reason() {
    let (here, there) = pair();
    let evicted = |error: LockError| match error {
        LockError::Lost { cause, .. } => cause,
        other => panic!("{other}"),
    };
    let stuck = "hangs\u{1b} since 3 am";
    let told = LostCause::Evicted {
        reason: stuck.replace('\u{1b}', "\u{fffd}"),
    };
    let held = [0, 1, 2].map(|n| here.lock(format!("a{n}")));
    let [released, extended, handed] = held.map(|request| request.acquire());
    let released = released.await.unwrap();
    let extended = extended.await.unwrap();
    let ticket = handed.await.unwrap().into_ticket().unwrap();
    let readers = [
        here.rw_lock("rw").read().acquire().await.unwrap(),
        here.rw_lock("rw").read().acquire().await.unwrap(),
    ];
    for name in ["a0", "a1", "a2"] {
        there.lock(name).force_release(stuck).await.unwrap();
    }
    let eviction = there.rw_lock("rw").force_release(stuck).await.unwrap();
    for (name, owner) in [
        ("rw", &eviction.evicted[0]),
        ("rw", &eviction.evicted[1]),
        ("a0", released.owner_id()),
    ] {
        let broken = here.lock(name).break_reason(owner).await.unwrap();
        assert_eq!(broken.unwrap().reason, "hangs\u{fffd} since 3 am");
    }
    assert_eq!(evicted(released.release().await.unwrap_err()), told);
    assert_eq!(evicted(extended.extend(LEASE).await.unwrap_err()), told);
    let adopted = here.lock("a2").adopt(&ticket).await;
    assert_eq!(evicted(adopted.map(drop).unwrap_err()), told);
    for reader in readers {
        assert_eq!(evicted(reader.release().await.unwrap_err()), told);
    }
}

/// In every way of learning about the loss, for every guard that shares the lease.
#[tokio::test(start_paused = true)]
async fn a_loss_that_a_renewal_finds_has_its_reason() {
    let (here, there) = pair();
    let told = LostCause::Evicted {
        reason: "stuck".to_owned(),
    };
    let held = here.lock("a").renewed_lease(LEASE).acquire().await.unwrap();
    let all = here.multi(["b", "c"]).acquire().await.unwrap();
    let working = here.lock("e").run(|_| std::future::pending::<()>());
    let working = tokio::spawn(working);
    sleep(MOMENT).await;
    for name in ["a", "b", "e"] {
        there.lock(name).force_release("stuck").await.unwrap();
    }
    assert_eq!(held.lost().await, told);
    assert_eq!(all.lost().await.1, told);
    for error in [
        working.await.unwrap().unwrap_err(),
        held.ensure_valid().unwrap_err(),
        held.release().await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("by force (stuck)"), "{error}");
    }
}

/// Nor does a reason that comes too late undo the loss.
#[tokio::test(start_paused = true)]
async fn a_reason_that_does_not_come_delays_a_loss_for_a_moment_only() {
    for (lease, most) in [(LEASE, 251), (LEASE / 9, 43)] {
        let backend = Scripted::with_call_timeout(Duration::from_secs(1));
        let locks = backend.locks();
        let request = locks.lock("a").renewed_lease(lease);
        let held = request.acquire().await.unwrap();
        backend.always("instances", Fate::Hang);
        let there = backend.other();
        there.lock("a").force_release("stuck").await.unwrap();
        let broken = Instant::now();
        assert_eq!(held.lost().await, LostCause::Missing);
        let late = broken.elapsed().saturating_sub(lease / 3);
        assert!(late <= Duration::from_millis(most), "{lease:?}: {late:?}");
    }
}

/// Released and expired locks have no reason, nor does a lock that was free.
#[tokio::test(start_paused = true)]
async fn nobody_else_has_a_reason() {
    let (here, there) = pair();
    let held = here.lock("a").acquire().await.unwrap();
    let owner = held.owner_id().clone();
    let reason = async || there.lock("a").break_reason(&owner).await.unwrap();
    assert_eq!(reason().await, None);
    there.lock("b").force_release("by mistake").await.unwrap();
    held.release().await.unwrap();
    assert_eq!(reason().await, None);
    // An owner loses only the lock that is broken.
    let owner = Owner::new();
    let [a, b] = ["a", "b"].map(|name| here.lock(name).owner(&owner));
    let (broken, kept) = (a.acquire().await.unwrap(), b.acquire().await.unwrap());
    here.lock("a").force_release("stuck").await.unwrap();
    kept.ensure_valid().unwrap();
    let loser = broken.owner_id();
    for (name, reason) in [("a", Some("stuck")), ("b", None)] {
        let found = there.lock(name).break_reason(loser).await.unwrap();
        assert_eq!(found.map(|found| found.reason).as_deref(), reason);
    }
    kept.release().await.unwrap();
    let short = here.lock("a").fixed_lease(LEASE).acquire().await.unwrap();
    sleep(LEASE * 2).await;
    let error = short.release().await.unwrap_err();
    assert!(!error.to_string().contains("by force"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_ticket_says_whether_its_lock_is_held() {
    let (here, there) = pair();
    let ticket = here.lock("a").fixed_lease(LEASE).acquire().await.unwrap();
    let ticket = ticket.into_ticket().unwrap();
    assert!(there.lock("a").is_held_by(&ticket).await.unwrap());
    for other in [there.lock("b"), there.mutex("a"), there.fair_lock("a")] {
        let error = other.is_held_by(&ticket).await.unwrap_err();
        assert!(matches!(error, LockError::Ticket { .. }), "{error}");
    }
    sleep(LEASE * 2).await;
    assert!(!there.lock("a").is_held_by(&ticket).await.unwrap());
    let next = there.lock("a").acquire().await.unwrap();
    assert!(!there.lock("a").is_held_by(&ticket).await.unwrap());
    next.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_forced_release_is_not_repeated() {
    let (here, _) = pair();
    let nobody = here.lock("a").force_release("by mistake").await.unwrap();
    assert!(nobody.evicted.is_empty());
    let (script, locks) = Scripted::with_locks();
    let guard = locks.lock("a").acquire().await.unwrap();
    script.next("evict", [Fate::LoseReply]);
    let error = locks.lock("a").force_release("stuck").await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(
        error,
        LockError::Backend {
            phase: Phase::Evict,
            ..
        }
    ));
    assert!(text.contains("look before doing it again"), "{text}");
    assert_eq!(script.calls("evict").len(), 1);
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn permits_taken_away_are_free_again() {
    let (here, there) = pair();
    let semaphore = here.semaphore("a");
    semaphore.initialise(3).await.unwrap();
    let guard = semaphore.permits(3).acquire().await.unwrap();
    let waiting = tokio::spawn(there.semaphore("a").permits(2).acquire());
    sleep(MOMENT).await;
    semaphore.permits(1).force_release("leak").await.unwrap();
    let next = timeout(MOMENT, waiting).await.unwrap().unwrap().unwrap();
    assert!(guard.release().await.is_err());
    assert_eq!(semaphore.available().await.unwrap(), Some(1));
    next.release().await.unwrap();
    assert_eq!(semaphore.available().await.unwrap(), Some(3));
}

#[tokio::test(start_paused = true)]
async fn locks_are_listed_by_prefix_and_page() {
    let store = MemoryBackend::new();
    let builder = || Locktopus::builder(store.another_client());
    let locks = builder().namespace("shop:").build().unwrap();
    let foreign = builder().build().unwrap();
    let mut guards = vec![foreign.lock("other").acquire().await.unwrap()];
    let mut wanted = BTreeSet::new();
    for number in 0..230 {
        let name = format!("job:{number:03}");
        guards.push(locks.lock(name.as_str()).acquire().await.unwrap());
        wanted.insert(format!("shop:{name}"));
    }
    guards.push(locks.fair_lock("x").acquire().await.unwrap());
    let released = locks.lock("job:released").acquire().await.unwrap();
    released.release().await.unwrap();
    let list = async |prefix: &str| {
        let (mut names, mut pages) = (BTreeSet::new(), 0);
        let mut list = locks.list(prefix).unwrap();
        while let Some(page) = list.next_page().await.unwrap() {
            pages += 1;
            names.extend(page.iter().map(|lock| lock.name().as_str().to_owned()));
        }
        assert!(
            list.next_page().await.unwrap().is_none(),
            "stays at the end"
        );
        (names, pages)
    };
    let (names, pages) = list("job:").await;
    assert_eq!(names, wanted);
    assert!(pages >= 3, "bounded pages");
    wanted.insert("shop:x".to_owned());
    assert_eq!(list("").await.0, wanted);
    assert!(list("nothing").await.0.is_empty());
    let mut all = locks.list("x").unwrap();
    let page = all.next_page().await.unwrap().unwrap();
    let [found] = page.as_slice() else {
        panic!("{page:?}")
    };
    assert_eq!(found.kind(), &LockKind::Fair);
    let state = found.request().inspect().await.unwrap();
    assert_eq!(state.holder().unwrap().owner, *guards[231].owner_id());
    found.request().force_release("tidy").await.unwrap();
    assert!(guards[231].ensure_valid().is_err());
    assert!(locks.list("n".repeat(MAX_NAME_BYTES)).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_page_that_failed_can_be_asked_for_again() {
    let (script, locks) = Scripted::with_locks();
    let _guard = locks.lock("a").acquire().await.unwrap();
    script.next("scan", [Fate::Refuse]);
    let mut list = locks.list("").unwrap();
    assert!(list.next_page().await.is_err());
    assert_eq!(list.next_page().await.unwrap().unwrap().len(), 1);
    assert!(list.next_page().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn escaped_names_are_found_by_the_beginning_of_their_bytes() {
    let locks = Locktopus::builder(MemoryBackend::new())
        .namespace("ns:")
        .names(NameEncoding::Escaped)
        .build()
        .unwrap();
    let _guard = locks.lock(b"{job} \xff").acquire().await.unwrap();
    let mut list = locks.list("{job} ").unwrap();
    let page = list.next_page().await.unwrap().unwrap();
    assert_eq!(page[0].name().as_str(), "ns:%7Bjob%7D%20%FF");
    assert_eq!(page[0].given_name().unwrap(), b"{job} \xff");
    assert_eq!(locks.namespace(), "ns:");
    let state = page[0].request().inspect().await.unwrap();
    assert_eq!(state.holders.len(), 1, "not escaped twice");
}

#[tokio::test(start_paused = true)]
async fn a_process_knows_what_it_holds() {
    let (here, there) = pair();
    assert!(here.held_locks().is_empty());
    let plain = here.lock("a").acquire().await.unwrap();
    sleep(MOMENT).await;
    let fixed = here.mutex("b").fixed_lease(LEASE).acquire().await.unwrap();
    let semaphore = here.semaphore("c");
    semaphore.initialise(3).await.unwrap();
    let permits = semaphore.permits(2).acquire().await.unwrap();
    let _elsewhere = there.lock("d").acquire().await.unwrap();
    let held = here.held_locks();
    let seen: Vec<_> = held
        .iter()
        .map(|lock| (lock.target.to_string(), lock.token, lock.renewed))
        .collect();
    assert_eq!(seen[0], ("lock \"a\"".to_owned(), plain.token(), true));
    assert!(seen[1..].contains(&("mutex \"b\"".to_owned(), fixed.token(), false)));
    assert!(seen[1..].contains(&("semaphore \"c\"".to_owned(), None, true)));
    assert!(held[0].held_for >= MOMENT && held[0].valid_until > Instant::now());
    let two = held.iter().find(|lock| lock.permits == 2).unwrap();
    assert_eq!((two.holds, two.lease.permits()), (1, 2));
    drop(permits);
    plain.release().await.unwrap();
    assert_eq!(here.held_locks().len(), 1);
    sleep(2 * LEASE).await;
    assert!(here.held_locks().is_empty(), "run out, though not released");
    drop(fixed);
}

#[tokio::test(start_paused = true)]
async fn fences_are_bound_to_lock_and_holder() {
    let (here, _) = pair();
    let guard = here.fair_lock("a").acquire().await.unwrap();
    let fence = guard.fence().unwrap();
    assert_eq!((fence.kind(), fence.name().as_str()), ("fair_lock", "a"));
    assert_eq!(guard.lease().fence(), Some(fence.clone()));
    let token: Option<FencingToken> = guard.token();
    assert_eq!(Some(fence.token()), token);
    assert!(fence.holder().is_some());
    guard.release().await.unwrap();
    let later = here.fair_lock("a").acquire().await.unwrap();
    assert!(later.fence().unwrap() > fence);
}
