//! Calls to all nodes at once. The caller waits for only as many answers as it needs.

use std::future::Future;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

use super::members::Members;

/// Calls under way. Unfinished ones continue in the background when it is dropped.
pub(super) struct FanOut<T: Send + 'static> {
    calls: FuturesUnordered<BoxFuture<'static, T>>,
    members: Arc<Members>,
}

impl<T: Send + 'static> FanOut<T> {
    pub(super) fn new(members: &Arc<Members>) -> Self {
        Self {
            calls: FuturesUnordered::new(),
            members: Arc::clone(members),
        }
    }

    pub(super) fn push(&mut self, call: impl Future<Output = T> + Send + 'static) {
        self.calls.push(Box::pin(call));
    }

    /// Whether every call is answered.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The next answer. `None` if there are no more, or none by the deadline.
    pub(super) async fn next(&mut self, deadline: Instant) -> Option<T> {
        timeout_at(deadline, self.calls.next()).await.ok().flatten()
    }
}

impl<T: Send + 'static> Drop for FanOut<T> {
    fn drop(&mut self) {
        if !self.is_empty() {
            let mut calls = std::mem::take(&mut self.calls);
            self.members
                .background(async move { while calls.next().await.is_some() {} });
        }
    }
}
