//! What to run on a store, and how.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use locktopus_core::{DynBackend, LockTarget, process_uuid};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::case::Case;
use crate::cases;
use crate::ctx::Ctx;
use crate::flavour::Flavour;
use crate::lasting::{LASTS, TooLate};
use crate::report::{Outcome, Report, Verdict};
use crate::store::Store;
use crate::timing::DISTANCE;
use crate::watch::Watched;

/// The suite, pointed at one store. Cheap to clone; clones share their clients.
#[derive(Clone)]
pub struct Suite {
    store: Store,
    flavours: Vec<Flavour>,
    only: Option<String>,
    concurrency: usize,
    prefix: String,
}

impl Suite {
    /// A suite on the store that `connect` connects to, with another client each time.
    pub fn new<F, Fut>(connect: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = DynBackend> + Send + 'static,
    {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        // Names of their own let several runs share a store that keeps data of earlier runs.
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        Self {
            store: Store::new(connect),
            flavours: Flavour::ALL.to_vec(),
            only: std::env::var("LOCKTOPUS_CONFORMANCE").ok(),
            concurrency: 32,
            prefix: format!("conformance:{}:{run}", &process_uuid()[..8]),
        }
    }

    /// Adds a way to delete a lock behind the backend's back, as an operator or an eviction would.
    /// Without it the suite skips the cases about vanished locks.
    #[must_use]
    pub fn wipe<F, Fut>(mut self, wipe: F) -> Self
    where
        F: Fn(LockTarget) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.store.set_wipe(wipe);
        self
    }

    /// Adds a way to read everything stored under names that contain a given text. The result must
    /// be equal if nothing was written in between. Without it, cases that check that nothing was
    /// written rely on what the backend shows.
    #[must_use]
    pub fn picture<F, Fut>(mut self, picture: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = String> + Send + 'static,
    {
        self.store.set_picture(picture);
        self
    }

    /// Runs the cases only on these flavours.
    #[must_use]
    pub fn flavours(mut self, flavours: &[Flavour]) -> Self {
        self.flavours = flavours.to_vec();
        self
    }

    /// Runs only the cases with `part` in their names.
    #[must_use]
    pub fn only(mut self, part: impl Into<String>) -> Self {
        self.only = Some(part.into());
        self
    }

    /// Declares that a release wakes one waiter of all clients together, not one of each client.
    /// This is true for stores inside this process.
    #[must_use]
    pub fn shared_waiters(mut self) -> Self {
        self.store.shared_waiters = true;
        self
    }

    /// Declares that the store is a quorum of nodes. Simultaneous attempts may all fail, because
    /// each may win some of the nodes. Leases are longer, since a node must answer within a part of
    /// the lease.
    #[must_use]
    pub fn quorum(mut self) -> Self {
        self.store.quorum = true;
        self
    }

    /// Declares how long an exchange with the store takes without any disturbance. Leases that
    /// cases wait for, and their time limits, grow by a fixed number of exchanges, so the suite
    /// still catches a store that makes too many exchanges or waits for a heartbeat.
    #[must_use]
    pub fn round_trip(mut self, round_trip: Duration) -> Self {
        self.store.far = round_trip;
        self
    }

    /// Runs this many cases at a time. Default 32.
    #[must_use]
    pub fn concurrency(mut self, cases: usize) -> Self {
        self.concurrency = cases.max(1);
        self
    }

    /// Every case on every flavour, for test runners that want to run them one by one.
    #[must_use]
    pub fn trials(&self) -> Vec<Trial> {
        let mut trials = Vec::new();
        for case in cases::all() {
            let about = |flavour: &&Flavour| case.flavours().contains(*flavour);
            for &flavour in self.flavours.iter().filter(about) {
                let name = format!("{}[{}]", case.name(), flavour.as_str());
                if self.only.as_ref().is_none_or(|part| name.contains(part)) {
                    let ctx = Ctx::new(
                        self.store.clone(),
                        flavour,
                        format!("{}:{name}", self.prefix),
                    );
                    trials.push(Trial { name, case, ctx });
                }
            }
        }
        trials
    }

    /// Runs every case, many at a time, and closes the clients.
    ///
    /// Each case is a task of its own. In one task for all, a case that computes for a long time
    /// would delay the others' answers past the deadlines of their calls.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; locks that cases hold at that moment expire.
    pub async fn run(&self) -> Report {
        let started = Instant::now();
        let outcomes = futures_util::stream::iter(self.trials())
            .map(|trial| AbortOnDropHandle::new(tokio::spawn(trial.run())))
            .buffer_unordered(self.concurrency)
            .map(|ended| ended.expect("a case's panic is its verdict, and nobody aborts it"))
            .collect()
            .await;
        self.close().await;
        Report::new(outcomes, started.elapsed())
    }

    /// Closes the clients that the cases share. [`run`](Self::run) calls it.
    pub async fn close(&self) {
        self.store.close().await;
    }
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suite")
            .field("flavours", &self.flavours)
            .field("only", &self.only)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// One case on one flavour, ready to run.
#[derive(Debug)]
pub struct Trial {
    name: String,
    case: Case,
    ctx: Ctx,
}

impl Trial {
    /// For example `exclusion::one_owner_at_a_time[mutex]`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs it. A panic of the case becomes a verdict; this call does not panic.
    ///
    /// A case that takes too long fails. If it blocks the runtime, that cannot happen: a thread
    /// then names it on standard error.
    pub async fn run(self) -> Outcome {
        let started = Instant::now();
        let mut ctx = self.ctx;
        let verdict = loop {
            let _watched = Watched::new(&self.name, ctx.case_limit());
            match attempt(self.case, &ctx).await {
                Ok(verdict) => break verdict,
                Err(TooLate(message)) => match ctx.with_longer_leases() {
                    Some(longer) => ctx = longer,
                    None => break Verdict::Failed(message),
                },
            }
        };
        Outcome {
            flavour: ctx.flavour(),
            name: self.name,
            verdict,
            took: started.elapsed(),
        }
    }
}

async fn attempt(case: Case, ctx: &Ctx) -> Result<Verdict, TooLate> {
    let running = LASTS.scope(Cell::new(None), run(case, ctx.clone()));
    let running = DISTANCE.scope(ctx.far(), running);
    let limit = ctx.case_limit();
    match tokio::time::timeout(limit, AssertUnwindSafe(running).catch_unwind()).await {
        Ok(Ok(())) => Ok(match ctx.skipped() {
            Some(reason) => Verdict::Skipped(reason),
            None => Verdict::Passed,
        }),
        Ok(Err(panic)) => match panic.downcast::<TooLate>() {
            Ok(late) => Err(*late),
            Err(panic) => Ok(Verdict::Failed(text(&*panic))),
        },
        Err(_) => Ok(Verdict::Failed(format!("not finished after {limit:?}"))),
    }
}

async fn run(case: Case, ctx: Ctx) {
    if case.needs_queue() && !ctx.backend(0).await.info().supports_queue {
        return ctx.skip("no queue");
    }
    if case.needs_directory() && ctx.backend(0).await.directory().is_none() {
        return ctx.skip("no directory");
    }
    case.run(ctx).await;
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without text")
        .to_owned()
}
