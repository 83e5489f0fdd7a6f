//! Faults on request, for tests.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktopus_contract::{
    BackendError, BackendErrorKind, DynBackend, Executed, LockTarget, NameError, WakeStream, clock,
    lock,
};
use tokio::time::Instant;

use crate::around::{Around, around_each_call, extend_as_one_call};
use crate::call::Call;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It fails as if there were no connection: it certainly did not run ([`Executed::No`]).
    Refuse,
    /// It runs, but its answer is lost: it may have run ([`Executed::Maybe`]).
    LoseAnswer,
    /// It reaches the backend only after this time, or never if its deadline comes first.
    Delay(Duration),
    /// It never reaches the backend, and the caller gets no answer until the deadline.
    Hang,
}

/// Wraps any backend and injects faults when a test asks for them.
///
/// For tests of programs that use locks: what does yours do if it loses its lease halfway, if the
/// server is away, or if a release gets no answer? Without faults it changes nothing. Clones are
/// the same layer, so keep one to control it.
///
/// Nothing here is random. For authors of backends, `locktopus-conformance` has a backend with
/// seeded random faults.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use locktopus_core::{Locktopus, LostCause};
/// use locktopus_layers::Chaos;
/// use locktopus_memory::MemoryBackend;
///
/// let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
/// let locks = Locktopus::builder(chaos.clone()).build()?;
/// let guard = locks.lock("invoice:42").acquire().await?;
/// assert_eq!(chaos.lose("invoice:42").await?, 1);
/// // The next renewal discovers it. On tokio's paused clock that takes no time.
/// assert_eq!(guard.lost().await, LostCause::Missing);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Chaos {
    inner: DynBackend,
    state: Arc<ChaosState>,
}

#[derive(Debug, Default)]
struct ChaosState {
    faults: Mutex<HashMap<Call, FaultOrder>>,
    deaf: AtomicBool,
    /// The kinds that names were requested as, for [`Chaos::lose`].
    seen: Mutex<HashMap<String, HashSet<LockTarget>>>,
}

#[derive(Debug, Clone, Copy)]
struct FaultOrder {
    fault: Fault,
    /// How many more calls it affects. `None`: until it is cancelled.
    times: Option<u32>,
}

impl Chaos {
    /// Wraps a backend. There are no faults yet.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use locktopus_core::Locktopus;
    /// use locktopus_layers::Chaos;
    /// use locktopus_memory::MemoryBackend;
    ///
    /// let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
    /// let locks = Locktopus::builder(chaos.clone()).build()?; // without faults it changes nothing
    /// locks.lock("invoice:42").acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn new(inner: DynBackend) -> Self {
        Self {
            inner,
            state: Arc::default(),
        }
    }

    /// Makes every such call fail in this way, until [`calm`](Self::calm) or another order for such
    /// calls.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::sync::Arc;
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_layers::Chaos;
    /// # use locktopus_memory::MemoryBackend;
    /// use locktopus_layers::{Call, Fault};
    /// let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
    /// let locks = Locktopus::builder(chaos.clone()).build()?;
    /// chaos.fail(Call::Attempt, Fault::Refuse);
    /// assert!(locks.lock("invoice:42").try_acquire().await.is_err());
    /// chaos.calm();
    /// assert!(locks.lock("invoice:42").try_acquire().await?.is_some());
    /// # Ok(()) }
    /// ```
    pub fn fail(&self, call: Call, fault: Fault) {
        let times = None;
        lock(&self.state.faults).insert(call, FaultOrder { fault, times });
    }

    /// Makes the next `times` such calls fail in this way.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::sync::Arc;
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_layers::Chaos;
    /// # use locktopus_memory::MemoryBackend;
    /// use locktopus_layers::{Call, Fault};
    /// let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
    /// let locks = Locktopus::builder(chaos.clone()).build()?;
    /// chaos.fail_times(Call::Attempt, Fault::Refuse, 1);
    /// // The waiter retries.
    /// locks.lock("invoice:42").acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn fail_times(&self, call: Call, fault: Fault, times: u32) {
        let times = Some(times);
        lock(&self.state.faults).insert(call, FaultOrder { fault, times });
    }

    /// Loses every notification: releases, pushed grants, recalls. Waiters find out by polling, as
    /// in a network that silently loses messages.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::sync::Arc;
    /// # use std::time::Duration;
    /// # use locktopus_core::{Locktopus, WaitStrategy};
    /// # use locktopus_layers::Chaos;
    /// # use locktopus_memory::MemoryBackend;
    /// let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
    /// let locks = Locktopus::builder(chaos.clone()).build()?;
    /// chaos.drop_notifications();
    /// let guard = locks.lock("invoice:42").acquire().await?;
    /// let look = WaitStrategy::Notify { heartbeat: Duration::from_millis(20) };
    /// let waiting = tokio::spawn(locks.lock("invoice:42").strategy(look).acquire());
    /// guard.release().await?;
    /// waiting.await??.release().await?; // it found out by polling
    /// # Ok(()) }
    /// ```
    pub fn drop_notifications(&self) {
        self.state.deaf.store(true, Ordering::Release);
    }

    /// Ends all faults. What is lost stays lost.
    pub fn calm(&self) {
        lock(&self.state.faults).clear();
        self.state.deaf.store(false, Ordering::Release);
    }

    /// Loses all leases of this name now, for any holder and kind. The backend forgets them and
    /// gives the lock to the next waiter. Returns how many were lost.
    ///
    /// `name` is the name as stored, with its namespace. The holders get no message. They discover
    /// the loss at their next request, with `LostCause::Missing` or `TakenOver`: after a third of
    /// the lease if the watchdog renews it. Until then two holders trust the lock, and only fencing
    /// tokens tell them apart.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::sync::Arc;
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_layers::Chaos;
    /// # use locktopus_memory::MemoryBackend;
    /// let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
    /// let locks = Locktopus::builder(chaos.clone()).build()?;
    /// let guard = locks.lock("invoice:42").acquire().await?;
    /// assert_eq!(chaos.lose("invoice:42").await?, 1);
    /// assert!(guard.ensure_valid().is_ok()); // it has not discovered the loss yet
    /// assert!(guard.release().await.is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The backend's. Faults ordered for [`Call::Evict`] do not apply.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: leases may be lost or not.
    pub async fn lose(&self, name: &str) -> Result<usize, BackendError> {
        let targets = lock(&self.state.seen).get(name).cloned();
        let mut lost = 0;
        for target in targets.into_iter().flatten() {
            let deadline = clock::timer_in(self.inner.info().call_timeout);
            match self.inner.evict(&target, deadline).await {
                Ok(eviction) => lost += eviction.evicted.len(),
                // It was requested as this kind earlier.
                Err(error) if error.kind() == BackendErrorKind::OtherKind => {}
                Err(error) => return Err(error),
            }
        }
        Ok(lost)
    }

    fn next_fault(&self, call: Call) -> Option<Fault> {
        let mut faults = lock(&self.state.faults);
        let order = faults.get_mut(&call)?;
        let fault = order.fault;
        match &mut order.times {
            None => {}
            Some(0) => {
                faults.remove(&call);
                return None;
            }
            Some(times) => *times -= 1,
        }
        Some(fault)
    }

    /// The caller cannot know that it never ran.
    fn never_sent(&self) -> BackendError {
        let message = "held up by the chaos layer";
        self.error(BackendErrorKind::Timeout, Executed::Maybe, message)
    }

    fn error(&self, kind: BackendErrorKind, executed: Executed, message: &str) -> BackendError {
        BackendError::new(self.inner.info().name, kind, executed, message)
    }

    fn note(&self, target: &LockTarget) {
        let mut seen = lock(&self.state.seen);
        let name = target.name().as_str();
        if !seen.get(name).is_some_and(|kinds| kinds.contains(target)) {
            let kinds = seen.entry(name.to_owned()).or_default();
            kinds.insert(target.clone());
        }
    }
}

impl Around for Chaos {
    extend_as_one_call!();

    async fn around<T, F, Fut>(
        &self,
        call: Call,
        deadline: Instant,
        run: F,
    ) -> Result<T, BackendError>
    where
        T: Send,
        F: Fn(Instant) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, BackendError>> + Send,
    {
        match self.next_fault(call) {
            None => run(deadline).await,
            Some(Fault::Refuse) => Err(self.error(
                BackendErrorKind::Unavailable,
                Executed::No,
                "refused by the chaos layer",
            )),
            Some(Fault::LoseAnswer) => {
                run(deadline).await?;
                tokio::time::sleep_until(deadline).await;
                Err(self.error(
                    BackendErrorKind::Timeout,
                    Executed::Maybe,
                    "answer lost by the chaos layer",
                ))
            }
            Some(Fault::Delay(time)) => {
                let arrival = clock::timer_in(time);
                tokio::time::sleep_until(arrival.min(deadline)).await;
                if arrival < deadline {
                    run(deadline).await
                } else {
                    Err(self.never_sent())
                }
            }
            Some(Fault::Hang) => {
                tokio::time::sleep_until(deadline).await;
                Err(self.never_sent())
            }
        }
    }

    fn heard(&self, stream: WakeStream) -> WakeStream {
        let state = Arc::clone(&self.state);
        stream.filtered(move |_, _| !state.deaf.load(Ordering::Acquire))
    }
}

around_each_call!(Chaos, {
    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        // Every name passes here before any other request about it.
        self.note(target);
        self.inner.check(target)
    }
});
