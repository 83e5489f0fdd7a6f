//! Which types move between threads, and the texts of errors.

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::*;
use locktopus_memory::MemoryBackend;

fn everywhere<T: Send + Sync + 'static>() {}
fn sent<T: Send>(_: &T) {}

#[test]
fn public_types_go_everywhere() {
    everywhere::<Locktopus>();
    everywhere::<LockRequest>();
    everywhere::<LockGuard>();
    everywhere::<Lease>();
    everywhere::<LeaseTicket>();
    everywhere::<Owner>();
    everywhere::<RwLock>();
    everywhere::<WriteGuard>();
    everywhere::<DowngradeError>();
    everywhere::<LockRequest<WriteGuard>>();
    everywhere::<Semaphore>();
    everywhere::<Latch>();
    everywhere::<LatchWait>();
    everywhere::<WaitProgress>();
    everywhere::<LockList>();
    everywhere::<HeldLock>();
    everywhere::<LockError>();
    everywhere::<BackendError>();
    everywhere::<DynBackend>();
    everywhere::<WakeStream>();
    everywhere::<Diagnosis>();
}

#[tokio::test(start_paused = true)]
async fn futures_are_send() {
    let locks = Locktopus::builder(MemoryBackend::new()).build().unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let lease = guard.lease();
    sent(&locks.lock("a").acquire());
    sent(&locks.lock("a").try_acquire());
    sent(&locks.lock("a").into_future());
    sent(&locks.lock("a").inspect());
    sent(&locks.lock("a").run(|_| async {}));
    sent(&guard.extend(Duration::from_secs(1)));
    sent(&guard.lost());
    sent(&lease.lost());
    sent(&locks.diagnose());
    sent(&locks.lock("a").force_release("test"));
    sent(&locks.lock("a").force_release_of(guard.owner_id(), "test"));
    sent(&locks.list("").unwrap().next_page());
    sent(&locks.rw_lock("b").write().acquire());
    sent(&locks.rw_lock("b").inspect());
    sent(&locks.semaphore("c").resize(1));
    sent(&locks.latch("d").count_down());
    sent(&locks.latch("d").wait().into_future());
    sent(&Owner::new().scope(locks.lock("a").acquire()));
    sent(&locks.shutdown(Duration::ZERO));
    let Ok(ticket) = guard.into_ticket() else {
        panic!("a good guard")
    };
    sent(&locks.lock("a").adopt(&ticket));
    let guard = locks.lock("a").adopt(&ticket).await.unwrap();
    sent(&guard.release());
}

/// Every text says what happened to the lock, from the caller's point of view.
#[test]
fn errors_say_what_happened_to_the_lock() {
    let name = LockName::new("job").unwrap();
    let target = LockTarget::new(name, LockKind::Mutex(Arc::default()));
    let backend = |phase, executed| LockError::Backend {
        target: target.clone(),
        phase,
        source: BackendError::new("b", BackendErrorKind::Timeout, executed, "no answer"),
    };
    let lost = |cause| LockError::Lost {
        target: target.clone(),
        cause,
    };
    let detail = "no answer".to_owned();
    let expected = [
        (backend(Phase::Acquire, Executed::No), "you do not hold it"),
        (
            backend(Phase::Acquire, Executed::Maybe),
            "released in the background",
        ),
        (
            backend(Phase::Extend, Executed::Maybe),
            "held until the deadline it had before",
        ),
        (
            backend(Phase::Release, Executed::Maybe),
            "releasing goes on in the background",
        ),
        (
            backend(Phase::Inspect, Executed::No),
            "its state is unknown",
        ),
        (
            LockError::WaitTimeout {
                target: target.clone(),
                waited: Duration::from_secs(1),
                holder_remaining: None,
                source: None,
            },
            "you do not hold it",
        ),
        (
            LockError::Cancelled {
                target: target.clone(),
            },
            "you do not hold it",
        ),
        (
            LockError::NotReentrant {
                target: target.clone(),
            },
            "holds it already",
        ),
        (lost(LostCause::Expired), "is lost: its lease ran out"),
        (
            lost(LostCause::Unreachable { detail }),
            "could not be renewed (no answer)",
        ),
        (lost(LostCause::Missing), "does not know it any more"),
        (lost(LostCause::TakenOver), "somebody else holds it"),
        (lost(LostCause::MaxHold), "maximum hold time"),
        (lost(LostCause::ShutDown), "shut down"),
        (lost(LostCause::Released), "it was released"),
        (lost(LostCause::Transferred), "turned into a ticket"),
    ];
    for (error, part) in expected {
        let text = error.to_string();
        assert!(text.contains(part), "{text:?} does not say {part:?}");
        assert!(
            text.contains("mutex \"job\""),
            "{text:?} does not name the lock"
        );
        if let Some(source) = std::error::Error::source(&error) {
            assert!(
                !text.contains(&source.to_string()),
                "{text:?} repeats its source"
            );
        }
    }
    let ticket = "locktopus1.lock".parse::<LeaseTicket>().unwrap_err();
    assert!(ticket.to_string().contains("cannot be used"));
    assert!(LockError::ShutDown.to_string().contains("shut down"));
}
