//! A value for each tokio runtime.
//!
//! Programs use one handle on several runtimes. A runtime may end before the handle, pause between
//! two calls of `block_on`, or be one of many in a web server. Tasks and connections stop with
//! their runtime. So Locktopus creates them on the runtime that needs them, and drops them when it
//! ends.

use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use tokio::runtime::{Handle, Id, RuntimeFlavor};
use tokio_util::sync::CancellationToken;

use crate::sync::lock;

/// The caller is outside a tokio runtime, or on one that is ending.
///
/// ```
/// # use locktopus_contract::{NoRuntime, PerRuntime};
/// let names = PerRuntime::new();
/// let error: NoRuntime = names.here(|_| "here").unwrap_err();
/// assert!(error.to_string().starts_with("called outside a tokio runtime"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "called outside a tokio runtime, whose timers it needs; call it from a task of tokio or inside `Runtime::block_on`"
)]
#[non_exhaustive]
pub struct NoRuntime;

/// The runtime of this task or thread.
pub fn current() -> Result<Handle, NoRuntime> {
    Handle::try_current().map_err(|_| NoRuntime)
}

/// A value for each tokio runtime, such as its connections. It is made on first use and dropped
/// when the runtime ends.
///
/// ```
/// # use locktopus_contract::PerRuntime;
/// let names = PerRuntime::new();
/// let one = tokio::runtime::Builder::new_current_thread().build()?;
/// let first = one.block_on(async { names.here(|_| "first") })?;
/// assert!(one.block_on(async { names.here(|_| "again") }).is_ok_and(|name| *name == *first));
/// drop(one);
/// assert!(names.all().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PerRuntime<T> {
    shared: Arc<Shared<T>>,
    /// Cancelled when this is dropped.
    over: CancellationToken,
}

struct Shared<T> {
    residents: Mutex<Vec<Resident<T>>>,
}

struct Resident<T> {
    id: Id,
    /// It has threads of its own, so it always makes progress.
    drives_itself: bool,
    value: Arc<T>,
}

/// Removes a runtime's value when the runtime ends.
struct Departure<T> {
    id: Id,
    shared: Weak<Shared<T>>,
}

impl<T: Send + Sync + 'static> PerRuntime<T> {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        let residents = Mutex::default();
        Self {
            shared: Arc::new(Shared { residents }),
            over: CancellationToken::new(),
        }
    }

    /// The value of the current runtime, made by `make` if there is none.
    ///
    /// `make` runs under a lock and must not call this again.
    ///
    /// # Errors
    ///
    /// [`NoRuntime`] outside a tokio runtime, and on one that is ending.
    pub fn here(&self, make: impl FnOnce(&Handle) -> T) -> Result<Arc<T>, NoRuntime> {
        self.find(|resident, id| resident.id == id, make)
    }

    /// Like [`here`](Self::here), but a runtime without a value shares that of a multi-threaded
    /// one, which has threads of its own and always makes progress. A single-threaded runtime never
    /// shares its value.
    ///
    /// ```
    /// # use locktopus_contract::PerRuntime;
    /// let names = PerRuntime::new();
    /// let threads = tokio::runtime::Runtime::new()?;
    /// threads.block_on(async { names.nearby(|_| "of the threads") })?;
    /// let single = tokio::runtime::Builder::new_current_thread().build()?;
    /// assert!(
    ///     single
    ///         .block_on(async { names.nearby(|_| "mine") })
    ///         .is_ok_and(|name| *name == "of the threads")
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoRuntime`] outside a tokio runtime, and on one that is ending.
    pub fn nearby(&self, make: impl FnOnce(&Handle) -> T) -> Result<Arc<T>, NoRuntime> {
        self.find(
            |resident, id| resident.id == id || resident.drives_itself,
            make,
        )
    }

    fn find(
        &self,
        serves: impl Fn(&Resident<T>, Id) -> bool,
        make: impl FnOnce(&Handle) -> T,
    ) -> Result<Arc<T>, NoRuntime> {
        let runtime = current()?;
        let id = runtime.id();
        let value = {
            let mut residents = lock(&self.shared.residents);
            if let Some(found) = residents.iter().find(|resident| serves(resident, id)) {
                return Ok(Arc::clone(&found.value));
            }
            let value = Arc::new(make(&runtime));
            residents.push(Resident {
                id,
                drives_itself: drives_itself(&runtime),
                value: Arc::clone(&value),
            });
            value
        };
        // Outside the lock: a runtime that is ending drops the task at once.
        let departure = Departure {
            id,
            shared: Arc::downgrade(&self.shared),
        };
        let over = self.over.clone();
        runtime.spawn(async move {
            over.cancelled().await;
            drop(departure);
        });
        let residents = lock(&self.shared.residents);
        let stays = residents.iter().any(|resident| resident.id == id);
        stays.then_some(value).ok_or(NoRuntime)
    }

    /// The values of all runtimes that have not ended.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<T>> {
        let residents = lock(&self.shared.residents);
        let values = residents.iter().map(|resident| Arc::clone(&resident.value));
        values.collect()
    }
}

/// Whether a runtime makes progress while no thread is in its `block_on`.
pub fn drives_itself(runtime: &Handle) -> bool {
    runtime.runtime_flavor() != RuntimeFlavor::CurrentThread
}

impl<T: Send + Sync + 'static> Default for PerRuntime<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for PerRuntime<T> {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

impl<T> Drop for Departure<T> {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let mut residents = lock(&shared.residents);
        let at = residents.iter().position(|resident| resident.id == self.id);
        let gone = at.map(|at| residents.swap_remove(at));
        drop(residents);
        // Outside the lock: its drop may do a lot.
        drop(gone);
    }
}

impl<T: fmt::Debug> fmt::Debug for PerRuntime<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let residents = lock(&self.shared.residents);
        let values = residents.iter().map(|resident| &resident.value);
        f.debug_list().entries(values).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::runtime::{Builder, Runtime};

    use super::*;

    fn single() -> Runtime {
        Builder::new_current_thread().build().unwrap()
    }

    fn multi() -> Runtime {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).build().unwrap()
    }

    /// Numbers the values that are made.
    fn counter() -> impl Fn(&Handle) -> u32 {
        let made = AtomicU32::new(0);
        move |_| made.fetch_add(1, Ordering::Relaxed)
    }

    #[test]
    fn a_runtime_that_has_ended_has_none() {
        let handle = single().handle().clone();
        let all = PerRuntime::new();
        let _inside = handle.enter();
        assert!(all.here(counter()).is_err() && all.all().is_empty());
    }

    #[test]
    fn each_runtime_has_its_own_until_it_ends() {
        let (all, make) = (PerRuntime::new(), counter());
        for (at, runtime) in [single(), multi(), single()].into_iter().enumerate() {
            for _ in 0..2 {
                let mine = runtime.block_on(async { *all.here(&make).unwrap() });
                assert_eq!(mine as usize, at);
            }
            assert_eq!(all.all().len(), 1);
            drop(runtime);
            assert!(all.all().is_empty());
        }
        assert_eq!(all.here(&make), Err(NoRuntime));
        assert_eq!(all.nearby(&make), Err(NoRuntime));
    }

    #[test]
    fn one_with_threads_of_its_own_serves_all_until_it_ends() {
        let (all, make) = (PerRuntime::new(), counter());
        let of = |runtime: &Runtime| runtime.block_on(async { *all.nearby(&make).unwrap() });
        let (first, second, threads) = (single(), single(), multi());
        assert_eq!((of(&first), of(&second), of(&threads)), (0, 1, 2));
        // New runtimes share it.
        assert_eq!((of(&single()), of(&multi()), of(&threads)), (2, 2, 2));
        drop(threads);
        assert_eq!((of(&first), of(&second), of(&multi())), (0, 1, 3));
    }

    #[test]
    fn what_nobody_needs_any_more_is_dropped_everywhere() {
        let (all, runtime) = (PerRuntime::new(), single());
        let mine = runtime.block_on(async { all.here(|_| ()).unwrap() });
        drop(all);
        assert_eq!(Arc::strong_count(&mine), 1);
        // Its task ends too.
        let alive = || runtime.metrics().num_alive_tasks();
        runtime.block_on(async {
            while alive() > 0 {
                tokio::task::yield_now().await;
            }
        });
    }
}
