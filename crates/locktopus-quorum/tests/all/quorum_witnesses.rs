//! Servers with clocks that are wrong or get set, and with notes about each other.

use crate::quorum_common;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{BackendError, NodeIdentity, NodeProbe, Sighting};
use locktopus_core::Locktopus;
use locktopus_quorum::QuorumBackend;
use quorum_common::{Peer, peers};
use tokio::time::{Instant, sleep};

const MAX_LEASE: Duration = Duration::from_secs(60);
const HOUR: i64 = 3600;
const MOMENT: Duration = Duration::from_millis(100);

/// A server with its own clock, and its notes.
#[derive(Debug, Clone)]
struct Server {
    peer: Peer,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    begun: Instant,
    /// How many seconds the clock is ahead.
    ahead: i64,
    /// The clock's reading at the server's start.
    started: i64,
    told: HashMap<String, (i64, String)>,
}

impl State {
    /// Far enough from zero for all settings of the clock.
    fn clock(&self) -> i64 {
        1_000_000_000 + self.begun.elapsed().as_millis() as i64 / 1_000 + self.ahead
    }
}

impl Server {
    fn of(peer: Peer) -> Self {
        let begun = Instant::now();
        let state = State {
            begun,
            ahead: 0,
            started: 0,
            told: HashMap::new(),
        };
        Self {
            peer,
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn restart_empty(&self) {
        self.peer.restart_empty();
        let mut state = self.state.lock().unwrap();
        state.started = state.clock();
        state.told.clear();
    }

    fn set_clock(&self, seconds: i64) {
        self.state.lock().unwrap().ahead += seconds;
    }
}

#[async_trait]
impl NodeProbe for Server {
    fn generation(&self) -> u64 {
        self.peer.generation()
    }

    async fn identity(&self, deadline: Instant) -> Result<NodeIdentity, BackendError> {
        let exact = self.peer.identity(deadline).await?;
        let state = self.state.lock().unwrap();
        // Whole seconds, perhaps rounded up.
        let up = u64::try_from(state.clock() - state.started - 1).unwrap_or(0);
        Ok(NodeIdentity::new(exact.run_id, Duration::from_secs(up)))
    }

    async fn sighting(
        &self,
        label: &str,
        deadline: Instant,
    ) -> Result<Option<Sighting>, BackendError> {
        // Fails while the server is away.
        self.peer.identity(deadline).await?;
        let state = self.state.lock().unwrap();
        let seen = state.told.get(label).map(|(at, run_id)| {
            let age = u64::try_from(state.clock() - at).map(Duration::from_secs);
            Sighting::new(run_id.as_str(), age.unwrap_or(Duration::MAX))
        });
        Ok(seen)
    }

    async fn note_sighting(
        &self,
        label: &str,
        sighting: &Sighting,
        deadline: Instant,
    ) -> Result<(), BackendError> {
        self.peer.identity(deadline).await?;
        let mut state = self.state.lock().unwrap();
        let at = state.clock() - sighting.age.as_secs() as i64;
        let seen = (at, sighting.run_id.clone());
        state.told.insert(label.to_owned(), seen);
        Ok(())
    }
}

fn servers(count: usize) -> Vec<Server> {
    peers(count, 1).into_iter().map(Server::of).collect()
}

/// A program that has just started.
fn fresh(servers: &[Server]) -> Locktopus {
    let nodes = servers.iter().zip(["a", "b", "c", "d", "e"]);
    let quorum = nodes.fold(QuorumBackend::builder(), |builder, (server, label)| {
        let backend = Arc::new(server.peer.clone());
        builder.probed_node(label, backend, Arc::new(server.clone()))
    });
    let quorum = quorum.max_lease(MAX_LEASE).build().unwrap();
    let locks = Locktopus::builder(quorum).renewed_lease(MAX_LEASE / 2);
    locks.build().unwrap()
}

async fn works_at_once(locks: &Locktopus, what: &str) {
    let began = Instant::now();
    let granted = locks.mutex("other").try_acquire().await;
    let guard = granted.unwrap_or_else(|error| panic!("{what}: {error}"));
    guard
        .expect("nobody else wants it")
        .release()
        .await
        .unwrap();
    assert!(began.elapsed() < MOMENT * 10, "{what}");
}

/// All sets of `count` servers.
fn subsets(count: usize, of: usize) -> impl Iterator<Item = Vec<usize>> {
    let all = (0..1_usize << of).filter(move |set| set.count_ones() as usize == count);
    all.map(move |set| (0..of).filter(|at| set >> at & 1 == 1).collect())
}

/// Retries until it is granted, which must not happen earlier than `until`.
async fn nobody_before(until: Instant, what: &str, mut is_granted: impl AsyncFnMut() -> bool) {
    while !is_granted().await {
        assert!(Instant::now() < until + MAX_LEASE * 2, "{what}: never");
        sleep(MOMENT * 5).await;
    }
    let early = until.saturating_duration_since(Instant::now());
    assert!(early.is_zero(), "{what}: granted {early:?} early");
}

/// A majority restarts without its data, with a clock that is behind and is corrected soon. No new
/// program gets a held lock, even if other programs looked meanwhile or the other nodes have been
/// silent since.
#[tokio::test(start_paused = true)]
async fn a_clock_that_was_behind_at_a_restart_makes_no_server_old() {
    for count in [3, 5] {
        for restarted in (count / 2 + 1..count).flat_map(|some| subsets(some, count)) {
            for (seen_between, silent) in [(false, false), (true, false), (false, true)] {
                let what = format!("{restarted:?} of {count}, {seen_between}, {silent}");
                let servers = servers(count);
                let holder = fresh(&servers);
                let request = holder.mutex("job").fixed_lease(MAX_LEASE);
                let held = request.acquire().await.unwrap();
                let until = Instant::now() + held.remaining();
                let bystander = fresh(&servers);
                for at in &restarted {
                    servers[*at].set_clock(-HOUR);
                    servers[*at].restart_empty();
                }
                sleep(MOMENT * 10).await;
                if seen_between {
                    let _ = bystander.mutex("job").try_acquire().await;
                    let _ = fresh(&servers).mutex("job").try_acquire().await;
                    sleep(MOMENT * 100).await;
                }
                restarted.iter().for_each(|at| servers[*at].set_clock(HOUR));
                for at in (0..count).filter(|at| silent && !restarted.contains(at)) {
                    match at % 2 {
                        0 => servers[at].peer.far(MAX_LEASE * 10),
                        _ => servers[at].peer.kill(),
                    }
                }
                let others = [fresh(&servers), bystander];
                nobody_before(until, &what, async || {
                    let mut granted = false;
                    for other in others.iter().chain([&fresh(&servers)]) {
                        let outcome = other.mutex("job").try_acquire().await;
                        granted |= matches!(outcome, Ok(Some(_)));
                    }
                    granted
                })
                .await;
            }
        }
    }
}

/// The very first program waits until every node has answered, not for the longest lease. If a node
/// stays silent, it waits for that lease, and later programs do not.
#[tokio::test(start_paused = true)]
async fn the_first_program_of_all_waits_for_answers_that_are_late() {
    for silent_for in [MOMENT * 8, MOMENT * 50, MAX_LEASE * 10] {
        let (servers, began) = (servers(3), Instant::now());
        let peer = servers[2].peer.clone();
        peer.far(silent_for);
        tokio::spawn(async move {
            sleep(silent_for).await;
            peer.far(Duration::ZERO);
        });
        let locks = fresh(&servers);
        let wait = locks.mutex("job").wait_at_most(MAX_LEASE * 2);
        wait.acquire().await.unwrap().release().await.unwrap();
        let most = silent_for.min(MAX_LEASE) + MOMENT * 30;
        let waited = began.elapsed();
        assert!(waited < most, "{silent_for:?}: {waited:?}");
        let began = Instant::now();
        let _ = fresh(&servers).mutex("other").acquire().await.unwrap();
        assert!(began.elapsed() < MOMENT * 20, "{:?}", began.elapsed());
    }
}

/// An acquisition with enough time waits until a majority votes. Others fail before their time is
/// up.
#[tokio::test(start_paused = true)]
async fn young_nodes_are_waited_for_by_those_who_have_the_time() {
    for (seconds, waits) in [(u64::MAX, true), (70, true), (30, false), (0, false)] {
        let servers = servers(3);
        servers.iter().for_each(Server::restart_empty);
        let (locks, began) = (fresh(&servers), Instant::now());
        let request = locks.mutex("job");
        let outcome = match seconds {
            0 => request.try_acquire().await.map(Option::unwrap),
            _ => {
                request
                    .wait_at_most(Duration::from_secs(seconds))
                    .acquire()
                    .await
            }
        };
        assert_eq!(outcome.is_ok(), waits, "{seconds}: {outcome:?}");
        let least = Duration::from_secs(seconds.min(if waits { 60 } else { 10 }));
        let waited = began.elapsed();
        assert!(
            (least..least + MOMENT * 40).contains(&waited),
            "{seconds}: {waited:?}"
        );
    }
}

/// As above, but the other nodes' clocks were also wrong at the time of the notes, and are
/// corrected too.
#[tokio::test(start_paused = true)]
async fn a_note_by_a_wrong_clock_makes_no_restarted_server_old() {
    // How far the clocks were set, and whether a program looked before they were corrected.
    let sets = [
        (-HOUR, 0, true),
        (-HOUR, 120, false),
        (HOUR, 120, true),
        (HOUR, -120, false),
    ];
    for count in [3, 5] {
        // It makes no difference which of them it is.
        for restarted in subsets(count / 2 + 1, count).take(2) {
            for (lost, kept, seen) in sets {
                let servers = servers(count);
                let set = |kept: i64, lost: i64| {
                    for (at, server) in servers.iter().enumerate() {
                        server.set_clock(if restarted.contains(&at) { lost } else { kept });
                    }
                };
                set(kept, 0);
                let holder = fresh(&servers);
                let request = holder.mutex("job").fixed_lease(MAX_LEASE);
                let held = request.acquire().await.unwrap();
                let until = Instant::now() + held.remaining();
                set(0, lost);
                restarted.iter().for_each(|at| servers[*at].restart_empty());
                sleep(MOMENT * 10).await;
                if seen {
                    let _ = fresh(&servers).mutex("job").try_acquire().await;
                }
                set(-kept, -lost);
                let what = format!("{restarted:?} of {count} by {lost}, others by {kept}, {seen}");
                // A new program each time: only its notes help the next one.
                nobody_before(until, &what, async || {
                    let outcome = fresh(&servers).mutex("job").try_acquire().await;
                    matches!(outcome, Ok(Some(_)))
                })
                .await;
            }
        }
    }
}

/// A node that was away while the others told their identities learns about them when it returns.
#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_is_told_of_the_others() {
    let servers = servers(3);
    let away = &servers[2];
    away.peer.kill();
    let holder = fresh(&servers);
    let held = holder.mutex("job").acquire().await.unwrap();
    away.peer.revive();
    // Renewals bring it the lock.
    sleep(MAX_LEASE).await;
    for server in &servers[..2] {
        server.set_clock(-HOUR);
        server.restart_empty();
        server.set_clock(HOUR);
    }
    let until = Instant::now() + held.remaining();
    while Instant::now() < until {
        let outcome = fresh(&servers).mutex("job").try_acquire().await;
        assert!(!matches!(outcome, Ok(Some(_))), "granted beside its holder");
        sleep(MOMENT * 20).await;
    }
}

/// A program asks a restarted server twice while no other node vouches for it. It tells the others
/// how long it has seen that server. The server's own uptime is too long.
#[tokio::test(start_paused = true)]
async fn what_one_program_has_seen_makes_no_restarted_server_older_for_others() {
    let servers = servers(3);
    let program = fresh(&servers);
    works_at_once(&program, "the first of all").await;
    servers[1..].iter().for_each(|server| server.peer.kill());
    servers[0].set_clock(-HOUR);
    servers[0].restart_empty();
    servers[0].set_clock(HOUR);
    let restarted = Instant::now();
    for _ in 0..2 {
        let _ = program.mutex("other").try_acquire().await;
        servers[0].peer.kill();
        servers[0].peer.revive();
        sleep(MOMENT * 20).await;
    }
    servers[1].restart_empty();
    servers[1].peer.revive();
    let deadline = Instant::now() + MAX_LEASE;
    let note = loop {
        let _ = program.mutex("other").try_acquire().await;
        if let Ok(Some(note)) = servers[1].sighting("a", deadline).await {
            break note;
        }
        sleep(MOMENT).await;
    };
    let (told, lived) = (note.age, restarted.elapsed());
    assert!(told <= lived + MOMENT * 20, "{told:?} after {lived:?}");
}

/// Notes cost nothing while a majority keeps running, even if the others restart.
#[tokio::test(start_paused = true)]
async fn a_new_program_waits_for_no_server_that_others_know() {
    for count in [3, 5] {
        for restarted in (0..=count / 2).flat_map(|some| subsets(some, count)) {
            let servers = servers(count);
            works_at_once(&fresh(&servers), "the first of all").await;
            for at in &restarted {
                servers[*at].restart_empty();
            }
            for round in 0..3 {
                let what = format!("{restarted:?} of {count}, round {round}");
                works_at_once(&fresh(&servers), &what).await;
            }
            for at in &restarted {
                servers[*at].peer.kill();
            }
            works_at_once(&fresh(&servers), &format!("{restarted:?} away")).await;
        }
    }
}

/// One clock that is set, or always wrong, keeps no program out.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_keeps_no_new_program_out() {
    for set in 0..3 {
        for seconds in [-24 * HOUR, -HOUR, -1, 1, HOUR, 24 * HOUR] {
            let servers = servers(3);
            works_at_once(&fresh(&servers), "the first of all").await;
            servers[set].set_clock(seconds);
            for round in 0..3 {
                let what = format!("{set} set by {seconds} s, round {round}");
                works_at_once(&fresh(&servers), &what).await;
                sleep(MOMENT * 20).await;
            }
        }
    }
}

/// A node that hangs keeps no other from voting.
#[tokio::test(start_paused = true)]
async fn a_node_that_hangs_keeps_no_other_from_voting() {
    let servers = servers(3);
    works_at_once(&fresh(&servers), "the first of all").await;
    servers[0].peer.freeze(true);
    let locks = fresh(&servers);
    let began = Instant::now();
    let guard = locks.mutex("job").acquire().await.unwrap();
    assert!(began.elapsed() < MOMENT * 20, "{:?}", began.elapsed());
    guard.release().await.unwrap();
}
