//! Measures what the scripts cost the server:
//! `cargo run --package locktopus-suite --all-features --example script_costs [ROUNDS]`.
//!
//! It sends acquisitions and releases one after the other through the backend, so that neither the
//! client's speed nor its build matters much, and reads the server's own counters before and after.
//! For each kind it prints the commands of one acquisition and release, including those that
//! scripts call, the time inside the scripts, and the CPU time of the server, each as minimum and
//! median over the rounds. To compare two builds, run them alternately. `W` waiters are queued all
//! the time; with 0 the lock is uncontended.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use locktopus::client::{RedisClient, Reply};
use locktopus::{
    AcquireAttempt, AttemptOutcome, DynBackend, LockKind, LockName, LockTarget, OwnerId,
    ReleaseOutcome, ReleaseRequest, connect_backend, connect_client,
};
use locktopus_servers::topology::{self, ProviderKind, Spec, TopologyKind};
use tokio::time::Instant;

/// Pairs in one round of one case.
const PAIRS: u32 = 2_000;
const CALL: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(30);
/// Long, because no heartbeat renews the place.
const PLACE: Duration = Duration::from_secs(600);

type Fallible<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible<()> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    let spec = Spec::new(TopologyKind::Standalone);
    let servers = topology::start(ProviderKind::Plain, &spec).await?;
    let url = servers.url();
    let (backend, counters) = (connect_backend(&url).await?, connect_client(&url).await?);
    println!("kind          W   commands   script us  (min)   server CPU us  (min)");
    for kind in [
        LockKind::Reentrant,
        LockKind::Mutex(Arc::default()),
        LockKind::Fair,
    ] {
        for waiters in [0, 8, 128, 1024] {
            let mut costs = Vec::new();
            for round in 0..rounds {
                let name = LockName::new(format!("{}-{waiters}-{round}", kind.as_str()))?;
                let target = LockTarget::new(name, kind.clone());
                costs.push(round_of(&backend, &*counters, &target, waiters).await?);
            }
            let each = |figure: fn(&Cost) -> f64| {
                let mut all: Vec<f64> = costs.iter().map(figure).collect();
                all.sort_by(f64::total_cmp);
                (all[all.len() / 2], all[0])
            };
            let (script, least_script) = each(|cost| cost.script_us);
            let (cpu, least_cpu) = each(|cost| cost.cpu_us);
            let (commands, _) = each(|cost| cost.commands);
            println!(
                "{:<10} {waiters:>4} {commands:>10.2} {script:>11.2} ({least_script:>5.2}) {cpu:>15.2} ({least_cpu:>5.2})",
                kind.as_str()
            );
        }
    }
    backend.close().await;
    Ok(())
}

/// The cost of one pair.
struct Cost {
    commands: f64,
    script_us: f64,
    cpu_us: f64,
}

async fn round_of(
    backend: &DynBackend,
    counters: &dyn RedisClient,
    target: &LockTarget,
    waiters: usize,
) -> Fallible<Cost> {
    // Only listening waiters are granted the lock.
    let _listening = backend.subscribe(target, Instant::now() + CALL).await?;
    let mut line = VecDeque::new();
    for _ in 0..waiters {
        line.push_back(attempt(backend, target, true).await?);
    }
    let before = Reading::of(counters).await?;
    for _ in 0..PAIRS {
        line.push_back(attempt(backend, target, waiters > 0).await?);
        let holder = line.pop_front().ok_or("somebody holds it")?;
        release(backend, target, holder).await?;
    }
    let after = Reading::of(counters).await?;
    for holder in line {
        release(backend, target, holder).await?;
    }
    let pair = |now: f64, then: f64| (now - then) / f64::from(PAIRS);
    Ok(Cost {
        commands: pair(after.commands, before.commands),
        script_us: pair(after.script_us, before.script_us),
        cpu_us: pair(after.cpu_us, before.cpu_us),
    })
}

/// As the core asks: a process that already listens to the lock may join its queue at once.
async fn attempt(backend: &DynBackend, target: &LockTarget, joins: bool) -> Fallible<OwnerId> {
    let owner = target.kind().new_owner();
    let attempt = AcquireAttempt {
        place: Some(PLACE),
        first: joins,
        ..AcquireAttempt::new(target.clone(), owner.clone(), LEASE, Instant::now() + CALL)
    };
    match backend.attempt(&attempt).await? {
        AttemptOutcome::Granted { .. } | AttemptOutcome::Queued { .. } => Ok(owner),
        AttemptOutcome::Held { .. } => Err("a place in the line was asked for".into()),
    }
}

/// In queue order, so that each owner holds the lock by then.
async fn release(backend: &DynBackend, target: &LockTarget, owner: OwnerId) -> Fallible<()> {
    let request = ReleaseRequest::new(target.clone(), owner, Instant::now() + CALL);
    match backend.release(&request).await? {
        ReleaseOutcome::Released => Ok(()),
        ReleaseOutcome::NotHeld => Err("the lock was not handed to the first in line".into()),
    }
}

/// The server's counters at one moment.
#[derive(Default)]
struct Reading {
    commands: f64,
    script_us: f64,
    cpu_us: f64,
}

impl Reading {
    async fn of(client: &dyn RedisClient) -> Fallible<Self> {
        let mut reading = Self::default();
        for node in client
            .command_on_primaries(&[b"INFO", b"everything"])
            .await?
        {
            let Reply::Bytes(text) = node.reply? else {
                return Err("INFO is a text".into());
            };
            for line in String::from_utf8_lossy(&text).lines() {
                reading.add(line)?;
            }
        }
        Ok(reading)
    }

    fn add(&mut self, line: &str) -> Fallible<()> {
        let Some((name, value)) = line.trim().split_once(':') else {
            return Ok(());
        };
        if matches!(name, "used_cpu_user" | "used_cpu_sys") {
            self.cpu_us += value.parse::<f64>()? * 1e6;
        }
        let Some(command) = name.strip_prefix("cmdstat_") else {
            return Ok(());
        };
        let of = |what: &str| {
            let mut parts = value.split(',').filter_map(|part| part.split_once('='));
            parts.find(|(key, _)| *key == what).map(|(_, text)| text)
        };
        if command == "evalsha" {
            self.script_us += of("usec").ok_or("times of scripts")?.parse::<f64>()?;
        }
        if !matches!(command, "info" | "ping") {
            self.commands += of("calls").ok_or("numbers of calls")?.parse::<f64>()?;
        }
        Ok(())
    }
}
