//! Runtimes that end while their tasks acquire, wait for, hold and release locks.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use locktopus::{LockError, Locktopus};
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::common::{CLIENTS, LONG, close, connect, servers, unique, url_for};
use locktopus_servers::topology::TopologyKind;

const LASTS: Duration = Duration::from_secs(1);
/// Shorter than a lease, after which everything would be free anyway.
const IN_TIME: Duration = Duration::from_secs(20);

async fn brief<G>(guard: impl Future<Output = Result<G, LockError>>) {
    let _guard = guard.await;
    sleep(Duration::from_millis(2)).await;
}

/// Runtimes come and go, with tasks in the middle of everything.
fn churn(locks: &Locktopus, names: &[String; 3]) {
    let begun = Instant::now();
    let mut round = 0;
    while begun.elapsed() < LASTS {
        round += 1;
        let mut builder = match round % 3 {
            0 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        let runtime = builder.worker_threads(2).enable_all().build().unwrap();
        for task in 0..6 {
            let (locks, name) = (locks.clone(), names[task % 3].clone());
            runtime.spawn(async move {
                loop {
                    match task % 3 {
                        0 => brief(locks.lock(&name).acquire()).await,
                        1 => brief(locks.fair_lock(&name).acquire()).await,
                        _ => brief(locks.rw_lock(&name).write().acquire()).await,
                    }
                }
            });
        }
        runtime.block_on(async { sleep(Duration::from_millis(round * 7 % 40)).await });
        match round % 4 {
            0 => runtime.shutdown_background(),
            _ => drop(runtime),
        }
    }
}

/// The handle's first runtime has ended too, so work always starts on a runtime that may be ending.
#[test]
fn runtimes_that_end_under_work_end_and_leave_nothing() {
    let runtime = || Builder::new_multi_thread().enable_all().build().unwrap();
    let steady = runtime();
    let place = steady.block_on(servers(TopologyKind::Standalone));
    for client in CLIENTS {
        let url = url_for(&place, client);
        let locks = runtime().block_on(connect(&url));
        let names = ["lock", "fair", "write"].map(unique);
        let (ends, ended) = mpsc::channel();
        for _ in 0..2 {
            let (locks, names, ends) = (locks.clone(), names.clone(), ends.clone());
            thread::spawn(move || {
                churn(&locks, &names);
                ends.send(()).unwrap();
            });
        }
        for _ in 0..2 {
            let ended = ended.recv_timeout(LONG);
            ended.unwrap_or_else(|_| panic!("{client}: a runtime does not end"));
        }
        steady.block_on(async {
            let [lock, fair, write] = &names;
            let own = connect(&url).await;
            let requests = [locks.lock(lock), own.lock(lock), own.fair_lock(fair)];
            for request in requests {
                drop(request.wait_at_most(IN_TIME).acquire().await.unwrap());
            }
            let write = own.rw_lock(write).write().wait_at_most(IN_TIME);
            drop(write.acquire().await.unwrap());
            assert_eq!(locks.shutdown(LONG).await.abandoned, 0);
            close(own).await;
        });
    }
}
