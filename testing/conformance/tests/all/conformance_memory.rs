//! The embedded backend keeps the contract, and so does a quorum of several.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locktopus_conformance::{Flavour, Report, SHORT, Suite};
use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, DynBackend, LockBackend, LockKind, LockTarget,
};
use locktopus_memory::MemoryBackend;
use locktopus_quorum::QuorumBackend;

/// Longer than any lease that a case requests.
const LONGEST: Duration = Duration::from_secs(2 * 24 * 60 * 60);

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

/// Acts like a machine that is busy with something else.
#[derive(Debug)]
struct Slow {
    inner: MemoryBackend,
    /// How late each attempt is.
    by: Duration,
    /// A fault that is independent of the machine: writers share the lock, as readers do.
    writers_share: bool,
}

#[async_trait]
impl locktopus_core::Layer for Slow {
    fn inner(&self) -> &dyn LockBackend {
        &self.inner
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        tokio::time::sleep(self.by).await;
        let mut attempt = attempt.clone();
        if self.writers_share && matches!(attempt.target.kind(), LockKind::Write) {
            attempt.target = LockTarget::new(attempt.target.name().clone(), LockKind::Read);
        }
        self.inner.attempt(&attempt).await
    }
}

/// The report of the readers' cases on such a backend.
async fn readers(by: Duration, writers_share: bool) -> Report {
    let store = MemoryBackend::new();
    let suite = Suite::new(move || {
        let slow = Slow {
            inner: store.another_client(),
            by,
            writers_share,
        };
        async move { Arc::new(slow) as DynBackend }
    });
    suite.shared_waiters().only("readers::").run().await
}

/// This case relies on a lease that a slow machine lets expire before the writer comes.
const RELIES_ON_A_LEASE: &str = "readers::a_writer_waits_for_the_last_reader";

/// The writer must wait for the reader, but the reader's lease expires before the writer comes. No
/// rule is broken.
#[tokio::test(start_paused = true)]
async fn a_slow_machine_breaks_no_rule() {
    let report = readers(SHORT * 5 / 8, false).await;
    report.assert_passed();
    assert!(report.to_string().contains(RELIES_ON_A_LEASE), "{report}");
}

/// A broken rule is found however slow the machine is, and a case that always comes too late to
/// tell does not pass.
#[tokio::test(start_paused = true)]
async fn a_slow_machine_excuses_no_broken_rule() {
    for (by, writers_share) in [
        (Duration::ZERO, true),
        (SHORT * 5 / 8, true),
        (SHORT * 20, false),
    ] {
        let report = readers(by, writers_share).await;
        let found = report
            .failures()
            .any(|(name, _)| name.contains(RELIES_ON_A_LEASE));
        assert!(
            found,
            "{by:?} late, writers share: {writers_share}\n{report}"
        );
    }
}

/// A quorum of three embedded backends is a backend like any other, for its flavours.
fn quorum() -> Suite {
    let nodes = [(); 3].map(|()| MemoryBackend::new());
    let wiped = nodes.clone();
    Suite::new(move || {
        let labelled = ["a", "b", "c"].into_iter().zip(&nodes);
        let builder = QuorumBackend::builder().max_lease(LONGEST);
        let builder = labelled.fold(builder, |builder, (label, node)| {
            builder.node(label, Arc::new(node.another_client()))
        });
        let quorum = builder.node_timeout(Duration::from_secs(5)).build();
        async move { Arc::new(quorum.unwrap()) as DynBackend }
    })
    .wipe(move |target: LockTarget| {
        let gone = wiped.iter().filter(|node| node.forget(&target)).count();
        async move { assert!(gone > 1, "{target} was not there to be deleted") }
    })
    .flavours(&[Flavour::Mutex, Flavour::SingleKey])
    .quorum()
    .shared_waiters()
}

#[tokio::test(start_paused = true)]
async fn a_quorum_conforms_on_the_paused_clock() {
    quorum().run().await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_quorum_conforms_in_real_time() {
    quorum().run().await.assert_passed();
}
