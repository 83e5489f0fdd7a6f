//! Servers in containers: every kind on every image, every verb, partitions, and the sweep.
//!
//! Without a container engine these tests fail. To skip them, set `LOCKTOPUS_SKIP_POD` to the
//! reason why this machine has none; the skipped tests then say so.
#![cfg(unix)]

use crate::topology_common as common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{FAILOVER, crash_and_take_over, down, freeze_and_take_over, looks_right, up, verbs};
use locktopus_servers::pod_or_skip;
use locktopus_servers::topology::{
    Deployment, Isolation, Knobs, Node, ProviderKind, Role, ServerImage, Spec, TopologyError,
    TopologyKind, start,
};

const POD: ProviderKind = ProviderKind::Pod;
const IMAGE: &str = "redis:8.0";

async fn every_kind_on(image: &str) {
    if !pod_or_skip() {
        return;
    }
    for kind in TopologyKind::ALL {
        let deployment = up(POD, kind, Some(image)).await;
        looks_right(&deployment).await;
        assert_eq!(deployment.label(), image);
        down(deployment).await;
    }
}

#[tokio::test]
async fn every_kind_on_redis_7_0() {
    every_kind_on("redis:7.0").await;
}

#[tokio::test]
async fn every_kind_on_redis_8_0() {
    every_kind_on("redis:8.0").await;
}

#[tokio::test]
async fn every_kind_on_valkey_8_1() {
    every_kind_on("valkey/valkey:8.1").await;
}

#[tokio::test]
async fn every_kind_on_valkey_9_1() {
    every_kind_on("valkey/valkey:9.1").await;
}

#[tokio::test]
async fn every_verb_works_on_every_image() {
    if !pod_or_skip() {
        return;
    }
    for image in ServerImage::BUILT_HERE {
        let deployment = up(POD, TopologyKind::Standalone, Some(image)).await;
        verbs(&deployment).await;
        down(deployment).await;
    }
}

#[tokio::test]
async fn a_cluster_survives_its_primary() {
    if !pod_or_skip() {
        return;
    }
    let deployment = up(POD, TopologyKind::CLUSTER, Some(IMAGE)).await;
    crash_and_take_over(&deployment).await;
    freeze_and_take_over(&deployment).await;
    down(deployment).await;
}

#[tokio::test]
async fn sentinels_replace_a_primary() {
    if !pod_or_skip() {
        return;
    }
    let deployment = up(POD, TopologyKind::SENTINEL, Some("valkey/valkey:8.1")).await;
    crash_and_take_over(&deployment).await;
    down(deployment).await;
}

/// A primary that is cut off from its peers still accepts writes, which are lost later: this is why
/// locks need fencing.
#[tokio::test]
async fn a_partitioned_primary_accepts_writes_that_are_lost() {
    if !pod_or_skip() {
        return;
    }
    let deployment = up(POD, TopologyKind::CLUSTER, Some(IMAGE)).await;
    assert!(
        deployment.caps().peer_partition,
        "run scripts/build-images for the helper"
    );
    let key = "lost";
    let old = deployment.primary_for(key).await.unwrap();
    old.isolate(Isolation::Peers).await.unwrap();
    old.command(&["SET", key, "old"]).await.unwrap();
    let new = other_writer(&deployment, key, old.name()).await;
    assert_eq!(new.command(&["GET", key]).await.unwrap().text(), "");
    new.command(&["SET", key, "new"]).await.unwrap();
    old.heal().await.unwrap();
    let replica = Role::Replica { linked: true };
    deployment.wait_role(old, replica, FAILOVER).await.unwrap();
    assert_eq!(new.command(&["GET", key]).await.unwrap().text(), "new");
    deployment.wait_ready().await.unwrap();
    down(deployment).await;
}

/// Waits until a node other than `old` accepts writes for `key`.
async fn other_writer<'a>(deployment: &'a Deployment, key: &str, old: &str) -> &'a Node {
    let begun = Instant::now();
    while begun.elapsed() < FAILOVER {
        if let Ok(node) = deployment.primary_for(key).await
            && node.name() != old
        {
            println!("  taken over after {:.2?}", begun.elapsed());
            return node;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nobody took over from {old} within {FAILOVER:?}");
}

#[tokio::test]
async fn cut_clients_do_not_disturb_the_cluster() {
    if !pod_or_skip() {
        return;
    }
    let deployment = up(POD, TopologyKind::CLUSTER, Some(IMAGE)).await;
    let key = "cut";
    let node = deployment.primary_for(key).await.unwrap();
    let witness = deployment
        .nodes()
        .iter()
        .find(|other| other.name() != node.name())
        .unwrap();
    node.isolate(Isolation::Clients).await.unwrap();
    let patience = Duration::from_millis(400);
    assert!(node.command_within(patience, &["PING"]).await.is_err());
    // Longer than the node timeout: peers would have raised an alarm by now.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let seen = witness.command(&["CLUSTER", "NODES"]).await.unwrap().text();
    assert!(!seen.contains("fail"), "{seen}");
    node.heal().await.unwrap();
    deployment.wait_ready().await.unwrap();
    node.isolate(Isolation::All).await.unwrap();
    other_writer(&deployment, key, node.name()).await;
    node.heal().await.unwrap();
    let replica = Role::Replica { linked: true };
    deployment.wait_role(node, replica, FAILOVER).await.unwrap();
    down(deployment).await;
}

#[tokio::test]
async fn a_missing_image_is_named_with_the_remedy() {
    if !pod_or_skip() {
        return;
    }
    let image: ServerImage = "redis:no-such-tag".parse().unwrap();
    let spec = Spec::new(TopologyKind::Standalone).with_image(image);
    let error = start(POD, &spec).await.unwrap_err();
    assert!(
        matches!(error, TopologyError::ImageMissing { .. }),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("scripts/build-images redis:no-such-tag"),
        "{error}"
    );
}

#[tokio::test]
async fn two_pods_live_side_by_side() {
    if !pod_or_skip() {
        return;
    }
    let (one, two) = tokio::join!(
        up(POD, TopologyKind::QUORUM, Some(IMAGE)),
        up(POD, TopologyKind::QUORUM, Some(IMAGE)),
    );
    for node in one.nodes() {
        assert!(two.nodes().iter().all(|other| other.addr() != node.addr()));
    }
    down(one).await;
    down(two).await;
}

fn containers_of(run: &str) -> usize {
    let output = Command::new("docker")
        .args(["ps", "--all", "--quiet", "--filter"])
        .arg(format!("label=org.locktopus.run={run}"))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).lines().count()
}

fn run_name(deployment: &Deployment) -> String {
    deployment
        .run_dir()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

#[tokio::test]
async fn a_drop_removes_everything_in_either_runtime_and_without() {
    if !pod_or_skip() {
        return;
    }
    let deployment = up(POD, TopologyKind::Standalone, Some(IMAGE)).await;
    let run = run_name(&deployment);
    assert_eq!(containers_of(&run), 2);
    drop(deployment);
    assert_eq!(containers_of(&run), 0);

    let outside = std::thread::spawn(|| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let deployment = runtime.block_on(up(POD, TopologyKind::Standalone, Some(IMAGE)));
        drop(runtime);
        let run = run_name(&deployment);
        drop(deployment);
        run
    });
    assert_eq!(containers_of(&outside.join().unwrap()), 0);
}

/// Environment variable that turns [`harness`] into a program to be killed.
const ROLE: &str = "LOCKTOPUS_TEST_HARNESS";

/// Not a test of its own: the body of the processes of the next test.
#[tokio::test]
async fn harness() {
    match std::env::var(ROLE).as_deref() {
        Ok("wait") => {
            let deployment = up(POD, TopologyKind::Standalone, Some(IMAGE)).await;
            println!("RUN {}", run_name(&deployment));
            std::future::pending().await
        }
        Ok("sweep") => drop(up(POD, TopologyKind::Standalone, Some(IMAGE)).await),
        Ok("fail") => {
            let knobs = Knobs {
                extra_args: vec!["--no-such-option".to_owned(), "1".to_owned()],
                ..Knobs::default()
            };
            let spec = Spec::new(TopologyKind::Standalone).with_knobs(knobs);
            let error = start(POD, &spec).await.unwrap_err();
            assert!(
                matches!(error, TopologyError::ServerEnded { .. }),
                "{error}"
            );
            assert!(error.to_string().contains("no-such-option"), "{error}");
        }
        _ => {}
    }
}

fn harness_process(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "topology_pod::harness",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(ROLE, role)
        .stdout(Stdio::piped());
    command
}

fn killed_and_swept() {
    use std::io::{BufRead, BufReader};

    let mut child = harness_process("wait").spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let run = lines
        .map_while(Result::ok)
        .find_map(|line| line.split_once("RUN ").map(|(_, run)| run.to_owned()))
        .unwrap();
    assert_eq!(containers_of(&run), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(containers_of(&run), 2, "nobody is left to remove them");
    assert!(harness_process("sweep").status().unwrap().success());
    assert_eq!(containers_of(&run), 0, "the next start removes them");
    assert!(!std::env::temp_dir().join(run).exists());
}

#[tokio::test]
async fn the_next_start_removes_what_a_killed_harness_left() {
    if !pod_or_skip() {
        return;
    }
    tokio::task::spawn_blocking(killed_and_swept).await.unwrap();
}

#[tokio::test]
async fn a_failed_start_leaves_nothing() {
    if !pod_or_skip() {
        return;
    }
    // In its own process, to distinguish its containers from those of other tests.
    let mut child = harness_process("fail").spawn().unwrap();
    let owner = format!("-{}-", child.id());
    let succeeded = tokio::task::spawn_blocking(move || child.wait().unwrap().success());
    assert!(succeeded.await.unwrap());
    let output = Command::new("docker")
        .args([
            "ps",
            "--all",
            "--format",
            r#"{{.Label "org.locktopus.owner"}}"#,
        ])
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&output.stdout).contains(&owner));
}
