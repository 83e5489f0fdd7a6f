//! The service that holds the lock.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tower_service::Service;

use crate::LockLayer;
use crate::error::LockedError;

/// A service under a lock. Made by [`LockLayer`].
#[derive(Debug)]
pub struct LockService<S, R> {
    pub(crate) inner: S,
    pub(crate) layer: LockLayer<R>,
}

impl<S: Clone, R> Clone for LockService<S, R> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            layer: self.layer.clone(),
        }
    }
}

impl<S, R> Service<R> for LockService<S, R>
where
    S: Service<R> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send,
    S::Error: Send,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = LockedError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(LockedError::Inner)
    }

    /// Takes the lock, lets the service answer, and releases the lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the service's future at its current await point, and releases the
    /// lock in the background.
    fn call(&mut self, mut request: R) -> Self::Future {
        // Use the service that was ready, not its clone, which may not be.
        let fresh = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, fresh);
        let Some(lock) = (self.layer.lock_of)(&request) else {
            let answer = ready.call(request);
            return Box::pin(async move { answer.await.map_err(LockedError::Inner) });
        };
        let (attach, waits) = (self.layer.attach.clone(), self.layer.waits);
        Box::pin(async move {
            let work = move |lease| {
                if let Some(attach) = attach {
                    attach(&mut request, lease);
                }
                ready.call(request)
            };
            let answered = if waits {
                lock.run(work).await.map(Some)
            } else {
                lock.try_run(work).await
            };
            match answered {
                Ok(Some(answer)) => answer.map_err(LockedError::Inner),
                Ok(None) => Err(LockedError::Busy),
                Err(error) => Err(LockedError::of(error)),
            }
        })
    }
}
