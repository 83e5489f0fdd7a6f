//! Limits for the calls to the backend under way at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use locktopus_contract::lock;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The limit for each shard, if there are many calls.
const MAX_CALLS_PER_SHARD: usize = 64;
/// At this number of shards, those without a call under way are removed.
const PRUNE_SHARDS_AT: usize = 1024;
/// The most attempts sent at once for all shards: enough to keep even a distant server busy.
const MAX_ATTEMPTS: usize = 448;
/// Attempts wait while this many owed releases of their shard have no answer. Clients have room for
/// more commands, because they sent the attempts that caused these releases.
const MAX_UNANSWERED: usize = 1024;
/// The same for all owed releases. After its first answer, a release may wait for a late attempt.
const MAX_OWED: usize = 8192;

/// One value for each shard, which exists while it is in use.
#[derive(Debug)]
struct PerShard<T>(Mutex<HashMap<u32, Weak<T>>>);

impl<T> Default for PerShard<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> PerShard<T> {
    fn of(&self, shard: u32, make: impl FnOnce() -> T) -> Arc<T> {
        let mut shards = lock(&self.0);
        if let Some(value) = shards.get(&shard).and_then(Weak::upgrade) {
            return value;
        }
        if shards.len() >= PRUNE_SHARDS_AT {
            shards.retain(|_, value| value.strong_count() > 0);
        }
        let value = Arc::new(make());
        shards.insert(shard, Arc::downgrade(&value));
        value
    }
}

/// Limits how many calls of a kind are under way at once, so that a crowd does not flood the
/// backend. Each shard has its own limit: calls that wait for a dead node delay no others.
#[derive(Debug, Default)]
pub(super) struct ShardLimits(PerShard<Semaphore>);

impl ShardLimits {
    pub(super) fn of_shard(&self, shard: u32) -> Arc<Semaphore> {
        self.0.of(shard, || Semaphore::new(MAX_CALLS_PER_SHARD))
    }
}

/// Counts owed releases. Attempts wait while their shard is owed many, because a program can drop
/// the futures of attempts faster than the backend answers.
#[derive(Debug, Default)]
pub(super) struct Debts(PerShard<ShardDebts>);

#[derive(Debug, Default)]
struct ShardDebts {
    unanswered: AtomicUsize,
    all: AtomicUsize,
    /// A release was answered or is over.
    fewer: Notify,
}

/// One owed release, until it is dropped.
#[derive(Debug)]
pub(super) struct Debt {
    shard: Arc<ShardDebts>,
    answered: AtomicBool,
}

impl Debts {
    /// Counts one more.
    pub(super) fn owe(&self, shard: u32) -> Debt {
        let shard = self.0.of(shard, ShardDebts::default);
        shard.unanswered.fetch_add(1, Ordering::SeqCst);
        shard.all.fetch_add(1, Ordering::SeqCst);
        Debt {
            shard,
            answered: AtomicBool::new(false),
        }
    }

    /// Whether a shard may be owed too many, if this many are owed in all.
    pub(super) fn may_be_many(owed: usize) -> bool {
        owed >= MAX_UNANSWERED
    }

    /// Whether this shard is owed few enough.
    pub(super) fn are_few(&self, shard: u32) -> bool {
        self.0.of(shard, ShardDebts::default).are_few()
    }

    /// Waits until this shard is owed few enough.
    pub(super) async fn few(&self, shard: u32) {
        let shard = self.0.of(shard, ShardDebts::default);
        while !shard.are_few() {
            let fewer = shard.fewer.notified();
            // The notification may have come in between.
            if !shard.are_few() {
                fewer.await;
            }
        }
        // There may be room for the next waiter too.
        shard.fewer.notify_one();
    }
}

impl ShardDebts {
    fn are_few(&self) -> bool {
        let (unanswered, all) = (&self.unanswered, &self.all);
        unanswered.load(Ordering::SeqCst) < MAX_UNANSWERED && all.load(Ordering::SeqCst) < MAX_OWED
    }
}

impl Debt {
    /// The first release was answered, or given up.
    pub(super) fn answered(&self) {
        if !self.answered.swap(true, Ordering::SeqCst) {
            self.shard.unanswered.fetch_sub(1, Ordering::SeqCst);
            self.shard.fewer.notify_one();
        }
    }
}

impl Drop for Debt {
    fn drop(&mut self) {
        self.answered();
        self.shard.all.fetch_sub(1, Ordering::SeqCst);
        self.shard.fewer.notify_one();
    }
}

/// Limits how many attempts are under way at once. Each has its command and buffers, several times
/// what a waiter needs. If all tasks of a process start to wait at once, it would keep memory for
/// all of these for good.
///
/// While there are few attempts, one costs a counter up and down. Only if there are many does the
/// next one wait for others of its shard, and not for long: the caller decides how long.
#[derive(Debug, Default)]
pub(super) struct AttemptLimits {
    under_way: AtomicUsize,
    shards: ShardLimits,
}

/// While this exists, an attempt may be under way.
pub(super) struct AttemptSlot<'a>(&'a AtomicUsize);

impl AttemptLimits {
    /// A slot, if there are few.
    pub(super) fn at_once(&self) -> Option<AttemptSlot<'_>> {
        let slot = AttemptSlot(&self.under_way);
        let before = self.under_way.fetch_add(1, Ordering::Relaxed);
        (before < MAX_ATTEMPTS).then_some(slot)
    }

    /// Waits for a slot among those of a shard.
    pub(super) async fn in_turn(&self, shard: u32) -> Option<OwnedSemaphorePermit> {
        let limit = self.shards.of_shard(shard);
        limit.acquire_owned().await.ok()
    }
}

impl Drop for AttemptSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_without_a_call_are_forgotten_when_there_are_many() {
        let limits = ShardLimits::default();
        let used = limits.of_shard(0);
        for shard in 1..1024 {
            drop(limits.of_shard(shard));
        }
        assert_eq!(lock(&limits.0.0).len(), 1024);
        assert!(Arc::ptr_eq(&used, &limits.of_shard(0)));
        drop(limits.of_shard(1024));
        assert_eq!(
            lock(&limits.0.0).len(),
            2,
            "the one in use, and the new one"
        );
        assert!(Arc::ptr_eq(&used, &limits.of_shard(0)));
    }
}
