//! Micro-benchmarks of what every acquisition does in this process: `just bench-micro`.
//!
//! No server and no network: these show what a change costs the client, in nanoseconds.
//! `locktopus-bench run` measures what users wait for.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use locktopus::{
    LockKind, LockName, LockTarget, Locktopus, MemoryBackend, MutexProfile, OwnerId, Wake,
    WakeGroup,
};
use locktopus_protocol::Keys;
use locktopus_protocol::slot::key_slot;

fn target(name: &str, kind: LockKind) -> LockTarget {
    LockTarget::new(LockName::new(name).expect("a good name"), kind)
}

fn names_and_ids(c: &mut Criterion) {
    let mut group = c.benchmark_group("names and ids");
    group.throughput(Throughput::Elements(1));
    group.bench_function("owner id", |b| b.iter(OwnerId::generate));
    group.bench_function("lock name", |b| {
        b.iter(|| LockName::new(black_box("tenant-17:invoice:424242")))
    });
    let lock = target("tenant-17:invoice:424242", LockKind::Reentrant);
    group.bench_function("keys of a lock", |b| b.iter(|| Keys::of(black_box(&lock))));
    let single = target(
        "tenant-17:invoice:424242",
        LockKind::Mutex(Arc::new(MutexProfile::single_key())),
    );
    group.bench_function("key of a single-key mutex", |b| {
        b.iter(|| Keys::of(black_box(&single)))
    });
    group.bench_function("hash slot of 24 bytes", |b| {
        b.iter(|| key_slot(black_box(b"tenant-17:invoice:424242")))
    });
    group.finish();
}

fn memory_backend(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let locks = runtime.block_on(async {
        Locktopus::builder(MemoryBackend::new())
            .build()
            .expect("good settings")
    });
    let mut group = c.benchmark_group("memory backend");
    group.throughput(Throughput::Elements(1));
    group.bench_function("lock: acquire, release", |b| {
        b.iter(|| {
            runtime.block_on(async {
                locks
                    .lock("a")
                    .acquire()
                    .await
                    .expect("free")
                    .release()
                    .await
                    .expect("held");
            });
        });
    });
    group.bench_function("mutex, fixed lease: acquire, release", |b| {
        b.iter(|| {
            runtime.block_on(async {
                let request = locks.mutex("b").fixed_lease(Duration::from_secs(30));
                request
                    .acquire()
                    .await
                    .expect("free")
                    .release()
                    .await
                    .expect("held");
            });
        });
    });
    let holder = runtime
        .block_on(locks.lock("held").acquire())
        .expect("free");
    group.bench_function("lock: try, held by another", |b| {
        b.iter(|| {
            runtime
                .block_on(locks.lock("held").try_acquire())
                .expect("an answer")
        });
    });
    group.bench_function("guard: ensure_valid", |b| {
        b.iter(|| black_box(&holder).ensure_valid())
    });
    group.bench_function("guard: reenter, drop", |b| {
        b.iter(|| drop(black_box(&holder).reenter()))
    });
    group.finish();
    drop(holder);
}

fn wake_ups(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let mut group = c.benchmark_group("wake-ups");
    for crowd in [1_usize, 100, 10_000] {
        let waiters = Arc::new(WakeGroup::default());
        let mut first = waiters.join(());
        let _rest: Vec<_> = (1..crowd).map(|_| waiters.join(())).collect();
        group.bench_function(format!("wake the first of {crowd}"), |b| {
            b.iter(|| {
                waiters.wake_one();
                assert_eq!(runtime.block_on(first.next()), Wake::Released);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, names_and_ids, memory_backend, wake_ups);
criterion_main!(benches);
