//! A layer on a conforming backend conforms.

use std::sync::Arc;
use std::time::Duration;

use locktopus_conformance::Suite;
use locktopus_contract::{DynBackend, LockName, LockTarget};
use locktopus_layers::{Chaos, Prefix, Retry, Timeout};
use locktopus_memory::MemoryBackend;

/// The suite on clients of one embedded store, each under a layer. `stored` is the target as the
/// layer stores it.
fn suite(
    layer: impl Fn(DynBackend) -> DynBackend + Send + Sync + 'static,
    stored: impl Fn(LockTarget) -> LockTarget + Send + Sync + 'static,
) -> Suite {
    let store = MemoryBackend::new();
    let wiped = store.clone();
    Suite::new(move || {
        let client = layer(Arc::new(store.another_client()));
        async move { client }
    })
    .wipe(move |target: LockTarget| {
        let gone = wiped.forget(&stored(target));
        async move { assert!(gone, "it was not there to be deleted") }
    })
    .shared_waiters()
}

async fn conforms(layer: impl Fn(DynBackend) -> DynBackend + Send + Sync + 'static) {
    suite(layer, |target| target).run().await.assert_passed();
}

#[tokio::test(start_paused = true)]
async fn prefix_conforms() {
    let stored = |target: LockTarget| {
        let name = LockName::in_namespace("tenant-7:", target.name().as_str()).unwrap();
        LockTarget::new(name, target.kind().clone())
    };
    let layer = |backend| Arc::new(Prefix::new(backend, "tenant-7:")) as DynBackend;
    suite(layer, stored).run().await.assert_passed();
}

#[tokio::test(start_paused = true)]
async fn timeout_conforms() {
    conforms(|backend| Arc::new(Timeout::new(backend, Duration::from_millis(80)))).await;
}

#[tokio::test(start_paused = true)]
async fn retry_conforms() {
    conforms(|backend| Arc::new(Retry::new(backend))).await;
}

#[tokio::test(start_paused = true)]
async fn chaos_without_orders_conforms() {
    conforms(|backend| Arc::new(Chaos::new(backend))).await;
}

#[cfg(all(feature = "history", unix))]
#[tokio::test(start_paused = true)]
async fn recorded_conforms() {
    use std::sync::atomic::{AtomicU32, Ordering};

    let recorder = locktopus_history::Recorder::in_memory();
    let workers = AtomicU32::new(1);
    conforms(move |backend| {
        let number = workers.fetch_add(1, Ordering::Relaxed);
        Arc::new(locktopus_layers::Recorded::new(backend, &recorder, number))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn all_together_conform() {
    conforms(|backend| {
        let chaos = Arc::new(Chaos::new(backend));
        let quick = Arc::new(Timeout::new(chaos, Duration::from_millis(80)));
        Arc::new(Retry::new(quick))
    })
    .await;
}
