//! One operation, cut at every point.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{DynBackend, Locktopus};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, timeout};

use super::faults::Faults;
use super::faulty::FaultyBackend;

/// More polls than any operation that ends takes.
const MOST_POLLS: usize = 5_000;

/// Cuts an operation after 0, 1, 2, ... polls until it completes. Meant for tokio's paused clock.
#[derive(Debug)]
pub struct Sweep {
    name: String,
    faults: Faults,
    patience: Duration,
}

/// No case waits this long; the paused clock gets there at once.
const STUCK: Duration = Duration::from_secs(3600);

/// A store, a misbehaving client of it, and locks on top; fresh for every cut.
#[non_exhaustive]
pub struct World {
    /// The locks under test.
    pub locks: Locktopus,
    /// Other locks on the same store, without faults: the competitor.
    pub other: Locktopus,
    /// The store.
    pub store: MemoryBackend,
    /// The client of `locks`.
    pub faulty: Arc<FaultyBackend>,
}

impl Sweep {
    /// A sweep with these faults. The name appears in messages.
    pub fn new(name: impl Into<String>, faults: Faults) -> Self {
        Self {
            name: name.into(),
            faults,
            patience: Duration::from_secs(3),
        }
    }

    /// Sets how long clean-up may take. The default, three seconds, is far below the default lease:
    /// locks that are gone by then were released and did not just expire.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Runs the scenario on a fresh world with 0, 1, 2, ... polls, and after each run checks that
    /// nothing is left. The scenario wraps its operation in [`cut_after`](super::cut_after), ends
    /// everything else it started, and returns `None` if the operation was cut. Returns the number
    /// of cuts.
    ///
    /// # Panics
    ///
    /// If anything is left after a cut, or if the operation never completes.
    pub async fn run(self, scenario: impl AsyncFn(&World, usize) -> Option<()>) -> usize {
        for polls in 0..MOST_POLLS {
            let world = World::new(self.faults);
            let Ok(completed) = timeout(STUCK, scenario(&world, polls)).await else {
                panic!("{} cut after {polls} polls is stuck", self.name);
            };
            let completed = completed.is_some();
            // Background calls may lose replies too, but must be able to finish.
            if let Err(left) = world.settle(self.patience).await {
                panic!("{} cut after {polls} polls leaves {left}", self.name);
            }
            if completed {
                return polls;
            }
        }
        panic!("{} did not complete within {MOST_POLLS} polls", self.name);
    }
}

/// What is left.
struct Left {
    locks: usize,
    waiters: usize,
    held: usize,
    tasks: usize,
    in_flight: usize,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            locks,
            waiters,
            held,
            tasks,
            in_flight,
        } = self;
        write!(
            f,
            "{locks} locks, {waiters} waiters, {held} leases watched, {tasks} tasks, {in_flight} calls under way"
        )
    }
}

impl World {
    /// A fresh world.
    #[must_use]
    pub fn new(faults: Faults) -> Self {
        let store = MemoryBackend::new();
        let faulty = FaultyBackend::new(Arc::new(store.another_client()), faults);
        let build = |backend: DynBackend| Locktopus::builder_dyn(backend).build();
        Self {
            locks: build(Arc::clone(&faulty) as DynBackend).expect("default settings on a runtime"),
            other: build(Arc::new(store.another_client())).expect("default settings on a runtime"),
            store,
            faulty,
        }
    }

    /// Waits until nothing is left, or returns what is.
    async fn settle(&self, patience: Duration) -> Result<(), Left> {
        let end = Instant::now() + patience;
        loop {
            let (locks, waiters) = self.store.population();
            let left = Left {
                locks,
                waiters,
                held: self.locks.held() + self.other.held(),
                tasks: self.locks.background_tasks() + self.other.background_tasks(),
                in_flight: self.faulty.in_flight(),
            };
            if left.locks + left.waiters + left.held + left.tasks + left.in_flight == 0 {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(left);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("locks", &self.locks)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
