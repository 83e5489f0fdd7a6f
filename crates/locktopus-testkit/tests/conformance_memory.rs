//! The embedded backend keeps the contract.

use std::sync::Arc;

use locktopus_core::{DynBackend, LockTarget, MemoryBackend};
use locktopus_testkit::conformance::{Report, Suite};

fn suite() -> Suite {
    let store = MemoryBackend::new();
    let wiped = store.clone();
    Suite::new(move || {
        let client = store.another_client();
        async move { Arc::new(client) as DynBackend }
    })
    .wipe(move |target: LockTarget| {
        let gone = wiped.forget(&target);
        async move { assert!(gone, "{target} was not there to be deleted") }
    })
    .shared_waiters()
}

async fn run() -> Report {
    suite().run().await
}

#[tokio::test(start_paused = true)]
async fn the_memory_backend_conforms_on_the_paused_clock() {
    run().await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_memory_backend_conforms_in_real_time() {
    run().await.assert_passed();
}
