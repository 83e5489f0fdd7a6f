//! How many calls to the backend are under way at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::contract::sync::lock;

/// Calls under way in one shard, where there are many.
const PER_SHARD: usize = 64;
/// Shards without a call under way are removed when there are this many.
const MANY_SHARDS: usize = 1024;
/// Attempts that are sent at once, whatever their shards: more than a server that is far away needs to be kept busy.
const AT_ONCE: usize = 448;

/// Bounds how many calls of a kind are under way at once, so that many of them at once do not flood the backend. Each shard
/// has a limit of its own: calls that wait for a dead node hold up no others.
#[derive(Debug, Default)]
pub(super) struct ShardLimits {
    shards: Mutex<HashMap<u32, Weak<Semaphore>>>,
}

impl ShardLimits {
    pub(super) fn of_shard(&self, shard: u32) -> Arc<Semaphore> {
        let mut shards = lock(&self.shards);
        if let Some(limit) = shards.get(&shard).and_then(Weak::upgrade) {
            return limit;
        }
        if shards.len() >= MANY_SHARDS {
            shards.retain(|_, limit| limit.strong_count() > 0);
        }
        let limit = Arc::new(Semaphore::new(PER_SHARD));
        shards.insert(shard, Arc::downgrade(&limit));
        limit
    }
}

/// Bounds how many attempts are under way at once: each has its command and buffers, several times what a waiter needs, and
/// a process whose tasks all begin to wait at one moment would keep room for all of them for good.
///
/// An attempt costs one number up and down while there are few. Only where there are many does the next one wait for others
/// of its shard, and not for long: it is for whoever asks to say for how long.
#[derive(Debug, Default)]
pub(super) struct AttemptLimits {
    under_way: AtomicUsize,
    shards: ShardLimits,
}

/// An attempt may be under way while it is there.
pub(super) struct Place<'a>(&'a AtomicUsize);

impl AttemptLimits {
    /// A place, if there are few.
    pub(super) fn at_once(&self) -> Option<Place<'_>> {
        let place = Place(&self.under_way);
        let before = self.under_way.fetch_add(1, Ordering::Relaxed);
        (before < AT_ONCE).then_some(place)
    }

    /// Waits for a place among those of a shard.
    pub(super) async fn in_turn(&self, shard: u32) -> Option<OwnedSemaphorePermit> {
        let limit = self.shards.of_shard(shard);
        limit.acquire_owned().await.ok()
    }
}

impl Drop for Place<'_> {
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
        assert_eq!(lock(&limits.shards).len(), 1024);
        assert!(Arc::ptr_eq(&used, &limits.of_shard(0)));
        drop(limits.of_shard(1024));
        assert_eq!(
            lock(&limits.shards).len(),
            2,
            "the one in use, and the new one"
        );
        assert!(Arc::ptr_eq(&used, &limits.of_shard(0)));
    }
}
