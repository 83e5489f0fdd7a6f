//! `run` loses its lock: the program and its children are gone before the lease ends.

use std::time::Duration;

use locktopus_servers::topology::Resp;
use tokio::time::Instant;

use crate::usual::{STUBBORN, TestBed, eventually, finished, runs, signal};

/// Renewed after two seconds; ending a program takes 1.5 s.
const LEASE: Duration = Duration::from_secs(6);
const OPTIONS: [&str; 4] = ["--name", "a", "--lease", "6s"];

/// A stubborn program and its child, in one group.
fn stubborn_pair() -> String {
    format!(
        "sh -c \"{}\" & {STUBBORN}",
        STUBBORN.replace("$$", "\\$\\$").replace("pid", "other")
    )
}

/// The rest of the lease right after a renewal, so the next one is not close.
async fn renewed_lease(bed: &TestBed) -> Duration {
    eventually("a fresh lease", async || {
        let reply = bed.node().command(&["PTTL", "a"]).await.unwrap();
        let Resp::Int(millis) = reply else {
            panic!("{reply:?}")
        };
        let left = Duration::from_millis(millis.try_into().ok()?);
        (left > LEASE * 5 / 6).then_some(left)
    })
    .await
}

/// Runs the pair, spoils the lock and returns the standard error of `run`. Both must get `TERM`,
/// and be gone within the lease they had just before, or within `hold`.
async fn gone_in_time(
    bed: &TestBed,
    options: &[&str],
    hold: Option<Duration>,
    spoil: impl AsyncFnOnce(),
) -> String {
    let child = bed.script(options, &stubborn_pair());
    let pids = [bed.pid("pid").await, bed.pid("other").await];
    let asked = Instant::now();
    let left = match hold {
        Some(hold) => hold,
        None => renewed_lease(bed).await + asked.elapsed(),
    };
    spoil().await;
    let ended = async {
        while pids.iter().any(|pid| runs(*pid)) {
            assert!(asked.elapsed() < left, "{pids:?} outlive the lease");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let (ran, ()) = tokio::join!(finished(child), ended);
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(bed.room().join("termed").exists(), "KILL without TERM");
    ran.err
}

#[tokio::test]
async fn when_its_key_is_deleted() {
    let bed = TestBed::new().await;
    let err = gone_in_time(&bed, &OPTIONS, None, async || {
        bed.node().command(&["DEL", "a"]).await.unwrap();
    })
    .await;
    assert!(
        err.contains("does not know it any more") && err.contains("KILL"),
        "{err}"
    );
}

#[tokio::test]
async fn when_it_is_broken() {
    let bed = TestBed::new().await;
    let err = gone_in_time(&bed, &OPTIONS, None, async || {
        let ran = bed.does("-q break a --reason stuck").await;
        assert!(ran.out.contains("taken away from owner#"), "{ran:?}");
        assert!(
            ran.out.contains("refuse writes with fencing tokens up to"),
            "{ran:?}"
        );
    })
    .await;
    assert!(err.contains("by force (stuck)"), "{err}");
}

#[tokio::test]
async fn when_the_server_is_killed() {
    let bed = TestBed::new().await;
    let err = gone_in_time(&bed, &OPTIONS, None, async || {
        bed.node().crash().await.unwrap()
    })
    .await;
    assert!(err.contains("could not be renewed in time"), "{err}");
}

#[tokio::test]
async fn when_the_server_does_not_answer() {
    let bed = TestBed::new().await;
    let err = gone_in_time(&bed, &OPTIONS, None, async || {
        bed.node()
            .command(&["CLIENT", "PAUSE", "60000", "ALL"])
            .await
            .unwrap();
    })
    .await;
    assert!(err.contains("could not be renewed in time"), "{err}");
}

#[tokio::test]
async fn when_it_was_held_long_enough() {
    let bed = TestBed::new().await;
    let options = [&OPTIONS[..], &["--max-hold", "4s"]].concat();
    let err = gone_in_time(&bed, &options, Some(Duration::from_secs(4)), async || {}).await;
    assert!(err.contains("almost reached its time limit of 4s"), "{err}");
    bed.free("a").await;
}

#[tokio::test]
async fn a_stopped_program_is_woken_to_end() {
    let bed = TestBed::new().await;
    // Until it is continued, it does not get `TERM`.
    let script = "trap 'touch termed; exit 0' TERM; echo $$ >pid.new; mv pid.new pid; while :; do sleep 0.05; done";
    let child = bed.script(&OPTIONS, script);
    let pid = bed.pid("pid").await;
    signal("STOP", pid).await;
    bed.node().command(&["DEL", "a"]).await.unwrap();
    let ran = finished(child).await;
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(ran.err.contains("stopped with TERM"), "{ran:?}");
    assert!(bed.room().join("termed").exists());
}

#[tokio::test]
async fn a_loss_that_is_found_after_the_work_is_told() {
    let bed = TestBed::new().await;
    let script = "echo $$ >pid; while [ ! -e go ]; do sleep 0.01; done; exit 5";
    let child = bed.script(&["--name", "a", "--lease", "60s"], script);
    bed.pid("pid").await;
    bed.node().command(&["DEL", "a"]).await.unwrap();
    std::fs::write(bed.room().join("go"), "").unwrap();
    let ran = finished(child).await;
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(ran.err.contains("ended with 5"), "{ran:?}");
}

#[tokio::test]
async fn a_leader_campaigns_again() {
    let bed = TestBed::new().await;
    let script = "echo $LOCKTOPUS_TOKEN >>terms; exec sleep 60";
    let arguments = [
        "-q", "leader", "--name", "a", "--lease", "3s", "--", "sh", "-c", script,
    ];
    let leader = bed.command(&arguments).spawn().unwrap();
    let terms = async |count| {
        eventually("a term", async || {
            let text = std::fs::read_to_string(bed.room().join("terms")).ok()?;
            let tokens: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
            (tokens.len() == count).then_some(tokens)
        })
        .await
    };
    terms(1).await;
    bed.node().command(&["DEL", "a"]).await.unwrap();
    let tokens = terms(2).await;
    assert!(tokens[1] > tokens[0]);
    signal("TERM", leader.id().unwrap()).await;
    assert_eq!(
        finished(leader).await.code,
        143,
        "the program ended by itself"
    );
}
