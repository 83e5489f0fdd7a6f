//! Random sequences of calls on the memory backend, against a sequential reference, in paused time.

use crate::sequences_common;

use std::sync::Arc;

use locktopus::{DynBackend, MemoryBackend};
use locktopus_conformance::Flavour;
use sequences_common::{Sequence, Subject, hold};
use tokio::runtime::Builder;

/// All kinds together take some seconds, unoptimised.
const CASES: u32 = 1_000;

fn play(sequence: Sequence) -> Result<(), String> {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = MemoryBackend::new();
        let clients = [store.another_client(), store].map(|client| Arc::new(client) as DynBackend);
        let subject = Subject::new(clients.into(), "lock", &sequence.reference, true).await;
        sequence.play(subject).await
    })
}

#[test]
#[should_panic(expected = "no sequence would be tried")]
fn to_try_nothing_is_no_success() {
    sequences_common::asked(Some(0), CASES);
}

fn memory(flavour: Flavour) {
    hold(flavour, true, CASES, play);
}

#[test]
fn lock() {
    memory(Flavour::Lock);
}

#[test]
fn mutex() {
    memory(Flavour::Mutex);
}

#[test]
fn single_key() {
    memory(Flavour::SingleKey);
}

#[test]
fn fair_lock() {
    memory(Flavour::Fair);
}

#[test]
fn rw_lock() {
    memory(Flavour::ReadWrite);
}

#[test]
fn semaphore() {
    memory(Flavour::Semaphore);
}

#[test]
fn permit_semaphore() {
    memory(Flavour::Permits);
}

#[test]
fn rate_limiter() {
    memory(Flavour::RateLimiter);
}

#[test]
fn latch() {
    memory(Flavour::Latch);
}
