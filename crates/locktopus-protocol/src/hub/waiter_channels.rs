//! The channels of single waiters. Redisson's fair lock wakes each waiter on its own channel.
//!
//! The [hub](crate::hub) subscribes to such a channel only while its waiter is queued together with
//! another library's client, and unsubscribes at the next sweep after the waiter has left. After a
//! disruption each waiter checks for itself and requests its channel again, so the hub does not
//! resubscribe here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use locktopus_contract::{OwnerId, WakeGroup, lock};

#[derive(Debug, Default)]
pub(crate) struct WaiterChannels {
    channels: Mutex<HashMap<Bytes, WaiterChannel>>,
}

#[derive(Debug)]
struct WaiterChannel {
    group: Weak<WakeGroup>,
    owner: OwnerId,
    /// The generation of the server's last confirmation; 0 if never.
    confirmed: u64,
}

impl WaiterChannels {
    /// Adds the channel of a waiter. False if it is already confirmed.
    pub(crate) fn add(
        &self,
        channel: &Bytes,
        group: &Arc<WakeGroup>,
        owner: &OwnerId,
        generation: u64,
    ) -> bool {
        let mut channels = lock(&self.channels);
        let waiter = channels
            .entry(channel.clone())
            .or_insert_with(|| WaiterChannel {
                group: Arc::downgrade(group),
                owner: owner.clone(),
                confirmed: 0,
            });
        waiter.confirmed != generation
    }

    /// Notes that the server confirmed a channel. False if its waiter has left.
    pub(crate) fn confirmed(&self, channel: &Bytes, generation: u64) -> bool {
        let mut channels = lock(&self.channels);
        let waiter = channels.get_mut(channel);
        waiter.map(|waiter| waiter.confirmed = generation).is_some()
    }

    /// Handles a message on this channel: its waiter checks for itself.
    pub(crate) fn hear(&self, channel: &Bytes) {
        let channels = lock(&self.channels);
        if let Some(waiter) = channels.get(channel)
            && let Some(group) = waiter.group.upgrade()
        {
            group.nudge(waiter.owner.expose());
        }
    }

    pub(crate) fn all(&self) -> Vec<Bytes> {
        lock(&self.channels).keys().cloned().collect()
    }

    /// Removes the channels of waiters that have left, and returns them.
    pub(crate) fn forget_gone(&self) -> Vec<Bytes> {
        let mut gone = Vec::new();
        lock(&self.channels).retain(|channel, waiter| {
            let group = waiter.group.upgrade();
            let waits = group.is_some_and(|group| group.awaits(waiter.owner.expose()));
            if !waits {
                gone.push(channel.clone());
            }
            waits
        });
        gone
    }

    pub(crate) fn forget_all(&self) {
        lock(&self.channels).clear();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use locktopus_contract::Wake;

    use super::*;

    #[test]
    fn a_channel_is_wanted_until_its_waiter_leaves() {
        let (channels, group) = (WaiterChannels::default(), Arc::<WakeGroup>::default());
        let (ours, channel) = (OwnerId::generate(), Bytes::from_static(b"c:ours"));
        let (mut stream, mut other) = (group.join(()), group.join(()));
        stream.claim(&ours);
        other.claim(&OwnerId::generate());

        assert!(channels.add(&channel, &group, &ours, 1));
        assert!(
            channels.add(&channel, &group, &ours, 1),
            "not confirmed yet"
        );
        assert!(channels.confirmed(&channel, 1));
        assert!(!channels.add(&channel, &group, &ours, 1));
        assert!(channels.add(&channel, &group, &ours, 2), "disrupted since");

        channels.hear(&channel);
        assert_eq!(stream.next().now_or_never(), Some(Wake::Resync));
        assert_eq!(
            other.next().now_or_never(),
            None,
            "only the waiter of the channel"
        );

        assert!(channels.forget_gone().is_empty());
        drop(stream);
        assert_eq!(channels.forget_gone(), [channel]);
        assert!(channels.all().is_empty());
        assert!(!channels.confirmed(&Bytes::from_static(b"c:ours"), 2));
    }
}
