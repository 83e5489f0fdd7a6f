//! The background thread.

use std::sync::Arc;

use tokio::runtime::{Builder, Handle, Runtime};

use super::error::BlockingError;

/// A runtime with one thread. Ends with its last user.
#[derive(Debug)]
pub(super) struct Background {
    /// Only taken to be dropped.
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Background {
    pub(super) fn start() -> Result<Arc<Self>, BlockingError> {
        refuse_inside_runtime()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("locktopus")
            .enable_all()
            .build()
            .map_err(BlockingError::Thread)?;
        Ok(Arc::new(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        }))
    }

    /// Blocks this thread until the future is done. Inside a runtime it is dropped instead, without
    /// a step.
    pub(super) fn wait<F: Future>(&self, future: F) -> Result<F::Output, BlockingError> {
        refuse_inside_runtime()?;
        Ok(self.handle.block_on(future))
    }
}

/// Also where a thread is ending and nothing is known any more: blocking would panic there.
fn refuse_inside_runtime() -> Result<(), BlockingError> {
    match Handle::try_current() {
        Err(error) if error.is_missing_context() => Ok(()),
        _ => Err(BlockingError::InsideRuntime),
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Waiting for its thread is not possible everywhere that this may be dropped.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
