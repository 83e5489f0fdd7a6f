//! Runs schedules, many at once, and replays those that fail.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::lua::Interpreter;
use crate::redis::Unsupported;
use crate::sim::config::Config;
use crate::sim::counts::Counts;
use crate::sim::judge::Violation;
use crate::sim::strangers::Strangers;
use crate::sim::wire::Wire;
use crate::sim::world::World;

/// Runs schedules of one configuration.
///
/// ```
/// use locktopus_model::sim::{Config, Kind, Model};
/// let summary = Model::new(Config::new(Kind::Lock)).run_many(0..20, 1)?;
/// assert!(summary.failure.is_none(), "{summary}");
/// # Ok::<(), locktopus_model::redis::Unsupported>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Model {
    config: Config,
}

/// What came of one schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// How much happened.
    pub counts: Counts,
    /// What must not have happened, if something did.
    pub violation: Option<Violation>,
    /// The last lines of what happened; only of a replay.
    pub trace: Vec<String>,
}

/// The first schedule that failed, replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its seed: the same one always fails in the same way.
    pub seed: u64,
    /// What must not have happened.
    pub violation: Violation,
    /// What happened before.
    pub trace: Vec<String>,
}

/// What came of many schedules.
#[derive(Debug, Clone)]
pub struct Summary {
    /// How many ran.
    pub schedules: u64,
    /// How much happened in all of them.
    pub counts: Counts,
    /// The failure with the smallest seed.
    pub failure: Option<Failure>,
    /// How long it took.
    pub took: Duration,
}

impl Model {
    /// Prepares schedules.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// Runs the schedule of a seed.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if a script needs something that the model lacks.
    pub fn run(&self, seed: u64) -> Result<Report, Unsupported> {
        Runner::new(&self.config)?.run(seed, false)
    }

    /// Runs the schedule of a seed and notes what happens.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn replay(&self, seed: u64) -> Result<Report, Unsupported> {
        Runner::new(&self.config)?.run(seed, true)
    }

    /// Runs the schedules of many seeds on several threads, up to the first failure.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_many(&self, seeds: Range<u64>, threads: usize) -> Result<Summary, Unsupported> {
        let begun = Instant::now();
        let (next, failed) = (AtomicU64::new(seeds.start), AtomicU64::new(u64::MAX));
        let work = || -> Result<(u64, Counts), Unsupported> {
            let runner = Runner::new(&self.config)?;
            let (mut schedules, mut counts) = (0, Counts::default());
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                // Smaller seeds are still run, so that the failure reported is always the same one.
                if seed >= seeds.end || seed > failed.load(Ordering::Relaxed) {
                    return Ok((schedules, counts));
                }
                let report = runner.run(seed, false)?;
                schedules += 1;
                counts.add(&report.counts);
                if report.violation.is_some() {
                    failed.fetch_min(seed, Ordering::Relaxed);
                }
            }
        };
        let outcomes = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(join).collect::<Vec<_>>()
        });
        let (mut schedules, mut counts) = (0, Counts::default());
        for outcome in outcomes {
            let (some, counted) = outcome?;
            schedules += some;
            counts.add(&counted);
        }
        let failure = match failed.into_inner() {
            u64::MAX => None,
            seed => self.failure(seed)?,
        };
        let took = begun.elapsed();
        Ok(Summary {
            schedules,
            counts,
            failure,
            took,
        })
    }

    fn failure(&self, seed: u64) -> Result<Option<Failure>, Unsupported> {
        let Report {
            violation, trace, ..
        } = self.replay(seed)?;
        Ok(violation.map(|violation| Failure {
            seed,
            violation,
            trace,
        }))
    }
}

/// A panic of a thread goes on in the one that waits for it.
fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Lua with the scripts loaded, for one thread.
struct Runner<'a> {
    config: &'a Config,
    lua: Interpreter,
    wire: Wire,
    strangers: Option<Strangers>,
}

impl<'a> Runner<'a> {
    fn new(config: &'a Config) -> Result<Self, Unsupported> {
        let lua = Interpreter::new().map_err(|error| Unsupported {
            what: error.to_string(),
        })?;
        let wire = Wire::new(&lua, config.kind, config.patch.as_ref())?;
        let strangers = Strangers::of(config)?;
        Ok(Self {
            config,
            lua,
            wire,
            strangers,
        })
    }

    fn run(&self, seed: u64, trace: bool) -> Result<Report, Unsupported> {
        let mut world = World::new(&self.lua, &self.wire, self.config, seed, trace);
        world.strangers = self.strangers.as_ref();
        let verdict = world.run()?;
        let counts = world.counts;
        let trace = world.into_trace();
        Ok(Report {
            seed,
            counts,
            violation: verdict.err(),
            trace,
        })
    }
}

impl Summary {
    /// How many schedules ran in a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a figure to look at")]
        let schedules = self.schedules as f64;
        schedules / self.took.as_secs_f64().max(1e-9)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            scripts,
            grants,
            pushed,
            handed,
            ..
        } = self.counts;
        write!(
            f,
            "{} schedules, {:.0}/s; {scripts} scripts, {grants} grants, {handed} handed on, {pushed} used \
             without a round trip",
            self.schedules,
            self.per_second()
        )?;
        if let Some(failure) = &self.failure {
            for line in &failure.trace {
                write!(f, "\n{line}")?;
            }
            write!(f, "\nseed {}: {}", failure.seed, failure.violation)?;
        }
        Ok(())
    }
}
