//! Recorded histories: clean if the backend is right, and a proof if it is not.
#![cfg(all(feature = "history", unix))]

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::{DynBackend, LockKind, LockName, LockTarget};
use locktopus_core::Locktopus;
use locktopus_history::{Checker, Property, Recorder, Rules, Verdict};
use locktopus_layers::Recorded;
use locktopus_memory::MemoryBackend;

const SOON: Duration = Duration::from_secs(10);

fn program(store: &MemoryBackend, recorder: &Recorder, number: u32) -> (Recorded, Locktopus) {
    let backend: DynBackend = Arc::new(store.another_client());
    let recorded = Recorded::new(backend, recorder, number);
    let locks = Locktopus::builder(recorded.clone()).build().unwrap();
    (recorded, locks)
}

fn judge(recorder: &Recorder) -> Verdict {
    recorder.close().unwrap();
    Checker::new().check(&recorder.history().unwrap())
}

/// Programs that contend for locks of several kinds. Some of their tasks give up.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_memory_backend_grants_rightly_under_contention() {
    let (store, recorder) = (MemoryBackend::new(), Recorder::in_memory());
    let rules = Rules {
        permits: Some(2),
        fair: false,
    };
    recorder.worker(99).declare("permits", rules).unwrap();
    let programs = [1, 2, 3].map(|number| program(&store, &recorder, number));
    programs[0]
        .1
        .semaphore("permits")
        .initialise(2)
        .await
        .unwrap();
    let mut tasks = Vec::new();
    for (_, locks) in &programs {
        for task in 0..8_u64 {
            let locks = locks.clone();
            tasks.push(tokio::spawn(async move {
                let mut granted = 0;
                for round in 0..40 {
                    let wait = Duration::from_millis(1 + (task + round) % 7);
                    let short = |name: &str| locks.lock(name).wait_at_most(wait);
                    let ended = match (task + round) % 4 {
                        0 => short("a").acquire().await.map(drop),
                        1 => locks
                            .mutex("m")
                            .wait_at_most(wait)
                            .acquire()
                            .await
                            .map(drop),
                        2 => locks
                            .rw_lock("rw")
                            .read()
                            .wait_at_most(wait)
                            .acquire()
                            .await
                            .map(drop),
                        _ => locks
                            .semaphore("permits")
                            .permits(1)
                            .wait_at_most(wait)
                            .acquire()
                            .await
                            .map(drop),
                    };
                    granted += usize::from(ended.is_ok());
                }
                granted
            }));
        }
    }
    let mut granted = 0;
    for task in tasks {
        granted += task.await.unwrap();
    }
    assert!(granted > 100, "{granted} grants are no contention");
    for (recorded, locks) in programs {
        assert_eq!(locks.shutdown(SOON).await.abandoned, 0);
        assert!(recorded.first_failure().is_none());
    }
    let verdict = judge(&recorder);
    assert!(verdict.violations().is_empty(), "{verdict}");
    assert!(verdict.passed(Property::ValidityOverlap), "{verdict}");
    assert!(verdict.facts.granted > 100, "{verdict}");
}

/// A store that forgets a lock grants it twice, and the history shows it.
#[tokio::test]
async fn a_forgotten_lock_is_a_proven_overlap() {
    let (store, recorder) = (MemoryBackend::new(), Recorder::in_memory());
    let [one, two] = [1, 2].map(|number| program(&store, &recorder, number));
    let first = one.1.lock("a").acquire().await.unwrap();
    assert!(store.forget(&LockTarget::new(
        LockName::new("a").unwrap(),
        LockKind::Reentrant
    )));
    let second = two.1.lock("a").try_acquire().await.unwrap().unwrap();
    for guard in [first, second] {
        let _ = guard.release().await;
    }
    let verdict = judge(&recorder);
    assert!(!verdict.passed(Property::ValidityOverlap), "{verdict}");
}

/// A grant pushed from the queue is in the history, although it was not the answer to any call.
#[tokio::test]
async fn a_pushed_grant_is_recorded() {
    let (store, recorder) = (MemoryBackend::new(), Recorder::in_memory());
    let [one, two] = [1, 2].map(|number| program(&store, &recorder, number));
    let first = one.1.lock("a").acquire().await.unwrap();
    let waiter =
        tokio::spawn(async move { two.1.lock("a").acquire().await.unwrap().release().await });
    while one.1.lock("a").inspect().await.unwrap().waiters.is_empty() {
        tokio::task::yield_now().await;
    }
    first.release().await.unwrap();
    waiter.await.unwrap().unwrap();
    let verdict = judge(&recorder);
    assert!(verdict.violations().is_empty(), "{verdict}");
    assert_eq!(verdict.facts.granted, 2, "{verdict}");
}

/// An operator's eviction is no overlap: it takes effect before the next grant.
#[tokio::test]
async fn an_eviction_is_no_overlap() {
    let (store, recorder) = (MemoryBackend::new(), Recorder::in_memory());
    let (_, locks) = program(&store, &recorder, 1);
    let victim = locks.lock("a").acquire().await.unwrap();
    locks.lock("a").force_release("a test").await.unwrap();
    locks
        .lock("a")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    drop(victim);
    assert_eq!(locks.shutdown(SOON).await.abandoned, 0);
    let verdict = judge(&recorder);
    assert!(verdict.violations().is_empty(), "{verdict}");
    assert!(verdict.passed(Property::ValidityOverlap), "{verdict}");
}
