//! Calls to all nodes at once, of which only as many are waited for as are needed.

use std::future::Future;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

use super::panel::Panel;

/// Calls under way. Those that are not finished when it is dropped go on in the background.
pub(super) struct Fan<T: Send + 'static> {
    calls: FuturesUnordered<BoxFuture<'static, T>>,
    panel: Arc<Panel>,
}

impl<T: Send + 'static> Fan<T> {
    pub(super) fn new(panel: &Arc<Panel>) -> Self {
        Self {
            calls: FuturesUnordered::new(),
            panel: Arc::clone(panel),
        }
    }

    pub(super) fn push(&mut self, call: impl Future<Output = T> + Send + 'static) {
        self.calls.push(Box::pin(call));
    }

    /// Whether every call is answered.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The next answer; `None` if there are no more, or none by the deadline.
    pub(super) async fn next(&mut self, deadline: Instant) -> Option<T> {
        timeout_at(deadline, self.calls.next()).await.ok().flatten()
    }
}

impl<T: Send + 'static> Drop for Fan<T> {
    fn drop(&mut self) {
        if !self.is_empty() {
            let mut calls = std::mem::take(&mut self.calls);
            self.panel
                .background(async move { while calls.next().await.is_some() {} });
        }
    }
}
