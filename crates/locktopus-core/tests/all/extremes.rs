//! Durations of any length, wherever a user can set one, give an answer or an error, never a panic.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use common::{Fate, Scripted, extremes};
use locktopus_core::{
    CohortSettings, LockRequest, Locktopus, LocktopusBuilder, ValidityMargin, WaitStrategy,
};
use locktopus_memory::MemoryBackend;
use locktopus_quorum::{QuorumBackend, QuorumBuilder};
use tokio::time::timeout;

const MOMENT: Duration = Duration::from_millis(700);

/// The use of one duration, by its name.
type Setter<T> = (&'static str, fn(T, Duration) -> T);

fn builders() -> Vec<Setter<LocktopusBuilder>> {
    vec![
        ("renewed_lease", LocktopusBuilder::renewed_lease),
        ("max_lease", LocktopusBuilder::max_lease),
        ("lease_cache", LocktopusBuilder::lease_cache),
        ("tolerate_outage", LocktopusBuilder::tolerate_outage),
        ("budget", |builder, budget| {
            builder.cohort(CohortSettings { turns: 64, budget })
        }),
        ("clock_step", |builder, clock_step| {
            let drift_ppm = 10_000;
            builder.validity_margin(ValidityMargin {
                drift_ppm,
                clock_step,
            })
        }),
        ("strategy", |builder, heartbeat| {
            builder.strategy(WaitStrategy::Notify { heartbeat })
        }),
    ]
}

fn requests() -> Vec<Setter<LockRequest>> {
    vec![
        ("fixed_lease", LockRequest::fixed_lease),
        ("renewed_lease", LockRequest::renewed_lease),
        ("max_hold", LockRequest::max_hold),
        ("hold_at_least", LockRequest::hold_at_least),
        ("lease_cache", LockRequest::lease_cache),
        ("wait_at_most", LockRequest::wait_at_most),
        ("hand-off", |request, heartbeat| {
            let confirm = false;
            request.strategy(WaitStrategy::HandOff { heartbeat, confirm })
        }),
        ("poll", |request, max| {
            let min = Duration::from_millis(1);
            request.strategy(WaitStrategy::Poll { min, max })
        }),
    ]
}

fn kinds(locks: &Locktopus) -> Vec<LockRequest> {
    vec![
        locks.lock("a"),
        locks.mutex("b"),
        locks.fair_lock("c"),
        locks.rw_lock("d").read(),
        locks.semaphore("e").permits(1),
        locks.permit_semaphore("f").permits(2),
    ]
}

/// Acquires, extends and releases it: an error is fine, and so is waiting.
async fn used(what: &str, request: LockRequest, duration: Duration) {
    println!("{what} {duration:?}");
    let Ok(Ok(guard)) = timeout(MOMENT, request.acquire()).await else {
        return;
    };
    let _ = guard.lease().ensure_valid_for(duration);
    let _ = guard.extend(duration).await;
    let _ = timeout(MOMENT, guard.release()).await;
}

/// Every operation on these locks, when they are free, when they are held, and when the backend is
/// away.
async fn everything(what: &str, script: &Scripted, locks: &Locktopus, duration: Duration) {
    for state in ["free", "held", "away"] {
        let what = format!("{what}, {state}:");
        let other = script.other();
        let held = match state {
            "held" => {
                let _ = other.permit_semaphore("f").initialise(2).await;
                let mut held = Vec::new();
                for request in kinds(&other) {
                    held.extend(request.try_acquire().await.unwrap());
                }
                held
            }
            _ => Vec::new(),
        };
        if state == "away" {
            script.always("attempt", Fate::Refuse);
            script.always("counter", Fate::Refuse);
        }
        for request in kinds(locks) {
            used(&what, request, duration).await;
        }
        let write = timeout(MOMENT, locks.rw_lock("d").write().acquire()).await;
        if let Ok(Ok(writing)) = write
            && let Ok(Ok(reading)) = timeout(MOMENT, writing.downgrade()).await
        {
            drop(reading);
        }
        println!("{what} several {duration:?}");
        let several = || locks.multi(["a", "y"]);
        let _ = timeout(MOMENT, several().wait_at_most(duration).acquire()).await;
        let _ = timeout(MOMENT, several().fixed_lease(duration).acquire()).await;
        let _ = timeout(MOMENT, several().renewed_lease(duration).try_acquire()).await;
        let latch = locks.latch("g").wait();
        let _ = timeout(MOMENT, latch.clone().at_most(duration)).await;
        let _ = timeout(MOMENT, latch.heartbeat(duration)).await;
        let _ = timeout(MOMENT, locks.semaphore("e").available()).await;
        for guard in held {
            guard.release().await.unwrap();
        }
        script.always("attempt", Fate::Pass);
        script.always("counter", Fate::Pass);
    }
}

async fn scripted() -> Scripted {
    let script = Scripted::new();
    let other = script.other();
    other.semaphore("e").initialise(1).await.unwrap();
    other.permit_semaphore("f").initialise(2).await.unwrap();
    other.latch("g").initialise(1).await.unwrap();
    script
}

#[tokio::test(start_paused = true)]
async fn every_setting_of_a_locktopus() {
    for (setting, set) in builders() {
        for duration in extremes() {
            println!("{setting} = {duration:?}");
            let script = scripted().await;
            let Ok(locks) = set(script.builder(), duration).build() else {
                continue;
            };
            everything(setting, &script, &locks, Duration::from_secs(1)).await;
            let _ = timeout(MOMENT, locks.shutdown(duration)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_setting_of_a_request() {
    for duration in extremes() {
        let script = scripted().await;
        let longest = Duration::from_secs(10 * 365 * 24 * 60 * 60);
        let locks = script.builder().max_lease(longest).build().unwrap();
        everything("request", &script, &locks, duration).await;
        for (setting, set) in requests() {
            for request in kinds(&locks) {
                used(setting, set(request, duration), duration).await;
            }
            let held = script.other().lock("a").try_acquire().await.unwrap();
            used(setting, set(locks.lock("a"), duration), duration).await;
            drop(held);
        }
    }
}

/// A property that the backend reports: it may come from a user, as `?timeout=` does.
#[tokio::test(start_paused = true)]
async fn every_call_timeout() {
    for duration in extremes() {
        let script = scripted_with(duration).await;
        let locks = script.locks();
        everything("call timeout", &script, &locks, Duration::from_secs(1)).await;
        script.always("attempt", Fate::Hang);
        let _ = timeout(MOMENT, locks.lock("h").acquire()).await;
        let _ = timeout(MOMENT, locks.diagnose()).await;
        let _ = timeout(MOMENT, locks.shutdown(MOMENT)).await;
    }
}

async fn scripted_with(call_timeout: Duration) -> Scripted {
    let script = Scripted::with_call_timeout(call_timeout);
    script.other().semaphore("e").initialise(1).await.unwrap();
    script
}

#[tokio::test(start_paused = true)]
async fn every_setting_of_a_quorum() {
    let settings: [Setter<QuorumBuilder>; 4] = [
        ("node_timeout", QuorumBuilder::node_timeout),
        ("max_lease", QuorumBuilder::max_lease),
        ("probe_every", QuorumBuilder::probe_every),
        ("clock_step", |builder, clock_step| {
            let drift_ppm = 10_000;
            builder.validity_margin(ValidityMargin {
                drift_ppm,
                clock_step,
            })
        }),
    ];
    for (setting, set) in settings {
        for duration in extremes() {
            println!("{setting} = {duration:?}");
            let nodes = ["1", "2", "3"];
            let builder = nodes
                .iter()
                .fold(QuorumBackend::builder(), |builder, label| {
                    builder.node(*label, Arc::new(MemoryBackend::new()))
                });
            let Ok(quorum) = set(builder, duration).build() else {
                continue;
            };
            let locks = Locktopus::builder(quorum).build().unwrap();
            used(setting, locks.lock("a"), duration).await;
            used(setting, locks.mutex("b").wait_at_most(duration), duration).await;
            let _ = timeout(MOMENT, locks.shutdown(MOMENT)).await;
        }
    }
}
