//! The records that instances publish about themselves. Each is a key that expires, in a slot of
//! its own, so that no server of a cluster holds all of them.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use locktopus_contract::{Announcement, BackendError, InstanceQuery, InstanceRecord, Instances};

use super::RedisBackend;
use super::context::millis;
use crate::client::{Reply, Route};
use crate::kinds::keys::instance_key;
use crate::layout::slot::key_slot;

/// The most keys read at once: few round trips, but short enough that locks do not wait behind
/// them.
const AT_ONCE: usize = 64;
/// Servers count whole milliseconds.
const MIN_KEEP: Duration = Duration::from_millis(1);

#[async_trait]
impl Instances for RedisBackend {
    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        let key = instance_key(&announcement.namespace, announcement.instance);
        let (key, slot) = (key.as_bytes(), key_slot(key.as_bytes()));
        let (text, keep);
        let words: &[&[u8]] = match &announcement.record {
            Some(record) => {
                text = record.to_text();
                keep = millis(announcement.keep.max(MIN_KEEP));
                &[b"SET", key, text.as_bytes(), b"PX", keep.as_bytes()]
            }
            None => &[b"DEL", key],
        };
        // Running this twice has the same effect as once.
        let executor = &self.contexts.here()?.executor;
        let asked = executor.ask(Route::Slot(slot), words, announcement.deadline);
        asked.await.map(drop)
    }

    async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        let executor = &self.contexts.here()?.executor;
        let one = |instance| async move {
            let key = instance_key(&query.namespace, instance);
            let (key, slot) = (key.as_bytes(), key_slot(key.as_bytes()));
            let words: [&[u8]; 2] = [b"GET", key];
            let asked = executor.ask(Route::Slot(slot), &words, query.deadline);
            asked.await.map(|reply| match reply {
                Reply::Bytes(text) => InstanceRecord::parse(&text),
                _ => None,
            })
        };
        stream::iter(query.instances.iter().copied().map(one))
            .buffered(AT_ONCE)
            .try_collect()
            .await
    }
}
