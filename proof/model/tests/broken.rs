//! A holder that loses its lock to a forced release by another process learns the reason.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use locktopus_core::{LockGuard, Locktopus, LostCause, Owner};
use locktopus_model::ModelClient;
use locktopus_protocol::{BackendOptions, RedisBackend};
use locktopus_recipes::Job;
use tokio::sync::mpsc;
use tokio::time::timeout;

const REASON: &str = "it hangs";
async fn locks(client: ModelClient) -> Locktopus {
    let options = BackendOptions::default();
    let backend = RedisBackend::new(Arc::new(client) as _, options).await;
    Locktopus::builder(backend.unwrap()).build().unwrap()
}

fn told() -> LostCause {
    let reason = REASON.to_owned();
    LostCause::Evicted { reason }
}

#[tokio::test(start_paused = true)]
async fn a_victim_of_every_kind_is_told_why() {
    let client = ModelClient::timed();
    let (here, there) = (locks(client.another()).await, locks(client).await);
    there.semaphore("semaphore").initialise(1).await.unwrap();
    there
        .permit_semaphore("permits")
        .initialise(1)
        .await
        .unwrap();
    let on = |locks: &Locktopus| {
        [
            locks.lock("lock"),
            locks.fair_lock("fair"),
            locks.mutex("mutex"),
            locks.rw_lock("read").read(),
            locks.semaphore("semaphore").permits(1),
            locks.permit_semaphore("permits").permits(1),
        ]
    };
    let me = Owner::new();
    let writing = here.rw_lock("both").write().owner(&me).acquire().await;
    let writing = writing.unwrap();
    let mut victims = vec![writing.read().await.unwrap(), LockGuard::from(writing)];
    for request in on(&here) {
        victims.push(request.acquire().await.unwrap());
    }
    there.rw_lock("both").force_release(REASON).await.unwrap();
    for request in on(&there) {
        let eviction = request.force_release(REASON).await.unwrap();
        assert_eq!(eviction.evicted.len(), 1, "{eviction:?}");
    }
    for victim in victims {
        let lost = timeout(Duration::from_secs(15), victim.lost()).await;
        assert_eq!(lost.unwrap(), told(), "{victim:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_work_of_a_job_is_told_why() {
    let client = ModelClient::timed();
    let (here, there) = (locks(client.another()).await, locks(client).await);
    let (begun, mut ticks) = mpsc::unbounded_channel();
    let job = Job::new(&here, "report").at_times([SystemTime::now()]);
    let job = tokio::spawn(job.run(move |tick| {
        begun.send(tick).unwrap();
        std::future::pending()
    }));
    let tick = ticks.recv().await.unwrap();
    there.mutex("report").force_release(REASON).await.unwrap();
    assert_eq!(tick.lease().lost().await, told());
    // The job drops the work and does not run again.
    job.await.unwrap().unwrap();
}
