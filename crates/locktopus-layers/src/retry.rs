//! Repeats calls that certainly did not run.

use std::future::Future;
use std::time::Duration;

use locktopus_contract::{BackendError, DynBackend, Executed, ExtendOutcome, ExtendRequest};
use tokio::time::Instant;

use crate::around::{Around, around_each_call};
use crate::call::Call;

/// Any backend, with repetition of calls that failed without having run.
///
/// An error causes a repetition only if it is [`Executed::No`] and
/// [transient](BackendError::is_transient). The repetition follows after a pause and before the
/// deadline. A call that may have run is never repeated here. The core does that when it is safe,
/// under the same owner, and only the core knows when that is.
///
/// The core itself repeats waiters' attempts, and renewals. This layer adds repetitions of requests
/// that the core makes once: `try_acquire`, `inspect`, `force_release`, numbers of semaphores.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::sync::Arc;
/// # use std::time::Duration;
/// # use locktopus_core::Locktopus;
/// # use locktopus_layers::{Call, Chaos, Fault, Retry};
/// # use locktopus_memory::MemoryBackend;
/// let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
/// let retry = Retry::new(Arc::new(chaos.clone()))
///     .repetitions(2)
///     .pauses(Duration::from_millis(5), Duration::from_millis(50));
/// let locks = Locktopus::builder(retry).build()?;
/// chaos.fail_times(Call::Attempt, Fault::Refuse, 2);
/// assert!(locks.lock("a").try_acquire().await?.is_some(), "the third call was answered");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Retry {
    inner: DynBackend,
    repetitions: u32,
    first_pause: Duration,
    longest_pause: Duration,
}

impl Retry {
    /// Retries up to three times, after 10, 20 and 40 ms, each pause shortened at random by up to a
    /// half.
    #[must_use]
    pub fn new(inner: DynBackend) -> Self {
        Self {
            inner,
            repetitions: 3,
            first_pause: Duration::from_millis(10),
            longest_pause: Duration::from_millis(200),
        }
    }

    /// How many retries. Zero: none.
    #[must_use]
    pub fn repetitions(mut self, times: u32) -> Self {
        self.repetitions = times;
        self
    }

    /// The first pause, which doubles each time, and the longest one.
    #[must_use]
    pub fn pauses(mut self, first: Duration, longest: Duration) -> Self {
        (self.first_pause, self.longest_pause) = (first, longest);
        self
    }

    /// When to retry after `error` ended the call, with `done` retries so far. `None`: not at all.
    fn next(&self, error: &BackendError, done: u32, deadline: Instant) -> Option<Instant> {
        let surely_not = error.executed() == Executed::No && error.is_transient();
        if !surely_not || done >= self.repetitions {
            return None;
        }
        let doubled = self
            .first_pause
            .saturating_mul(2_u32.saturating_pow(done.min(16)));
        let now = Instant::now();
        // Shortening takes at most a half, so twice the remaining time never fits. The limit also
        // prevents an overflow.
        let never_fits = deadline.saturating_duration_since(now).saturating_mul(2);
        let pause = shortened(doubled.min(self.longest_pause).min(never_fits));
        let at = now.checked_add(pause)?;
        (at < deadline).then_some(at)
    }
}

impl Around for Retry {
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
        let mut done = 0;
        loop {
            let error = match run(deadline).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(at) = self.next(&error, done, deadline) else {
                return Err(error);
            };
            tracing::debug!(?call, %error, "not executed, will ask again");
            tokio::time::sleep_until(at).await;
            done += 1;
        }
    }
    /// Repeats those extensions of the batch that did not run, and no others.
    async fn extend_around(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let mut answers = self.inner.extend(batch, deadline).await;
        for done in 0..self.repetitions {
            let mut at = None;
            let mut again = Vec::new();
            for (index, answer) in answers.iter().enumerate() {
                if let Err(error) = answer
                    && let Some(next) = self.next(error, done, deadline)
                {
                    at = Some(at.map_or(next, |at: Instant| at.min(next)));
                    again.push(index);
                }
            }
            let Some(at) = at else { break };
            tokio::time::sleep_until(at).await;
            let requests: Vec<_> = again.iter().map(|&index| batch[index].clone()).collect();
            let repeated = self.inner.extend(&requests, deadline).await;
            for (index, answer) in again.into_iter().zip(repeated) {
                answers[index] = answer;
            }
        }
        answers
    }
}

around_each_call!(Retry, {});

/// A pause shortened at random by up to a half, so that clients that failed together do not retry
/// together.
fn shortened(pause: Duration) -> Duration {
    // Without random numbers, pauses keep their full length.
    let chance = getrandom::u32().unwrap_or(0);
    pause.mul_f64(1.0 - f64::from(chance) / f64::from(u32::MAX) / 2.0)
}
