//! Turns for tasks that never have to wait.

/// Lets other tasks of the runtime run now and then.
///
/// Nothing here waits, so a task that keeps taking a free lock would never give up its thread, and
/// other tasks could not even ask for the lock. So each attempt uses some of tokio's budget, as a
/// message from a channel does. About every hundredth attempt, the task goes to the end of the
/// runtime's queue. Without a runtime this does nothing.
pub(super) async fn yield_now_and_then() {
    tokio::task::coop::consume_budget().await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use locktopus_core::Locktopus;

    use crate::MemoryBackend;

    /// More turns than the runtime's budget allows without a pause, and few enough to finish even
    /// if no task yields.
    const MOST: u32 = 10_000;

    #[tokio::test]
    async fn a_task_that_never_waits_does_not_starve_its_neighbour() {
        let locks = Locktopus::builder(MemoryBackend::new()).build().unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let neighbour = tokio::spawn({
            let (locks, done) = (locks.clone(), Arc::clone(&done));
            async move {
                let guard = locks.lock("wanted").acquire().await.unwrap();
                guard.release().await.unwrap();
                done.store(true, Ordering::SeqCst);
            }
        });
        let mut turns = 0;
        while turns < MOST && !done.load(Ordering::SeqCst) {
            let guard = locks.lock("wanted").acquire().await.unwrap();
            guard.release().await.unwrap();
            turns += 1;
        }
        assert!(turns < MOST, "the neighbour never got the lock");
        neighbour.await.unwrap();
    }
}
