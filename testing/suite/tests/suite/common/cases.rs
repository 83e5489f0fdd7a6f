//! Cases that share servers and run concurrently. Each reports in one line what it observed.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use locktopus_servers::topology::{Deployment, TopologyKind};
use tokio::sync::Semaphore;
use tokio::task::{Id, JoinSet, LocalSet};
use tokio::time::{Instant, timeout};

use super::{CLIENTS, servers};

/// Servers and the client to use on them.
pub type At = (Arc<Deployment>, &'static str);

/// A case that takes longer hangs. This is above any wait for a condition, whose failure says
/// better what did not happen.
const LIMIT: Duration = Duration::from_secs(240);

/// Running cases. They share one thread, because they mostly wait; the library's own tasks run on
/// the runtime's threads.
#[derive(Debug)]
pub struct Cases {
    thread: LocalSet,
    running: JoinSet<(Option<String>, Duration)>,
    names: HashMap<Id, String>,
    places: Arc<Semaphore>,
}

impl Default for Cases {
    fn default() -> Self {
        Self::at_once(Semaphore::MAX_PERMITS)
    }
}

impl Cases {
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs at most `places` cases at a time, in the order of `add`. For cases with processes of
    /// their own, which would otherwise slow each other beyond every time limit.
    pub fn at_once(places: usize) -> Self {
        Self {
            thread: LocalSet::default(),
            running: JoinSet::new(),
            names: HashMap::new(),
            places: Arc::new(Semaphore::new(places)),
        }
    }

    /// Starts a case, which returns what it observed.
    pub fn add(&mut self, name: impl Into<String>, case: impl Future<Output = String> + 'static) {
        let places = Arc::clone(&self.places);
        let task = async move {
            let _place = places.acquire().await;
            let begun = Instant::now();
            let observed = timeout(LIMIT, case).await.ok();
            (observed, begun.elapsed())
        };
        let task = self.running.spawn_local_on(task, &self.thread);
        self.names.insert(task.id(), name.into());
    }

    /// Starts a case for each client.
    pub fn each<F>(&mut self, what: &str, case: impl Fn(&'static str) -> F)
    where
        F: Future<Output = String> + 'static,
    {
        for client in CLIENTS {
            self.add(format!("{client} {what}"), case(client));
        }
    }

    /// Starts a case for each client on these servers.
    pub fn each_on<F>(&mut self, place: &Arc<Deployment>, what: &str, case: impl Fn(At) -> F)
    where
        F: Future<Output = String> + 'static,
    {
        let what = format!("{} {what}", place.kind());
        self.each(&what, |client| case((Arc::clone(place), client)));
    }

    /// Waits for all of them, and fails if any case failed.
    pub async fn all_pass(self) {
        let Self {
            thread,
            running,
            names,
            places: _,
        } = self;
        thread.run_until(report(running, names)).await;
    }
}

/// Runs one case.
pub async fn one_case(name: impl Into<String>, case: impl Future<Output = String> + 'static) {
    let mut cases = Cases::new();
    cases.add(name, case);
    cases.all_pass().await;
}

/// Runs one case for each client.
pub async fn each_client<F>(what: &str, case: impl Fn(&'static str) -> F)
where
    F: Future<Output = String> + 'static,
{
    let mut cases = Cases::new();
    cases.each(what, case);
    cases.all_pass().await;
}

/// Runs one case for each client on these servers.
pub async fn each_client_on<F>(place: &Arc<Deployment>, what: &str, case: impl Fn(At) -> F)
where
    F: Future<Output = String> + 'static,
{
    let mut cases = Cases::new();
    cases.each_on(place, what, case);
    cases.all_pass().await;
}

/// Runs one case for each client on servers of its own, because it affects every client on them.
pub async fn each_client_alone<F>(kind: TopologyKind, what: &str, case: impl Fn(At) -> F)
where
    F: Future<Output = String> + 'static,
{
    let mut cases = Cases::new();
    for client in CLIENTS {
        let place = Arc::new(servers(kind).await);
        cases.add(format!("{client} {what}"), case((place, client)));
    }
    cases.all_pass().await;
}

async fn report(mut running: JoinSet<(Option<String>, Duration)>, mut names: HashMap<Id, String>) {
    let mut failed = Vec::new();
    while let Some(ended) = running.join_next_with_id().await {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let name = names.remove(&id).unwrap_or_default();
        match ended {
            Ok((_, (Some(observed), took))) => println!("ok    {name} ({took:.2?}): {observed}"),
            Ok((_, (None, took))) => {
                println!("HANGS {name} ({took:.2?})");
                failed.push(name);
            }
            Err(_) => {
                println!("FAIL  {name}: see the panic above");
                failed.push(name);
            }
        }
    }
    assert!(failed.is_empty(), "failed: {}", failed.join(", "));
}
