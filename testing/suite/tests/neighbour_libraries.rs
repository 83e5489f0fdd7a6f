//! Real libraries of Node, Go, Python, Java and Rust beside `mutex_as` with their profile, on one
//! server or on three.
//!
//! A small program in `neighbours` drives each library. Redisson is in `redisson_topology`.
//!
//! Without Node, Go, a JDK with Maven, a Python with redis-py or a Python with pip, a test skips
//! itself and says so. In CI that is a failure, unless `LOCKTOPUS_SKIP_NODE`, `LOCKTOPUS_SKIP_GO`,
//! `LOCKTOPUS_SKIP_JDK`, `LOCKTOPUS_SKIP_REDIS_PY` or `LOCKTOPUS_SKIP_PIP` gives a reason. If a
//! registry does not deliver the libraries, the test fails only with `LOCKTOPUS_REQUIRE_ALL`.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::future_not_send,
    reason = "helpers of tests are tests too, and cases share a thread"
)]

#[path = "neighbour_libraries/both_ways.rs"]
mod both_ways;
#[path = "suite/common/mod.rs"]
mod common;
#[path = "neighbour_libraries/install.rs"]
mod install;
#[path = "neighbour_libraries/particular.rs"]
mod particular;
#[path = "neighbour_libraries/pip_and_go.rs"]
mod pip_and_go;
#[path = "neighbour_libraries/several.rs"]
mod several;
#[path = "neighbour_libraries/worker.rs"]
mod worker;

use std::sync::Arc;
use std::time::Duration;

use common::{CLIENTS, Cases, connect, servers, unique, url, url_for};
use install::{Program, go, java, node, pip, python, rslock};
use locktopus::{LockName, LockRequest, Locktopus, MutexProfile};
use locktopus_servers::topology::{Deployment, TopologyKind};
use worker::Worker;

/// A server, our client on it, and the library that uses it too.
#[derive(Clone)]
struct At {
    place: Arc<Deployment>,
    client: &'static str,
    program: Arc<Program>,
    profile: fn() -> MutexProfile,
    /// Whether a value looks like one of the library's.
    form: fn(&str) -> bool,
}

impl At {
    async fn locks(&self) -> Locktopus {
        connect(&url(&url_for(&self.place, self.client), "timeout=5s")).await
    }

    /// A process that runs the library.
    async fn theirs(&self) -> Worker {
        Worker::start(&self.program, &self.place.url()).await
    }

    fn request(&self, locks: &Locktopus, name: &str) -> LockRequest {
        locks.mutex_as(name, (self.profile)())
    }

    /// The key of a lock.
    fn key(&self, name: &str) -> String {
        (self.profile)().key(&LockName::new(name).unwrap())
    }

    /// A value as the library's program prints it: in hex if it is not text.
    fn shown(&self, value: &[u8]) -> String {
        match self.program.library {
            "rslock" => value.iter().map(|byte| format!("{byte:02x}")).collect(),
            _ => String::from_utf8(value.to_vec()).unwrap(),
        }
    }

    fn name(&self) -> String {
        unique(self.program.library)
    }

    /// A lease whose end a case waits for; the library may count in seconds.
    fn short_lease(&self) -> Duration {
        (self.profile)().stored_lease(Duration::from_millis(400))
    }
}

/// The cases of every library, for every client, and those that `add` adds.
async fn everything(
    program: Option<Program>,
    profile: fn() -> MutexProfile,
    form: fn(&str) -> bool,
    add: fn(&mut Cases, &At),
) {
    let Some(program) = program else { return };
    let at = At {
        place: Arc::new(servers(TopologyKind::Standalone).await),
        client: CLIENTS[0],
        program: Arc::new(program),
        profile,
        form,
    };
    // Each has one or two processes, and starting one takes a second of CPU.
    let mut cases = Cases::at_once(4);
    for client in CLIENTS {
        let at = At {
            client,
            ..at.clone()
        };
        let name = |case: &str| format!("{} {client} {case}", at.program.library);
        cases.add(name("they hold"), both_ways::they_hold(at.clone()));
        cases.add(name("we hold"), both_ways::we_hold(at.clone()));
        cases.add(name("leases end"), both_ways::leases_end(at.clone()));
    }
    add(&mut cases, &at);
    cases.all_pass().await;
    drop(at);
}

fn is_hex(value: &str) -> bool {
    value.len() == 32 && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_base64(value: &str) -> bool {
    value.len() == 24 && value.ends_with("==")
}

fn is_base64_of_18(value: &str) -> bool {
    value.len() == 24 && !value.contains('=')
}

fn is_base64_for_urls(value: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    value.len() == 22 && value.bytes().all(fits)
}

fn is_uuid(value: &str) -> bool {
    let lengths = value.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12])
        && value
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn is_twenty_bytes(value: &str) -> bool {
    value.len() == 40 && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_of_shedlock(value: &str) -> bool {
    value.starts_with("ADDED:20") && value.contains('@')
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_redlock() {
    let program = node("node-redlock", "node_redlock.mjs");
    everything(program, MutexProfile::node_redlock, is_hex, |cases, at| {
        cases.add("several resources", particular::several(at.clone()));
        cases.add("node gives up", particular::gives_up(at.clone()));
        let said = "retryCount=10 retryDelay=200 retryJitter=100 automaticExtensionThreshold=500";
        let words = &[
            "`retryCount: 10`, `retryDelay: 200`, `retryJitter: 100`",
            "`automaticExtensionThreshold: 500`",
        ];
        let defaults = particular::defaults(at.clone(), said, "node-redlock.md", words);
        cases.add("defaults of node-redlock", defaults);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_semaphore() {
    let program = node("redis-semaphore", "redis_semaphore.mjs");
    everything(program, MutexProfile::redis_semaphore, is_uuid, |_, _| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redlock_universal() {
    let program = node("redlock-universal", "redlock_universal.mjs");
    everything(program, MutexProfile::redlock_universal, is_hex, |_, _| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redsync() {
    let program = go("redsync", "redsync");
    everything(program, MutexProfile::redsync, is_base64, |cases, at| {
        cases.add("SetNXOnExtend", particular::revived(at.clone()));
        cases.add("redsync gives up", particular::gives_up(at.clone()));
        let words = &["`WithExpiry`, 8 s by default", "`WithTries(32)`"];
        let defaults = particular::defaults(at.clone(), "expiry=8s tries=32", "redsync.md", words);
        cases.add("defaults of redsync", defaults);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bsm_redislock() {
    let (program, form) = (go("bsm-redislock", "redislock"), is_base64_for_urls);
    everything(program, MutexProfile::bsm_redislock, form, |cases, at| {
        cases.add("tokens", pip_and_go::tokens(at.clone()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_py() {
    everything(python(), MutexProfile::redis_py, is_hex, |cases, at| {
        cases.add("without expiry", particular::without_expiry(at.clone()));
        cases.add("owned", particular::owned(at.clone()));
        let said = "timeout=None sleep=0.1 blocking=True blocking_timeout=None";
        let words = &["`timeout=None`, the default", "asks every `sleep`, 0.1 s"];
        let defaults = particular::defaults(at.clone(), said, "redis-py.md", words);
        cases.add("defaults of redis-py", defaults);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_redis_lock() {
    let program = pip("python-redis-lock", "python_redis_lock");
    let (profile, form) = (MutexProfile::python_redis_lock, is_base64_of_18);
    everything(program, profile, form, |cases, at| {
        cases.add("woken by the list", pip_and_go::woken(at.clone()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sherlock() {
    let program = pip("sherlock", "sherlock");
    let profile = || MutexProfile::sherlock_in("app").unwrap();
    everything(program, profile, is_uuid, |cases, at| {
        cases.add("without expiry", pip_and_go::holds_nothing(at.clone()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pottery() {
    let program = pip("pottery", "pottery");
    everything(program, MutexProfile::pottery, is_uuid, |cases, at| {
        cases.add("three extensions", pip_and_go::extends_thrice(at.clone()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rslock_itself() {
    let program = Some(rslock());
    everything(program, MutexProfile::rslock, is_twenty_bytes, |_, _| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spring_integration() {
    let program = java("spring", "spring");
    let profile = || MutexProfile::spring("orders").unwrap();
    everything(program, profile, is_uuid, |cases, at| {
        cases.add("PUB_SUB_LOCK", particular::announced(at.clone()));
        let said = "expireAfter=PT1M idleBetweenTries=PT0.1S redisLockType=SPIN_LOCK";
        let words = &[
            "expires after 60 s",
            "spin lock (default): asks every 100 ms",
        ];
        let defaults = particular::defaults(at.clone(), said, "spring-shedlock.md", words);
        cases.add("defaults of Spring", defaults);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shedlock() {
    let program = java("shedlock", "shedlock");
    let profile = || MutexProfile::shedlock("default").unwrap();
    everything(program, profile, is_of_shedlock, |cases, at| {
        let safe = particular::late_release(at.clone(), true);
        cases.add("shedlock with safeUpdate", safe);
        let usual = particular::late_release(at.clone(), false);
        cases.add("shedlock without safeUpdate", usual);
    })
    .await;
}

/// Only its defaults; its locks are in `redisson_topology`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defaults_of_redisson() {
    let Some(program) = java("redisson", "redisson") else {
        return;
    };
    let place = servers(TopologyKind::Standalone).await;
    let theirs = Worker::start(&program, &place.url()).await;
    let said = "lockWatchdogTimeout=30000 checkLockSyncedSlaves=true slavesSyncTimeout=1000 fairLockWaitTimeout=300000";
    let words = &[
        "`lockWatchdogTimeout`, 30 s, renewed every 10 s",
        "`checkLockSyncedSlaves=true`: waits up to `slavesSyncTimeout` (1 s)",
        "after `fairLockWaitTimeout`, 5 min",
    ];
    particular::defaults_of(theirs, said, "redisson.md", words).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quorum_with_node_redlock() {
    let program = node("node-redlock", "node_redlock.mjs");
    several::on_three(program, MutexProfile::node_redlock).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quorum_with_redsync() {
    several::on_three(go("redsync", "redsync"), MutexProfile::redsync).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quorum_with_pottery() {
    several::on_three(pip("pottery", "pottery"), MutexProfile::pottery).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quorum_with_rslock() {
    several::on_three(Some(rslock()), MutexProfile::rslock).await;
}
