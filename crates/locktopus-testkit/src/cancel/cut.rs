//! A future that is polled so many times and then dropped.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Polls a future at most so many times. See [`cut_after`].
pub struct Cut<F> {
    inner: Option<Pin<Box<F>>>,
    polls_left: usize,
}

/// Runs `future` until it completes, or drops it where it stands after it was pending `polls` times.
/// `None` if it was dropped. With 0 polls it is dropped before it has done anything.
pub fn cut_after<F: Future>(polls: usize, future: F) -> Cut<F> {
    Cut {
        inner: Some(Box::pin(future)),
        polls_left: polls,
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
