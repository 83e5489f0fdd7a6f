//! Metrics count each wait and each hold once, and gauges always return to zero.
#![cfg(feature = "metrics")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use locktopus_core::{CancellationToken, CohortSettings, LockError, Locktopus, LostCause, Owner};
use locktopus_memory::MemoryBackend;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

/// The measurements, by name and labels (except `backend`): the present value of gauges, counts
/// since the last snapshot, and how many values of histograms.
type Measured = BTreeMap<String, f64>;

/// A recorder whose snapshots reset everything, gauges too.
struct Seen {
    snapshotter: Snapshotter,
    gauges: RefCell<Measured>,
}

impl Seen {
    fn look(&self) -> Measured {
        let mut measured = Measured::new();
        let mut gauges = self.gauges.borrow_mut();
        for (key, _, _, value) in self.snapshotter.snapshot().into_vec() {
            let key = key.key();
            let labels = key.labels().map(|label| (label.key(), label.value()));
            let (backends, others): (Vec<_>, Vec<_>) =
                labels.partition(|(label, _)| *label == "backend");
            assert_eq!(backends, [("backend", "memory")]);
            let others = others
                .iter()
                .map(|(label, value)| format!("{label}={value}"));
            let name = key.name().strip_prefix("locktopus_").unwrap();
            let name = format!("{name}{{{}}}", others.collect::<Vec<_>>().join(","));
            match value {
                DebugValue::Counter(count) => measured.insert(name, count as f64),
                DebugValue::Histogram(values) => measured.insert(name, values.len() as f64),
                DebugValue::Gauge(change) => {
                    *gauges.entry(name).or_default() += change.into_inner();
                    None
                }
            };
        }
        measured.extend(gauges.clone());
        measured.retain(|_, value| *value != 0.0);
        measured
    }

    fn expect<const N: usize>(&self, expected: [(&str, u32); N]) {
        let expected = expected.map(|(name, value)| (name.to_owned(), f64::from(value)));
        assert_eq!(self.look(), Measured::from(expected));
    }
}

/// Runs a test on tokio's paused clock with its own recorder.
fn observed<F: Future<Output = ()>>(test: impl FnOnce(Seen) -> F) {
    let recorder = DebuggingRecorder::new();
    let seen = Seen {
        snapshotter: recorder.snapshotter(),
        gauges: RefCell::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(test(seen)));
}

fn locks(store: &MemoryBackend) -> Locktopus {
    Locktopus::builder(store.another_client()).build().unwrap()
}

#[test]
fn a_grant_is_one_wait_and_one_hold() {
    observed(|seen| async move {
        let locks = locks(&MemoryBackend::new());
        let guard = locks.lock("a").acquire().await.unwrap();
        seen.expect([
            ("held{kind=lock}", 1),
            ("wait_seconds{kind=lock,outcome=granted}", 1),
        ]);
        sleep(SECOND).await;
        guard.release().await.unwrap();
        seen.expect([("hold_seconds{kind=lock,end=released}", 1)]);
        drop(locks.mutex("b").acquire().await.unwrap());
        let granted = "wait_seconds{kind=mutex,outcome=granted}";
        seen.expect([(granted, 1), ("hold_seconds{kind=mutex,end=released}", 1)]);
    });
}

#[test]
fn who_finds_a_lock_busy_holds_nothing() {
    observed(|seen| async move {
        let store = MemoryBackend::new();
        let (ours, theirs) = (locks(&store), locks(&store));
        let _held = theirs.lock("a").acquire().await.unwrap();
        let _ = seen.look();
        let busy = "wait_seconds{kind=lock,outcome=busy}";
        assert!(ours.lock("a").try_acquire().await.unwrap().is_none());
        assert!(
            theirs.lock("a").try_acquire().await.unwrap().is_none(),
            "in this process"
        );
        seen.expect([("held{kind=lock}", 1), (busy, 2)]);
    });
}

#[test]
fn every_end_of_a_wait_is_told_apart_and_leaves_nobody_waiting() {
    observed(|seen| async move {
        let store = MemoryBackend::new();
        let (ours, theirs) = (locks(&store), locks(&store));
        let held = theirs.lock("a").acquire().await.unwrap();
        let _ = seen.look();

        let mut dropped = Box::pin(ours.lock("a").acquire());
        assert!(dropped.as_mut().now_or_never().is_none());
        let mut behind = Box::pin(ours.lock("a").acquire());
        assert!(behind.as_mut().now_or_never().is_none());
        seen.expect([("held{kind=lock}", 1), ("waiting{kind=lock}", 2)]);
        drop((dropped, behind));
        let outcome = |outcome| format!("wait_seconds{{kind=lock,outcome={outcome}}}");
        seen.expect([("held{kind=lock}", 1), (&outcome("dropped"), 2)]);

        let stop = CancellationToken::new();
        stop.cancel();
        let error = ours.lock("a").cancel_on(stop).acquire().await.unwrap_err();
        assert!(matches!(error, LockError::Cancelled { .. }));
        let request = ours.lock("a").wait_at_most(SECOND);
        let error = request.acquire().await.unwrap_err();
        assert!(matches!(error, LockError::WaitTimeout { .. }));
        let error = ours.lock("").acquire().await.unwrap_err();
        assert!(matches!(error, LockError::Name(_)), "no lock was asked for");
        let counts = [
            ("held{kind=lock}", 1),
            (&*outcome("cancelled"), 1),
            (&*outcome("timeout"), 1),
        ];
        seen.expect(counts);
        held.release().await.unwrap();
    });
}

#[test]
fn a_loss_is_counted_once_by_its_cause() {
    observed(|seen| async move {
        let store = MemoryBackend::new();
        let locks = locks(&store);
        let taken_away = locks.lock("a").acquire().await.unwrap();
        let expiring = locks.lock("b").fixed_lease(SECOND).acquire().await.unwrap();
        let _ = seen.look();
        store.clear();
        assert_eq!(taken_away.lost().await, LostCause::Missing);
        assert_eq!(expiring.lost().await, LostCause::Expired);
        assert!(taken_away.release().await.is_err());
        drop(expiring);
        seen.expect([
            ("hold_seconds{kind=lock,end=missing}", 1),
            ("hold_seconds{kind=lock,end=expired}", 1),
            ("lost_total{kind=lock,cause=missing}", 1),
            ("lost_total{kind=lock,cause=expired}", 1),
        ]);
    });
}

#[test]
fn whoever_enters_again_is_one_holder() {
    observed(|seen| async move {
        let locks = locks(&MemoryBackend::new());
        let owner = Owner::new();
        let first = locks.lock("a").owner(&owner).acquire().await.unwrap();
        let second = locks.lock("a").owner(&owner).acquire().await.unwrap();
        let third = second.reenter().unwrap();
        seen.expect([
            ("held{kind=lock}", 1),
            ("wait_seconds{kind=lock,outcome=granted}", 1),
        ]);
        drop((first, second));
        seen.expect([("held{kind=lock}", 1)]);
        third.release().await.unwrap();
        seen.expect([("hold_seconds{kind=lock,end=released}", 1)]);
    });
}

#[test]
fn turns_that_tasks_hand_on_are_holds_of_their_own() {
    observed(|seen| async move {
        let store = MemoryBackend::new();
        let cohort = CohortSettings {
            turns: 64,
            budget: SECOND * 60,
        };
        let builder = Locktopus::builder(store.another_client()).cohort(cohort);
        let locks = builder.build().unwrap();
        let first = locks.lock("a").acquire().await.unwrap();
        let (give_up, mut given_up) = tokio::sync::mpsc::channel::<()>(1);
        let tasks = [(); 3].map(|()| {
            let (locks, give_up) = (locks.clone(), give_up.clone());
            tokio::spawn(async move {
                let guard = locks.lock("a").acquire().await.unwrap();
                guard.release().await.unwrap();
                drop(give_up);
            })
        });
        drop(give_up);
        tokio::task::yield_now().await;
        let granted = "wait_seconds{kind=lock,outcome=granted}";
        seen.expect([
            ("held{kind=lock}", 1),
            ("waiting{kind=lock}", 3),
            (granted, 1),
        ]);
        first.release().await.unwrap();
        assert!(given_up.recv().await.is_none());
        for task in tasks {
            task.await.unwrap();
        }
        let released = "hold_seconds{kind=lock,end=released}";
        seen.expect([
            (granted, 3),
            (released, 4),
            ("hand_off_seconds{kind=lock}", 3),
        ]);
    });
}

#[test]
fn extensions_are_measured_from_when_they_were_due() {
    observed(|seen| async move {
        let locks = locks(&MemoryBackend::new());
        let request = locks.lock("a").renewed_lease(SECOND * 30);
        let guard = request.acquire().await.unwrap();
        let _ = seen.look();
        sleep(SECOND * 35).await;
        seen.expect([
            ("held{kind=lock}", 1),
            ("extension_lateness_seconds{kind=lock}", 3),
        ]);
        guard.release().await.unwrap();
    });
}

#[test]
fn nothing_is_held_after_a_shutdown_or_a_ticket() {
    observed(|seen| async move {
        let locks = locks(&MemoryBackend::new());
        let sent = locks.lock("a").acquire().await.unwrap();
        let ticket = sent.into_ticket().unwrap();
        let transferred = "hold_seconds{kind=lock,end=transferred}";
        seen.expect([
            ("wait_seconds{kind=lock,outcome=granted}", 1),
            (transferred, 1),
        ]);
        let adopted = locks.lock("a").adopt(&ticket).await.unwrap();
        seen.expect([("held{kind=lock}", 1)]);
        let waiting = Arc::new(locks.clone());
        let waiter = tokio::spawn(async move { waiting.lock("a").acquire().await.map(drop) });
        tokio::task::yield_now().await;
        assert_eq!(locks.shutdown(SECOND).await.abandoned, 0);
        assert!(waiter.await.unwrap().is_err());
        drop(adopted);
        seen.expect([
            ("wait_seconds{kind=lock,outcome=shut_down}", 1),
            ("hold_seconds{kind=lock,end=shut_down}", 1),
            ("lost_total{kind=lock,cause=shut_down}", 1),
        ]);
    });
}
