//! Subscribing to a single waiter's channel.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use locktopus_contract::{OwnerId, lock};
use tokio::time::timeout;

use super::{Hub, LockChannels};

impl Hub {
    /// Subscribes to the channel of one waiter of a lock until that waiter is gone. True if the
    /// subscription is new: the waiter should then check again. False if it existed, the waiter is
    /// gone, or subscribing did not work in time.
    pub(crate) async fn subscribe_waiter(
        &self,
        channels: &LockChannels,
        owner: &OwnerId,
        channel: Bytes,
        within: Duration,
    ) -> bool {
        let shared = &self.shared;
        let topic = lock(&shared.topics).get(channels.name()).map(Arc::clone);
        let Some(topic) = topic.filter(|topic| topic.group.awaits(owner.expose())) else {
            return false;
        };
        let generation = shared.generation();
        if !shared
            .waiter_channels
            .add(&channel, &topic.group, owner, generation)
        {
            return false;
        }
        // A task of its own, as for joining: it must not be dropped half-way.
        let shared = Arc::clone(shared);
        let subscribe = tokio::spawn(async move {
            let wanted = [shared.channel(channel.clone())];
            let tried = timeout(shared.call_timeout, shared.client.subscribe(&wanted)).await;
            let done = matches!(tried, Ok(Ok(())));
            if done
                && !shared
                    .waiter_channels
                    .confirmed(&wanted[0].name, generation)
            {
                // The waiter left meanwhile, so no one else would unsubscribe.
                let _ = timeout(shared.call_timeout, shared.client.unsubscribe(&wanted)).await;
            }
            done
        });
        matches!(timeout(within, subscribe).await, Ok(Ok(true)))
    }
}
