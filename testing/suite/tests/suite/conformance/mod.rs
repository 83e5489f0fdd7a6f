//! The conformance suite on servers, through one client library or several.

#![allow(dead_code, reason = "each test program uses its part")]

pub(crate) mod quorum;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use locktopus::{DynBackend, LockTarget};
use locktopus_conformance::{Report, Suite};
use locktopus_protocol::Keys;
use locktopus_servers::topology::{Deployment, ProviderKind};
use tokio::sync::Semaphore;

use crate::common::{LOGIN, chain, url};

/// The clients that the suite's connections use in turn.
pub(crate) const ONE: [&[&str]; 2] = [&["redis"], &["fred"]];

/// Through redis-rs's cluster connection, alone and beside the others.
pub(crate) const ROUTED: [&[&str]; 2] = [&[ROUTER], &[ROUTER, "redis", "fred"]];

/// The client of a URL that uses it.
pub(crate) const ROUTER: &str = "redis&router=client";

/// The time limit of a call and of a connection: the suite checks answers, not how fast a busy
/// machine gives them.
const PATIENCE: &str = "timeout=5s&connect_timeout=5s";

/// How long one answer of a distant server may take on a busy machine. All other limits follow from
/// it.
const ONE_ANSWER: &str = "timeout=5s";

/// Both at once, contending for the same locks.
pub(crate) const BOTH: &[&str] = &["redis", "fred"];

/// The suite keeps a core busy and measures leases, so only a few run at a time. The tests beside
/// them mostly wait.
static TURNS: Semaphore = Semaphore::const_new(3);

async fn run(suite: Suite) -> Report {
    let _turn = TURNS.acquire().await;
    suite.run().await
}

/// Runs every case, and fails with the names of the broken rules.
pub(crate) async fn passes(place: &Arc<Deployment>, clients: &'static [&'static str]) {
    let report = run(suite(login(place), PATIENCE, place, clients)).await;
    passed(&report, place, clients);
}

/// As [`passes`], with a login such as `user:password@`.
pub(crate) async fn passes_as(
    login: &'static str,
    place: &Arc<Deployment>,
    clients: &'static [&'static str],
) {
    let report = run(suite(login, PATIENCE, place, clients)).await;
    passed(&report, place, clients);
}

/// As [`passes`], with its own options instead of a long timeout.
pub(crate) async fn passes_with(
    options: &'static str,
    place: &Arc<Deployment>,
    clients: &'static [&'static str],
) {
    let report = run(suite(login(place), options, place, clients)).await;
    passed(&report, place, clients);
}

/// As [`passes`], on servers that are this far away, with a connection timeout that follows from
/// the call timeout.
pub(crate) async fn passes_far(
    place: &Arc<Deployment>,
    clients: &'static [&'static str],
    round_trip: Duration,
) {
    let suite = suite("", ONE_ANSWER, place, clients);
    let report = run(suite.round_trip(round_trip)).await;
    println!("      {round_trip:?} away:");
    passed(&report, place, clients);
}

/// The suite's user has exactly the rights that locks need. Containers are started elsewhere,
/// without that user.
fn login(place: &Deployment) -> &'static str {
    match place.provider() {
        ProviderKind::Plain => LOGIN,
        _ => "",
    }
}

fn passed(report: &Report, place: &Deployment, clients: &[&str]) {
    let what = format!(
        "{} {}{} on {}, by {}",
        place.provider(),
        place.kind(),
        if place.tls().is_some() {
            " with TLS"
        } else {
            ""
        },
        place.server_version(),
        clients.join(" and ")
    );
    let failures: Vec<_> = report.failures().collect();
    assert!(failures.is_empty(), "{what}: {failures:#?}");
    assert!(!report.outcomes().is_empty(), "{what}: nothing was run");
    let summary = report.to_string();
    println!(
        "ok    {what}: {}",
        summary.lines().last().unwrap_or_default()
    );
}

fn suite(
    login: &'static str,
    options: &'static str,
    place: &Arc<Deployment>,
    clients: &'static [&'static str],
) -> Suite {
    let turn = Arc::new(AtomicUsize::new(0));
    let [servers, at, seen] = [(); 3].map(|()| Arc::clone(place));
    Suite::new(move || {
        let client = clients[turn.fetch_add(1, Ordering::Relaxed) % clients.len()];
        let options = format!("client={client}&{options}");
        let url = url(&servers.url(), &options).replace("://", &format!("://{login}"));
        async move { open(&url).await }
    })
    .wipe(move |target| delete(Arc::clone(&at), target))
    .picture(move |name| picture(Arc::clone(&seen), name))
}

/// Every key of a server that matches, with its value and expiry time.
const PICTURE: &str = "local seen = {} \
    for _, key in ipairs(redis.call('KEYS', ARGV[1])) do \
      seen[#seen + 1] = key .. ' ' .. redis.call('PEXPIRETIME', key) .. ' ' .. redis.sha1hex(redis.call('DUMP', key)) \
    end \
    table.sort(seen) \
    return table.concat(seen, '\\n')";

/// Everything that primaries store under names that contain `name`.
async fn picture(place: Arc<Deployment>, name: String) -> String {
    let pattern = format!("*{}*", literal(&name));
    let mut seen = Vec::new();
    for node in place.nodes() {
        // Replicas do not decide what exists, and sentinels have no keys.
        let role = node.command(&["ROLE"]).await.unwrap();
        if role
            .items()
            .first()
            .is_some_and(|role| role.text() == "master")
        {
            let keys = node.command(&["EVAL", PICTURE, "0", &pattern]).await;
            seen.push(keys.unwrap().text());
        }
    }
    seen.concat()
}

/// A pattern that matches only this name.
fn literal(name: &str) -> String {
    name.replace('[', "\\[").replace(']', "\\]")
}

async fn open(url: &str) -> DynBackend {
    match locktopus::connect_backend(url).await {
        Ok(backend) => backend,
        Err(error) => panic!("{url}: {}", chain(&error)),
    }
}

/// Deletes a lock as an operator with a command line would.
async fn delete(place: Arc<Deployment>, target: LockTarget) {
    let key = Keys::of(&target).main().to_owned();
    let node = place.primary_for(&key).await.unwrap();
    let deleted = node.command(&["DEL", &key]).await.unwrap();
    assert_eq!(deleted.text(), "1", "{target} was not there to be deleted");
}
