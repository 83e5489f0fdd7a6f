//! A process: a runtime of its own, whose clock advances only when the simulator lets it.

use std::time::Duration;

use locktopus_core::Simulated;
use locktopus_protocol::PushEvent;
use tokio::runtime::Runtime;

use crate::event::{ASKING, BLOCKING, Delivery, LISTENING};
use crate::flaw::Flaw;
use crate::pace::{Pace, full_millis, millis};
use crate::world::{MS, Shared, World};
use locktopus_core::lock;

/// A process, which runs only within `run`.
#[derive(Debug)]
pub(crate) struct Process {
    number: usize,
    /// `None` if it is dead.
    runtime: Option<Runtime>,
    simulated: Option<Simulated>,
    pace: Pace,
    /// The time its clock still owes, in thousandths of a ms, and how many of these it gains in a
    /// ms.
    owed: u64,
    rate: u64,
    /// When it was paused, until when, and whether its machine sleeps.
    stopped: Option<(u64, u64, bool)>,
}

impl Process {
    pub(crate) fn new(number: usize, seed: u64, drift: i64) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without threads and files starts");
        Self {
            number,
            runtime: Some(runtime),
            simulated: Some(Simulated::new(seed)),
            pace: Pace::default(),
            owed: 0,
            rate: 1_000_u64.saturating_add_signed(drift),
            stopped: None,
        }
    }

    pub(crate) fn pace(&self) -> &Pace {
        &self.pace
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.runtime.is_none()
    }

    /// Starts a task.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(task);
        }
    }

    pub(crate) fn stop(&mut self, now: u64, until: u64, asleep: bool) {
        if self.stopped.is_none() {
            self.stopped = Some((now, until, asleep));
        }
    }

    /// Dies at once, and sends nothing any more.
    pub(crate) fn die(&mut self, world: &Shared) {
        {
            let mut world = lock(world);
            for link in world.links_of(self.number) {
                world.stop_listening(link);
                world.links[link].closed = true;
            }
        }
        if let Some(runtime) = self.runtime.take() {
            self.as_itself(|| drop(runtime));
        }
    }

    /// Runs something with the random numbers and the sleep time of this process.
    fn as_itself<T>(&mut self, run: impl FnOnce() -> T) -> T {
        Simulated::swap(self.simulated.take());
        let result = run();
        self.simulated = Simulated::swap(None);
        result
    }

    fn block_on<F: Future>(&mut self, future: impl FnOnce() -> F) {
        if let Some(runtime) = self.runtime.take() {
            self.as_itself(|| runtime.block_on(async { future().await }));
            self.runtime = Some(runtime);
        }
    }

    /// Runs from one true time to another, in µs; deliveries arrive at their times.
    pub(crate) fn run(&mut self, world: &Shared, from: u64, until: u64) {
        if self.is_dead() {
            return;
        }
        if let Some((since, end, asleep)) = self.stopped {
            if end > from {
                return;
            }
            self.stopped = None;
            self.resume(world, from, from - since, asleep);
        }
        let mut now = from;
        let due = self.due(world, until);
        for (at, link, delivery) in due {
            let at = (full_millis(at) * MS).clamp(now, until);
            self.pass(now, at, until);
            now = at;
            deliver(&mut lock(world), link, delivery, now);
        }
        self.pass(now, until, until);
    }

    /// Resumes after a pause. Chance decides whether it first sees the new time or its messages.
    fn resume(&mut self, world: &Shared, now: u64, passed: u64, asleep: bool) {
        let passed = passed / MS;
        let sees_time_first = lock(world).rng.permille(500);
        let mut due = if sees_time_first {
            Vec::new()
        } else {
            self.due(world, now + 1)
        };
        for (_, link, delivery) in due.drain(..) {
            deliver(&mut lock(world), link, delivery, now);
        }
        let pace = self.pace.clone();
        if asleep {
            let noticed = lock(world).flaw != Some(Flaw::SleepsUnnoticed);
            if let (true, Some(simulated)) = (noticed, &mut self.simulated) {
                simulated.sleep_machine(millis(passed));
            }
            self.block_on(|| async move { pace.tell(now, now) });
        } else {
            self.block_on(|| async move {
                pace.tell(now, now);
                tokio::time::advance(millis(passed)).await;
            });
        }
    }

    /// The deliveries before this time, in order.
    fn due(&self, world: &Shared, until: u64) -> Vec<(u64, usize, Delivery)> {
        let mut world = lock(world);
        let mut due = Vec::new();
        for number in world.links_of(self.number) {
            let inbox = &mut world.links[number].inbox;
            let later = inbox.split_off(&(until, 0));
            let now = std::mem::replace(inbox, later);
            due.extend(
                now.into_iter()
                    .map(|((at, order), delivery)| (at, order, number, delivery)),
            );
        }
        due.sort_by_key(|(at, order, ..)| (*at, *order));
        due.into_iter()
            .map(|(at, _, link, delivery)| (at, link, delivery))
            .collect()
    }

    /// Lets time pass for it.
    fn pass(&mut self, now: u64, at: u64, until: u64) {
        self.owed += (at - now) / MS * self.rate;
        let time: Duration = millis(self.owed / 1_000);
        self.owed %= 1_000;
        let pace = self.pace.clone();
        self.block_on(|| async move {
            pace.tell(now, until);
            tokio::time::sleep(time).await;
        });
    }
}

/// Delivers something to a process.
fn deliver(world: &mut World, link: usize, delivery: Delivery, now: u64) {
    if world.links[link].closed {
        return;
    }
    match delivery {
        Delivery::Answer {
            connection,
            epoch,
            number,
            replies,
        } => {
            let expected = world.expects(link, connection, epoch);
            let answers = world.links[link].pending.remove(&number);
            if let (true, Some((_, answers))) = (expected, answers) {
                // The caller may be gone.
                let _ = answers.send(replies);
            }
        }
        Delivery::Push { epoch, event } => {
            if world.listening_epoch(link) == epoch {
                // The receiver is gone once the backend is.
                let _ = world.links[link].events.send(event);
            }
        }
        Delivery::Broken { epochs } => {
            let to = &mut world.links[link];
            if to.epochs[LISTENING] != epochs[LISTENING] {
                return;
            }
            to.to = None;
            to.note_change();
            to.forget_calls(&[ASKING, BLOCKING, LISTENING]);
            let reason = "the connection was lost";
            // As above.
            let _ = to.events.send(PushEvent::Disrupted { reason });
            world.reconnect_soon(link, now);
        }
        Delivery::Connected { node } => {
            let link = &mut world.links[link];
            link.to = Some(node);
            link.generation += 1;
        }
    }
}
