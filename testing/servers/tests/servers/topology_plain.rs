//! Servers as child processes: every kind, every verb, and nothing left behind.
#![cfg(unix)]

use crate::topology_common as common;

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{SOON, crash_and_take_over, down, freeze_and_take_over, looks_right, up, verbs};
use locktopus_servers::topology::{
    Isolation, Knobs, ProviderKind, Spec, TopologyError, TopologyKind, Vip, clock_or_skip, start,
};
use locktopus_servers::{in_ci, reason_in, skipped};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const PLAIN: ProviderKind = ProviderKind::Plain;

#[tokio::test]
async fn every_kind_starts_and_is_removed() {
    for kind in TopologyKind::ALL {
        let deployment = up(PLAIN, kind, None).await;
        looks_right(&deployment).await;
        down(deployment).await;
    }
}

#[tokio::test]
async fn every_verb_works() {
    let deployment = up(PLAIN, TopologyKind::Standalone, None).await;
    verbs(&deployment).await;
    let node = &deployment.nodes()[0];
    let isolated = node.isolate(Isolation::Peers).await;
    assert!(matches!(isolated, Err(TopologyError::Unsupported { .. })));
    assert!(!deployment.caps().peer_partition);
    down(deployment).await;
}

#[tokio::test]
async fn a_clock_that_cannot_be_set_says_so() {
    let deployment = up(PLAIN, TopologyKind::Standalone, None).await;
    let refused = deployment.nodes()[0].set_clock_ahead(HOUR).unwrap_err();
    assert!(refused.to_string().contains("libfaketime"), "{refused}");
    down(deployment).await;
}

#[tokio::test]
async fn a_clock_is_set_ahead_and_put_right() {
    if !clock_or_skip().unwrap() {
        return;
    }
    let knobs = Knobs {
        settable_clock: true,
        ..Knobs::default()
    };
    let spec = Spec::new(TopologyKind::Standalone).with_knobs(knobs);
    let deployment = start(PLAIN, &spec).await.unwrap();
    let node = &deployment.nodes()[0];
    let now = async || {
        let time = node.command(&["TIME"]).await.unwrap();
        let seconds = time.items()[0].text().parse().unwrap();
        Duration::from_secs(seconds)
    };
    let begun = now().await;
    node.command(&["SET", "a", "1", "PX", "1800000"])
        .await
        .unwrap();
    node.set_clock_ahead(HOUR).unwrap();
    assert!(now().await >= begun + HOUR);
    assert_eq!(node.command(&["EXISTS", "a"]).await.unwrap().text(), "0");
    // The clock is the machine's, not the process's.
    node.restart(SOON).await.unwrap();
    assert!(now().await >= begun + HOUR);
    node.set_clock_ahead(Duration::ZERO).unwrap();
    assert!(now().await < begun + HOUR);
    down(deployment).await;
}

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_cluster_survives_its_primary() {
    let deployment = up(PLAIN, TopologyKind::CLUSTER, None).await;
    crash_and_take_over(&deployment).await;
    freeze_and_take_over(&deployment).await;
    down(deployment).await;
}

#[tokio::test]
async fn sentinels_replace_a_primary() {
    let deployment = up(PLAIN, TopologyKind::SENTINEL, None).await;
    crash_and_take_over(&deployment).await;
    down(deployment).await;
}

/// The primary found at that time would be about to be replaced.
#[tokio::test]
async fn nothing_is_ready_while_a_failover_is_under_way() {
    let deployment = up(PLAIN, TopologyKind::SENTINEL, None).await;
    let old = deployment.primary().await.unwrap();
    let begin = ["SENTINEL", "FAILOVER", deployment.master_name()];
    deployment.sentinels()[0].command(&begin).await.unwrap();
    deployment.wait_ready().await.unwrap();
    let new = deployment.primary().await.unwrap();
    assert_ne!(new.name(), old.name());
    down(deployment).await;
}

#[tokio::test]
async fn data_survives_a_restart_with_an_append_only_file() {
    let knobs = Knobs {
        appendonly: true,
        ..Knobs::default()
    };
    let spec = Spec::new(TopologyKind::Standalone).with_knobs(knobs);
    let deployment = start(PLAIN, &spec).await.unwrap();
    let node = &deployment.nodes()[0];
    node.command(&["SET", "k", "v"]).await.unwrap();
    node.restart(SOON).await.unwrap();
    assert_eq!(node.command(&["GET", "k"]).await.unwrap().text(), "v");
}

#[tokio::test]
async fn users_have_only_their_rights() {
    let knobs = Knobs {
        users: vec!["app on >secret ~lock:* -@all +get".to_owned()],
        ..Knobs::default()
    };
    let spec = Spec::new(TopologyKind::Standalone).with_knobs(knobs);
    let deployment = start(PLAIN, &spec).await.unwrap();
    let node = &deployment.nodes()[0];
    let try_as_app = |words: &'static [&'static str]| async move {
        let words = [&["ACL", "DRYRUN", "app"], words].concat();
        node.command(&words).await.unwrap().text()
    };
    assert_eq!(try_as_app(&["GET", "lock:a"]).await, "OK");
    assert_ne!(try_as_app(&["GET", "other"]).await, "OK");
    assert_ne!(try_as_app(&["SET", "lock:a", "1"]).await, "OK");
}

#[tokio::test]
async fn refused_options_come_back_with_the_servers_words() {
    let knobs = Knobs {
        extra_args: vec!["--no-such-option".to_owned(), "1".to_owned()],
        ..Knobs::default()
    };
    let spec = Spec::new(TopologyKind::Standalone).with_knobs(knobs);
    let error = start(PLAIN, &spec).await.unwrap_err();
    let TopologyError::ServerEnded { node, how, log } = &error else {
        panic!("{error}");
    };
    assert_eq!((node.as_str(), how.as_str()), ("node-0", "exit code 1"));
    assert!(log.contains("no-such-option"), "{log}");
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let spec = Spec::new(TopologyKind::Standalone).with_binary("/nonexistent/server");
    let error = start(PLAIN, &spec).await.unwrap_err().to_string();
    assert!(error.contains("/nonexistent/server"), "{error}");
}

/// The client that is packaged with the servers, whose handshake differs from all of ours. `None`
/// if the calling test must be skipped; this function has printed that then.
///
/// In CI skipping needs a reason.
fn client_program() -> Option<&'static str> {
    const REASON: &str = "LOCKTOPUS_SKIP_REDIS_CLI";
    let reason = reason_in(REASON);
    if reason.is_none() {
        let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
        let found = ["redis-cli", "valkey-cli"].into_iter().find(runs);
        if found.is_some() {
            return found;
        }
        assert!(!in_ci(), "no redis-cli, and no reason in {REASON}");
    }
    let why = reason.unwrap_or_else(|| "no redis-cli here".to_owned());
    skipped("TLS handshakes with a test server", &why);
    None
}

#[tokio::test]
async fn the_certificate_is_trusted_by_its_own_authority_only() {
    let deployment = up(PLAIN, TopologyKind::Tls, None).await;
    let files = deployment.tls().unwrap();
    if let Some(client) = client_program() {
        let ping = |ca: &Path| {
            Command::new(client)
                .args(["-p", &deployment.nodes()[0].addr().port().to_string()])
                .args(["--tls", "--cacert"])
                .arg(ca)
                .arg("PING")
                .output()
                .unwrap()
        };
        let trusted = ping(&files.ca);
        assert_eq!(String::from_utf8_lossy(&trusted.stdout).trim(), "PONG");
        assert!(!ping(&files.untrusted_ca).status.success());
    }
    assert!(deployment.url().contains("?ca="));
    down(deployment).await;
}

/// Servers that must find each other use TLS for that as well, and tell clients the TLS ports.
#[tokio::test]
async fn kinds_of_many_servers_speak_tls_behind_proxies() {
    for kind in [TopologyKind::SENTINEL, TopologyKind::CLUSTER] {
        let spec = Spec::new(kind).with_tls().with_round_trip(Duration::ZERO);
        let deployment = start(PLAIN, &spec).await.unwrap();
        let url = deployment.url();
        assert!(url.starts_with("rediss-"), "{url}");
        assert!(url.contains("?ca="), "{url}");
        let writer = deployment.wait_writable("a", SOON).await.unwrap();
        assert_ne!(writer.addr(), writer.admin_addr());
        if kind == TopologyKind::CLUSTER {
            let known = deployment.nodes()[1]
                .command(&["CLUSTER", "NODES"])
                .await
                .unwrap();
            let bus = known.text().lines().all(|line| line.contains("connected"));
            assert!(bus, "{known:?}");
        }
        down(deployment).await;
    }
}

#[tokio::test]
async fn concurrent_starts_do_not_collide() {
    let starts = (0..6).map(|_| tokio::spawn(up(PLAIN, TopologyKind::QUORUM, None)));
    let mut deployments = Vec::new();
    for one in starts.collect::<Vec<_>>() {
        deployments.push(one.await.unwrap());
    }
    let addresses: HashSet<_> = deployments
        .iter()
        .flat_map(|deployment| deployment.nodes().iter().map(|node| node.addr()))
        .collect();
    assert_eq!(addresses.len(), 30);
}

#[tokio::test]
async fn a_panic_leaves_nothing() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let deployment = up(PLAIN, TopologyKind::Standalone, None).await;
        let pid = deployment.nodes()[0].pid().await.unwrap();
        tell.send((pid, deployment.run_dir().to_owned())).unwrap();
        panic!("as intended");
    });
    let (pid, dir) = told.await.unwrap();
    assert!(task.await.unwrap_err().is_panic());
    assert!(!dir.exists());
    assert!(!runs_in(pid, &dir));
}

#[tokio::test]
async fn a_cancelled_start_keeps_the_other_servers_files() {
    let deployment = up(PLAIN, TopologyKind::Quorum { nodes: 2 }, None).await;
    let node = &deployment.nodes()[0];
    node.crash().await.unwrap();
    for micros in [0, 100, 500, 1_000, 2_000, 4_000] {
        let given_up = tokio::time::timeout(Duration::from_micros(micros), node.start()).await;
        if given_up.is_ok() || node.is_running().await {
            node.crash().await.unwrap();
        }
        assert!(deployment.run_dir().join("node-1").exists());
    }
    node.start().await.unwrap();
    down(deployment).await;
}

/// Environment variable that turns [`harness`] into a program to be killed.
const ROLE: &str = "LOCKTOPUS_TEST_HARNESS";

/// A server that has read only some connections when it stops would continue with those first.
#[tokio::test]
async fn a_frozen_server_stands_still_at_once() {
    let deployment = up(PLAIN, TopologyKind::Standalone, None).await;
    let node = &deployment.nodes()[0];
    let status = format!("/proc/{}/stat", node.pid().await.unwrap());
    for _ in 0..200 {
        node.freeze().await.unwrap();
        let state = std::fs::read_to_string(&status).unwrap();
        assert!(state.contains(") T "), "{state}");
        node.thaw().await.unwrap();
    }
    down(deployment).await;
}

/// Not a test of its own: the body of the process that the next tests kill.
#[tokio::test]
async fn harness() {
    let Some(kind) = std::env::var(ROLE).ok() else {
        return;
    };
    let deployment = up(PLAIN, kind.parse().unwrap(), None).await;
    println!("DIR {}", deployment.run_dir().display());
    for node in deployment.nodes().iter().chain(deployment.sentinels()) {
        println!("PID {}", node.pid().await.unwrap());
    }
    // A stopped server handles no signal except SIGKILL, and its group gets others when we die.
    deployment.nodes()[0].freeze().await.unwrap();
    println!("GO");
    std::future::pending::<()>().await;
}

/// Starts the harness in its own process, and kills it when it is ready.
fn killed_harness(kind: &str) -> (PathBuf, Vec<u32>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "topology_plain::harness",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(ROLE, kind)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut dir, mut pids) = (PathBuf::new(), Vec::new());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // The test runner may print to the same line.
        if let Some((_, path)) = line.split_once("DIR ") {
            dir = path.into();
        } else if let Some((_, pid)) = line.split_once("PID ") {
            pids.push(pid.parse().unwrap());
        } else if line.ends_with("GO") {
            break;
        }
    }
    assert!(dir.exists(), "{}", dir.display());
    if cfg!(target_os = "linux") {
        assert!(pids.iter().all(|pid| runs_in(*pid, &dir)));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    (dir, pids)
}

/// Whether the process exists and belongs to the run directory. Linux only.
fn runs_in(pid: u32, dir: &Path) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&dir.display().to_string()))
}

#[tokio::test]
async fn killed_harnesses_leave_nothing_and_do_not_collide() {
    let kinds = ["standalone", "sentinel", "cluster", "quorum", "quorum"];
    let harnesses = kinds.map(|kind| tokio::task::spawn_blocking(move || killed_harness(kind)));
    for (kind, harness) in kinds.iter().zip(harnesses) {
        let (dir, pids) = harness.await.unwrap();
        assert!(!pids.is_empty());
        let begun = Instant::now();
        while dir.exists() || pids.iter().any(|pid| runs_in(*pid, &dir)) {
            assert!(
                begun.elapsed() < SOON,
                "{kind}: {} or {pids:?} left",
                dir.display()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        println!(
            "{kind}: nothing left {:.2?} after the kill",
            begun.elapsed()
        );
    }
}

/// Sends its word to every client that connects, and again for every request.
async fn server_that_says(word: u8) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                while client.read_u8().await.is_ok() {
                    client.write_u8(word).await.unwrap();
                }
            });
        }
    });
    addr
}

async fn who(connection: &mut TcpStream) -> std::io::Result<u8> {
    connection.write_u8(b'?').await?;
    connection.read_u8().await
}

#[tokio::test]
async fn a_virtual_address_leads_new_connections_elsewhere() {
    let (old, new) = (server_that_says(b'a').await, server_that_says(b'b').await);
    let vip = Vip::start(old).await.unwrap();
    let mut before = TcpStream::connect(vip.addr()).await.unwrap();
    assert_eq!(who(&mut before).await.unwrap(), b'a');
    vip.point_at(new);
    let mut after = TcpStream::connect(vip.addr()).await.unwrap();
    assert_eq!(who(&mut after).await.unwrap(), b'b');
    assert_eq!(who(&mut before).await.unwrap(), b'a', "it stays");
    assert_eq!([old, new].map(|server| vip.connections_to(server)), [1, 1]);

    vip.cut();
    for connection in [&mut before, &mut after] {
        who(connection).await.unwrap_err();
    }
    assert_eq!([old, new].map(|server| vip.connections_to(server)), [0, 0]);
    let mut again = TcpStream::connect(vip.addr()).await.unwrap();
    assert_eq!(who(&mut again).await.unwrap(), b'b');
    drop(vip);
    who(&mut again).await.unwrap_err();
}

/// Behind proxies every kind is complete, and clients that ask where servers are get the proxies'
/// addresses.
#[tokio::test]
async fn every_kind_can_be_far_away() {
    let round_trip = Duration::from_millis(60);
    for kind in TopologyKind::ALL {
        let spec = Spec::new(kind).with_round_trip(round_trip);
        let deployment = start(PLAIN, &spec).await.unwrap();
        assert!(!deployment.caps().honest_latency);
        let ports: Vec<_> = deployment
            .nodes()
            .iter()
            .map(|node| node.addr().port())
            .collect();
        let announced = match kind {
            TopologyKind::Sentinel { .. } => {
                let asked = [
                    "SENTINEL",
                    "GET-MASTER-ADDR-BY-NAME",
                    deployment.master_name(),
                ];
                deployment.sentinels()[0]
                    .command(&asked)
                    .await
                    .unwrap()
                    .items()[1]
                    .text()
            }
            TopologyKind::Cluster { .. } => {
                let known = deployment.nodes()[1].command(&["CLUSTER", "NODES"]).await;
                known.unwrap().text()
            }
            _ => ports[0].to_string(),
        };
        assert!(
            announced.contains(&ports[0].to_string()),
            "{kind}: {announced} of {ports:?}"
        );
        for node in deployment.nodes().iter().chain(deployment.sentinels()) {
            assert_ne!(node.addr(), node.admin_addr());
            if kind != TopologyKind::Tls {
                let (first, next) = (ping(node.addr()).await, ping(node.admin_addr()).await);
                assert!(first >= round_trip * 2, "{kind} {}: {first:?}", node.name());
                assert!(next < first, "{kind} {}: the harness is near", node.name());
            }
        }
        deployment.set_round_trip(Duration::ZERO);
        deployment.wait_ready().await.unwrap();
        down(deployment).await;
    }
}

/// How long a server takes to answer on a new connection.
async fn ping(server: std::net::SocketAddr) -> Duration {
    let begun = Instant::now();
    let mut connection = TcpStream::connect(server).await.unwrap();
    connection.write_all(b"PING\r\n").await.unwrap();
    let mut answer = [0; 7];
    connection.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
    begun.elapsed()
}
