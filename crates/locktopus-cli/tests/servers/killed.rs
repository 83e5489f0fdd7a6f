//! `run` itself is killed. Nothing renews its lock, so its program must end.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::usual::{Place, STUBBORN, runs, signal};

const LEASE: Duration = Duration::from_secs(6);

#[tokio::test]
async fn the_guardian_ends_the_program_and_the_lease_ends_by_itself() {
    ends_with(false).await;
}

#[tokio::test]
async fn the_guardian_does_so_when_nobody_reads_what_it_says() {
    ends_with(true).await;
}

async fn ends_with(nobody_reads: bool) {
    let place = Place::new().await;
    let mut child = place.script(&["--name", "a", "--lease", "6s"], STUBBORN);
    let pid = place.pid("pid").await;
    if nobody_reads {
        drop(child.stderr.take());
    }
    let killed = Instant::now();
    signal("KILL", child.id().unwrap()).await;
    child.wait().await.unwrap();
    while runs(pid) {
        assert!(killed.elapsed() < LEASE, "it outlives the lease");
        sleep(Duration::from_millis(5)).await;
    }
    place.free("a").await;
}
