//! A future that is polled a fixed number of times and then dropped.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Polls a future a limited number of times. See [`cut_after`].
pub struct Cut<F> {
    inner: Option<Pin<Box<F>>>,
    polls_left: usize,
    budget: Option<usize>,
}

/// How much work tokio lets a task do before it makes it yield.
const WHOLE_BUDGET: usize = 128;

impl<F> Cut<F> {
    /// Leaves the future this many units of tokio's budget at each poll. This cuts it wherever a
    /// busy task would have to yield, even at an await that is otherwise never pending, such as an
    /// uncontended mutex.
    #[must_use]
    pub fn on_budget(self, units: usize) -> Self {
        Self {
            budget: Some(units),
            ..self
        }
    }
}

/// Uses up all but `units`.
fn starve(cx: &mut Context<'_>, units: usize) {
    for _ in units..WHOLE_BUDGET {
        let used = std::pin::pin!(tokio::task::consume_budget()).poll(cx);
        if used.is_pending() {
            return;
        }
    }
}

/// Runs `future` until it completes, or drops it where it stands once it was pending `polls` times.
/// `None` if it was dropped. With 0 polls it is dropped before its first poll.
pub fn cut_after<F: Future>(polls: usize, future: F) -> Cut<F> {
    Cut {
        inner: Some(Box::pin(future)),
        polls_left: polls,
        budget: None,
    }
}

impl<F: Future> Future for Cut<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.polls_left > 0
            && let Some(inner) = &mut this.inner
        {
            this.polls_left -= 1;
            if let Some(units) = this.budget {
                starve(cx, units);
            }
            if let Poll::Ready(output) = inner.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
        }
        if this.polls_left == 0 {
            this.inner = None;
            return Poll::Ready(None);
        }
        Poll::Pending
    }
}

impl<F> fmt::Debug for Cut<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cut")
            .field("polls_left", &self.polls_left)
            .finish_non_exhaustive()
    }
}
