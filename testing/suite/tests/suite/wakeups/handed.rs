//! The cost of a contended acquisition, counted over all commands that a server received.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use locktopus::{AnyGuard, LockGuard, LockRequest, Locktopus, RateLimiter, WriteGuard};
use locktopus_protocol::scripts::{self, KindScripts, Script};
use locktopus_servers::topology::{Deployment, Node};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::common::raw::Raw;
use crate::common::{HANDED, HANDED_LEASE, LONG, close, locks_apart, unique};

/// In each of two processes.
const WAITERS: usize = 60;

/// Two commands for each acquisition, however long it waits.
pub(crate) async fn cost(place: Arc<Deployment>, clients: [&str; 2]) -> String {
    let (a, b) = (
        locks_apart(&place, clients[0]).await,
        locks_apart(&place, clients[1]).await,
    );
    let both = [&a, &b];
    let name = || unique("handed");
    let (permits, ids) = (name(), name());
    a.semaphore(&permits).initialise(1).await.unwrap();
    a.permit_semaphore(&ids).initialise(1).await.unwrap();
    let (lock, mutex, fair, write) = (name(), name(), name(), name());
    let mut all = 0;
    for (scripts, name, requests) in [
        (&scripts::LOCK, &lock, both.map(|l| l.lock(&lock))),
        (&scripts::MUTEX, &mutex, both.map(|l| l.mutex(&mutex))),
        (&scripts::FAIR, &fair, both.map(|l| l.fair_lock(&fair))),
        (
            &scripts::SEMAPHORE,
            &permits,
            both.map(|l| l.semaphore(&permits).permits(1)),
        ),
        (
            &scripts::PERMITS,
            &ids,
            both.map(|l| l.permit_semaphore(&ids).permits(1)),
        ),
    ] {
        all += counted(&place, scripts, name, requests).await;
    }
    let writers = both.map(|l| l.rw_lock(&write).write());
    all += counted(&place, &scripts::WRITE, &write, writers).await;
    all += rated(&place, both).await;
    close(a).await;
    close(b).await;
    format!("{all} contended acquisitions by two scripts each")
}

trait Back: AnyGuard {
    fn back(self) -> impl Future<Output = ()> + Send;
}

impl Back for LockGuard {
    async fn back(self) {
        self.release().await.unwrap();
    }
}

impl Back for WriteGuard {
    async fn back(self) {
        self.release().await.unwrap();
    }
}

/// Returns the number of acquisitions.
async fn counted<G: Back + Send + 'static>(
    place: &Deployment,
    scripts: &KindScripts,
    name: &str,
    requests: [LockRequest<G>; 2],
) -> usize {
    let requests = requests.map(|request| request.strategy(HANDED).fixed_lease(HANDED_LEASE));
    let mut monitor = Monitor::start(place.primary_for(name).await.unwrap(), scripts, name).await;
    let holder = requests[0].clone().acquire().await.unwrap();
    // The first waiter of a process subscribes and then tries once more; later ones find it
    // listening.
    let mut waiters = JoinSet::new();
    for request in &requests {
        let request = request.clone();
        waiters.spawn(async move { request.acquire().await.unwrap().back().await });
    }
    monitor.until(|seen| seen.acquired == 5).await;

    // The queue must not run empty before the end: the release that empties it is announced, which
    // may wake the next newcomer and make it try once more. On a busy machine, tasks that come back
    // for another turn can be too slow to prevent that.
    let acquisitions = 2 * WAITERS;
    for request in requests.iter().cycle().take(acquisitions) {
        let request = request.clone();
        waiters.spawn(async move { request.acquire().await.unwrap().back().await });
    }
    monitor
        .until(|seen| seen.acquired == 5 + acquisitions)
        .await;
    holder.back().await;
    timeout(LONG, waiters.join_all()).await.expect("served");

    let mark = unique("mark");
    let node = place.primary_for(name).await.unwrap();
    node.command(&["ECHO", &mark]).await.unwrap();
    monitor.until(|seen| seen.last.contains(&mark)).await;
    let seen = &monitor.seen;
    assert_eq!(seen.acquired, 5 + acquisitions, "{name} {seen:?}");
    assert_eq!(seen.released, 3 + acquisitions, "{name} {seen:?}");
    assert!(seen.others.is_empty(), "{name} {seen:?}");
    acquisitions
}

/// Waiters for returning permits do not spin: the server tells each when to try, besides its
/// heartbeat once a second.
async fn rated(place: &Deployment, both: [&Locktopus; 2]) -> usize {
    let (name, acquisitions) = (unique("rated"), 30);
    let limiters = both.map(|locks| locks.rate_limiter(&name));
    let rate = limiters[0].initialise(5, Duration::from_millis(200));
    rate.await.unwrap();
    let node = place.primary_for(&name).await.unwrap();
    let mut monitor = Monitor::start(node, &scripts::RATE, &name).await;
    let begun = Instant::now();
    let all = limiters.iter().cycle().take(acquisitions);
    let served = timeout(LONG, join_all(all.map(RateLimiter::acquire))).await;
    assert!(served.expect("served").iter().all(Result::is_ok));
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    node.command(&["ECHO", &name]).await.unwrap();
    monitor.until(|seen| seen.last.contains("ECHO")).await;
    let (seen, most) = (&monitor.seen, acquisitions * (4 + 2 * seconds));
    assert!(
        seen.acquired <= most && seen.released == 0,
        "{most} {seen:?}"
    );
    acquisitions
}

/// Sees every command that clients send to a node.
struct Monitor {
    raw: Raw,
    name: String,
    /// The digests of the script and of its batches.
    acquire: [String; 2],
    release: [String; 2],
    seen: Seen,
}

#[derive(Debug, Default)]
struct Seen {
    acquired: usize,
    released: usize,
    /// Unexpected commands, by name.
    others: BTreeMap<String, usize>,
    last: String,
}

/// Commands of connections and subscriptions, at the start and now and then; a script that the
/// server did not know yet; the end of the count.
const HARMLESS: [&str; 9] = [
    "hello",
    "info",
    "client",
    "cluster",
    "ping",
    "subscribe",
    "ssubscribe",
    "eval",
    "echo",
];

fn digests(script: &Script) -> [String; 2] {
    [script, script.together()].map(|script| script.digest().to_owned())
}

impl Monitor {
    async fn start(node: &Node, scripts: &KindScripts, name: &str) -> Self {
        let mut raw = Raw::to(node).await;
        assert_eq!(raw.say(&["MONITOR"]).await.text(), "OK");
        Self {
            raw,
            name: name.to_owned(),
            acquire: digests(&scripts.acquire),
            release: digests(&scripts.release),
            seen: Seen::default(),
        }
    }

    async fn until(&mut self, enough: impl Fn(&Seen) -> bool) {
        while !enough(&self.seen) {
            let line = self.raw.hear().await.text();
            // `1700000000.000000 [0 127.0.0.1:4711] "evalsha" "..."`, or `[0 lua]` for commands of
            // a script.
            let (from, words) = line.split_once("] ").unwrap();
            if from.ends_with(" lua") {
                continue;
            }
            let mut words = words.split('"').skip(1).step_by(2);
            let command = words.next().unwrap().to_lowercase();
            let digest = words.next().unwrap_or_default();
            let named = |words: &mut dyn Iterator<Item = &str>| {
                words.filter(|word| *word == self.name).count()
            };
            match command.as_str() {
                "evalsha" if digest == self.acquire[0] => self.seen.acquired += 1,
                "evalsha" if digest == self.release[0] => self.seen.released += 1,
                // Each member of a batch names the lock once.
                "evalsha" if digest == self.acquire[1] => self.seen.acquired += named(&mut words),
                "evalsha" if digest == self.release[1] => self.seen.released += named(&mut words),
                harmless if HARMLESS.contains(&harmless) => {}
                // Of the previous lock, which has no waiters any more.
                "unsubscribe" | "sunsubscribe" if !line.contains(&self.name) => {}
                _ => *self.seen.others.entry(command).or_default() += 1,
            }
            self.seen.last = line;
        }
    }
}
