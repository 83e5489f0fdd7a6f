//! The shared types that leases import, built from loom's parts. Reference counts are the standard
//! library's, because they are not under test.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use loom::sync::atomic::{AtomicBool, Ordering};

pub(crate) use loom::sync::{Mutex, MutexGuard};
pub(crate) use std::sync::{Arc, Weak, mpsc};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

/// Set once. As in the standard library, readers that find it set see all earlier writes, and
/// setters take turns.
pub(crate) struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    there: AtomicBool,
    turn: Mutex<()>,
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        Self {
            value: std::sync::OnceLock::new(),
            there: AtomicBool::new(false),
            turn: Mutex::new(()),
        }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        let there = self.there.load(Ordering::Acquire);
        self.value.get().filter(|_| there)
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        let _turn = lock(&self.turn);
        self.value.set(value)?;
        self.there.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        if self.get().is_none() {
            let _turn = lock(&self.turn);
            if self.value.get().is_none() {
                let _ = self.value.set(init());
                self.there.store(true, Ordering::Release);
            }
        }
        self.value.get().expect("it was set")
    }
}

/// A value, and the tasks that wait for it.
#[derive(Debug)]
struct Awaited<T> {
    now: Mutex<(T, Vec<Waker>)>,
}

impl<T> Awaited<T> {
    fn new(first: T) -> Self {
        Self {
            now: Mutex::new((first, Vec::new())),
        }
    }

    fn see<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&lock(&self.now).0)
    }

    fn change(&self, change: impl FnOnce(&mut T)) {
        let wakers = {
            let mut now = lock(&self.now);
            change(&mut now.0);
            std::mem::take(&mut now.1)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until `take` gets what it wants.
    async fn until(&self, mut take: impl FnMut(&mut T) -> bool) {
        poll_fn(|cx| {
            let mut now = lock(&self.now);
            if take(&mut now.0) {
                return Poll::Ready(());
            }
            now.1.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// As tokio's: counts notifications. A task that asked before one hears of it, even if it was not
/// polled yet.
#[derive(Debug)]
pub(crate) struct Notify(Awaited<u32>);

impl Notify {
    pub(crate) fn new() -> Self {
        Self(Awaited::new(0))
    }

    pub(crate) fn notify_waiters(&self) {
        self.0.change(|times| *times += 1);
    }

    pub(crate) fn notified(&self) -> impl Future<Output = ()> + '_ {
        let before = self.0.see(|times| *times);
        self.0.until(move |times| *times != before)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct CancellationToken(Arc<Awaited<bool>>);

impl CancellationToken {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Awaited::new(false)))
    }

    pub(crate) fn cancel(&self) {
        self.0.change(|cancelled| *cancelled = true);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.see(|cancelled| *cancelled)
    }

    pub(crate) async fn cancelled(&self) {
        self.0.until(|cancelled| *cancelled).await;
    }
}

/// The number of tasks, and whether it was closed.
#[derive(Debug, Clone)]
pub(crate) struct TaskTracker(Arc<Awaited<(usize, bool)>>);

#[derive(Debug)]
pub(crate) struct TaskTrackerToken(TaskTracker);

impl TaskTracker {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Awaited::new((0, false))))
    }

    pub(crate) fn token(&self) -> TaskTrackerToken {
        self.0.change(|(there, _)| *there += 1);
        TaskTrackerToken(self.clone())
    }

    pub(crate) fn close(&self) {
        self.0.change(|(_, closed)| *closed = true);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.see(|(there, _)| *there)
    }

    pub(crate) async fn wait(&self) {
        self.0.until(|(there, closed)| *there == 0 && *closed).await;
    }
}

impl Drop for TaskTrackerToken {
    fn drop(&mut self) {
        self.0.0.change(|(there, _)| *there -= 1);
    }
}
