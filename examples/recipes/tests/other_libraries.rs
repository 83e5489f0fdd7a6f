//! Tests of the programs that share a lock with another library: no update is lost, and both have
//! turns.
//!
//! Without a JDK and Maven, or without a Python that has redis-py, a test skips itself with a loud
//! message. In CI that is a failure, unless `LOCKTOPUS_SKIP_JDK` or `LOCKTOPUS_SKIP_REDIS_PY` gives
//! a reason.
#![cfg(unix)]

use std::ffi::OsString;
use std::process::Stdio;

use locktopus::{LockError, LockGuard, Locktopus, MutexProfile};
use locktopus_servers::peers::redisson::jar_or_skip;
use locktopus_servers::topology::{Deployment, ProviderKind, Spec, TopologyKind, start};
use locktopus_servers::{in_ci, reason_in, skipped};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Both count to `turns` on a server of their own, at the same time. `held` takes the lock first,
/// so that neither counts before both are there.
async fn count_together(
    recipe: &str,
    mut neighbour: Command,
    held: impl AsyncFnOnce(&Locktopus) -> std::result::Result<LockGuard, LockError>,
    turns: usize,
) -> Result {
    let server = start(ProviderKind::Plain, &Spec::new(TopologyKind::Standalone)).await?;
    let locks = locktopus::connect(&server.url()).await?;
    let held = held(&locks).await?;
    let neighbour = neighbour.arg(server.url()).stdout(Stdio::piped());
    let mut neighbour = neighbour.kill_on_drop(true).spawn()?;
    let mut said = BufReader::new(neighbour.stdout.take().ok_or("no pipe")?).lines();
    assert_eq!(said.next_line().await?.as_deref(), Some("connected"));
    // Neither library orders the two, and a loop that runs alone soon ends. So the neighbour is
    // stopped, without the lock, until ours has had a turn. From then on it asks far more often
    // than ours has turns left.
    let stopped = neighbour
        .id()
        .and_then(|id| Pid::from_raw(id.cast_signed()));
    let stopped = stopped.ok_or("it has ended")?;
    kill_process(stopped, Signal::STOP)?;
    let mut ours = Command::new(recipe);
    let ours = ours.env("LOCKTOPUS_URL", server.url()).kill_on_drop(true);
    let mut ours = ours.spawn()?;
    held.release().await?;
    // Waits for the first turn, and puts it back.
    let first = [
        "BLMOVE",
        "orders:turns",
        "orders:turns",
        "LEFT",
        "LEFT",
        "60",
    ];
    assert_eq!(ask(&server, &first).await?, ["rust"]);
    kill_process(stopped, Signal::CONT)?;
    let (ours, theirs) = tokio::try_join!(ours.wait(), neighbour.wait())?;
    assert!(ours.success() && theirs.success(), "{ours}, {theirs}");

    let counter = ask(&server, &["GET", "orders:counter"]).await?;
    assert_eq!(counter, [(2 * turns).to_string()], "updates were lost");
    let order = ask(&server, &["LRANGE", "orders:turns", "0", "-1"]).await?;
    assert_eq!(order.len(), 2 * turns);
    let changes = order.windows(2).filter(|two| two[0] != two[1]).count();
    // The scheduler decides how often they meet: on a busy machine one may have many turns in a
    // row.
    assert!(changes > 1, "one counted after the other");
    Ok(())
}

async fn ask(server: &Deployment, command: &[&str]) -> Result<Vec<String>> {
    let reply = server.nodes()[0].command(command).await?;
    let items = match reply.items() {
        [] => vec![reply.text()],
        items => items.iter().map(|item| item.text()).collect(),
    };
    Ok(items)
}

fn neighbour(file: &str) -> String {
    format!("{}/neighbours/{file}", env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test]
async fn java_and_rust_count_together() -> Result {
    let Some(jar) = jar_or_skip().await? else {
        return Ok(());
    };
    let mut java = Command::new(jar.java());
    let libraries = jar.libraries().join("*");
    java.arg("-cp")
        .arg(libraries)
        .arg(neighbour("Counter.java"));
    let held = async |locks: &Locktopus| locks.lock("orders").acquire().await;
    count_together(env!("CARGO_BIN_EXE_with_redisson"), java, held, 200).await
}

#[tokio::test]
async fn python_and_rust_count_together() -> Result {
    let Some(python) = python_with_redis().await? else {
        return Ok(());
    };
    let mut python = Command::new(python);
    python.arg(neighbour("counter.py"));
    let held = async |locks: &Locktopus| {
        let orders = locks.mutex_as("orders", MutexProfile::redis_py());
        orders.acquire().await
    };
    count_together(env!("CARGO_BIN_EXE_with_redis_py"), python, held, 50).await
}

/// A Python with redis-py: the one that `LOCKTOPUS_PYTHON` names, or else the first one in `PATH`
/// or the system's.
async fn python_with_redis() -> Result<Option<OsString>> {
    let reason = reason_in("LOCKTOPUS_SKIP_REDIS_PY");
    if reason.is_none() {
        let named = std::env::var_os("LOCKTOPUS_PYTHON");
        let usual = || vec!["python3".into(), "/usr/bin/python3".into()];
        for python in named.map_or_else(usual, |named| vec![named]) {
            let mut looked = Command::new(&python);
            let looked = looked
                .args(["-c", "import redis.lock"])
                .stderr(Stdio::null());
            if looked.status().await.is_ok_and(|status| status.success()) {
                return Ok(Some(python));
            }
        }
        if in_ci() {
            return Err("no Python with redis-py: install the package python3-redis".into());
        }
    }
    let why = reason.unwrap_or_else(|| "no python3 has the package redis".to_owned());
    skipped("a test with redis-py", &why);
    Ok(None)
}
