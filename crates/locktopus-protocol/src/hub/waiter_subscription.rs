//! Listening for those who call single waiters by name.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use locktopus_core::OwnerId;
use tokio::time::timeout;

use super::{Hub, Listened, lock};

impl Hub {
    /// Listens to the channel on which one waiter of a lock is called by name, until that waiter is gone. True if that
    /// is new: then it should look again. False if it is no news, or the waiter does not listen at all, or subscribing
    /// did not work within the time.
    pub(crate) async fn hear_by_name(
        &self,
        listened: &Listened,
        owner: &OwnerId,
        channel: Bytes,
        within: Duration,
    ) -> bool {
        let shared = &self.shared;
        let topic = lock(&shared.topics).get(listened.name()).map(Arc::clone);
        let Some(topic) = topic.filter(|topic| topic.group.awaits(owner.expose())) else {
            return false;
        };
        let generation = shared.generation();
        if !shared
            .called
            .want(&channel, &topic.group, owner, generation)
        {
            return false;
        }
        // As for joining: not to be dropped half-way.
        let shared = Arc::clone(shared);
        let subscribe = tokio::spawn(async move {
            let wanted = [shared.channel(channel.clone())];
            let tried = timeout(shared.call_timeout, shared.client.subscribe(&wanted)).await;
            let done = matches!(tried, Ok(Ok(())));
            if done && !shared.called.confirmed(&wanted[0].name, generation) {
                // Its waiter has left meanwhile, and so has whoever would unsubscribe.
                let _ = timeout(shared.call_timeout, shared.client.unsubscribe(&wanted)).await;
            }
            done
        });
        matches!(timeout(within, subscribe).await, Ok(Ok(true)))
    }
}
