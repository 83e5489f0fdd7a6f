//! Locks that are held and renewed throughout.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream;
use locktopus::{LockError, LockGuard, Locktopus};

use super::tally::Tally;

/// Renewals come three times as often. The server is never away for that long.
const LEASE: Duration = Duration::from_secs(120);
/// Requests of a client that are in flight at a time.
const AT_ONCE: usize = 256;

/// Takes `count` locks, in turn through each client, as lock, mutex, fair lock and read lock.
pub(super) async fn take(
    clients: &[Locktopus],
    prefix: &str,
    count: usize,
    tally: &Tally,
) -> Vec<LockGuard> {
    let taking = (0..count).map(|number| {
        let locks = &clients[number % clients.len()];
        let name = name(prefix, number);
        let request = match number / clients.len() % 4 {
            0 => locks.lock(name),
            1 => locks.mutex(name),
            2 => locks.fair_lock(name),
            _ => locks.rw_lock(name).read(),
        };
        async move { (Instant::now(), request.renewed_lease(LEASE).acquire().await) }
    });
    let mut guards = Vec::with_capacity(count);
    let mut taking = stream::iter(taking).buffer_unordered(AT_ONCE);
    while let Some((since, taken)) = taking.next().await {
        match taken {
            Ok(guard) => guards.push(guard),
            Err(error) => tally.failed(&error, since),
        }
    }
    guards
}

/// The name of a held lock.
pub(super) fn name(prefix: &str, number: usize) -> String {
    format!("{prefix}:held-{number}")
}

/// Releases all of them, and returns how many were still held. The server decides that, not the
/// guard.
pub(super) async fn give_back(guards: Vec<LockGuard>, tally: &Tally) -> u64 {
    let mut held = 0;
    let giving = guards
        .into_iter()
        .map(|guard| async move { (Instant::now(), guard.release().await) });
    let mut giving = stream::iter(giving).buffer_unordered(AT_ONCE);
    while let Some((since, given)) = giving.next().await {
        match given {
            Ok(()) => held += 1,
            // The return value counts these.
            Err(LockError::Lost { .. }) => {}
            Err(error) => tally.failed(&error, since),
        }
    }
    held
}
