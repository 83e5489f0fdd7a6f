//! The background thread.

use std::sync::Arc;

use tokio::runtime::{Builder, Handle, Runtime};

use super::error::BlockingError;

/// A runtime with one thread. It ends with its last user.
#[derive(Debug)]
pub(super) struct Background {
    /// An `Option`, so that it can be taken on drop.
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

    /// Blocks this thread until the future is done. Inside a runtime it drops the future without
    /// polling it.
    pub(super) fn wait<F: Future>(&self, future: F) -> Result<F::Output, BlockingError> {
        refuse_inside_runtime()?;
        Ok(self.handle.block_on(future))
    }
}

/// Also refuses on a thread that is ending, where blocking would panic.
fn refuse_inside_runtime() -> Result<(), BlockingError> {
    match Handle::try_current() {
        Err(error) if error.is_missing_context() => Ok(()),
        _ => Err(BlockingError::InsideRuntime),
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // A blocking shutdown of the runtime is not possible everywhere that this may be dropped.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
