//! Work that is dropped when the lease under it ends: for `run` and `try_run`, leaders and jobs.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use crate::engine::error::LockError;
use crate::handles::lease::Lease;

/// Runs `work` for as long as the lease may be believed in.
///
/// The clock is looked at before each step of the work, and not only when the loss is announced: a process that was stopped
/// for longer than its lease does not take one more step when it goes on.
pub(crate) async fn while_held<F: Future>(lease: &Lease, work: F) -> Result<F::Output, LockError> {
    let mut lost = pin!(lease.lost());
    let mut work = pin!(work);
    poll_fn(|context| {
        // Asked only to be woken: whether the lease is over is for the clock to say.
        let _ = lost.as_mut().poll(context);
        if let Err(error) = lease.ensure_valid() {
            return Poll::Ready(Err(error));
        }
        work.as_mut().poll(context).map(Ok)
    })
    .await
}
