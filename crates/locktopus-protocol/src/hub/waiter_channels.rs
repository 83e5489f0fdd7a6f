//! Channels on which single waiters are called by name, as Redisson's fair lock does.
//!
//! The [hub](crate::hub) subscribes to them only while a waiter stands in a queue with another library's client, and drops
//! them with its next sweep after the waiter has left. After a disruption each waiter looks for itself and asks for its
//! channel again, so nothing has to be subscribed again here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use locktopus_core::{OwnerId, WakeGroup};

#[derive(Debug, Default)]
pub(crate) struct CalledByName {
    channels: Mutex<HashMap<Bytes, Called>>,
}

#[derive(Debug)]
struct Called {
    group: Weak<WakeGroup>,
    owner: OwnerId,
    /// The generation in which the server last confirmed the subscription; 0 if never.
    confirmed: u64,
}

impl CalledByName {
    /// Notes that a waiter of a group is called on a channel. False if that channel is confirmed already.
    pub(crate) fn want(
        &self,
        channel: &Bytes,
        group: &Arc<WakeGroup>,
        owner: &OwnerId,
        generation: u64,
    ) -> bool {
        let mut channels = self.lock();
        let called = channels.entry(channel.clone()).or_insert_with(|| Called {
            group: Arc::downgrade(group),
            owner: owner.clone(),
            confirmed: 0,
        });
        called.confirmed != generation
    }

    /// Notes that the server confirmed a channel. False if nobody wants it any more.
    pub(crate) fn confirmed(&self, channel: &Bytes, generation: u64) -> bool {
        let mut channels = self.lock();
        let called = channels.get_mut(channel);
        called.map(|called| called.confirmed = generation).is_some()
    }

    /// Somebody called on this channel: its waiter looks.
    pub(crate) fn hear(&self, channel: &Bytes) {
        let channels = self.lock();
        if let Some(called) = channels.get(channel)
            && let Some(group) = called.group.upgrade()
        {
            group.nudge(called.owner.expose());
        }
    }

    pub(crate) fn all(&self) -> Vec<Bytes> {
        self.lock().keys().cloned().collect()
    }

    /// Removes the channels of waiters that have left, and returns them.
    pub(crate) fn forget_gone(&self) -> Vec<Bytes> {
        let mut gone = Vec::new();
        self.lock().retain(|channel, called| {
            let group = called.group.upgrade();
            let waits = group.is_some_and(|group| group.awaits(called.owner.expose()));
            if !waits {
                gone.push(channel.clone());
            }
            waits
        });
        gone
    }

    pub(crate) fn forget_all(&self) {
        self.lock().clear();
    }

    /// A panic while one of these short sections runs leaves the data whole, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, HashMap<Bytes, Called>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use locktopus_core::Wake;

    use super::*;

    #[test]
    fn a_channel_is_wanted_until_its_waiter_leaves() {
        let (called, group) = (CalledByName::default(), Arc::<WakeGroup>::default());
        let (ours, channel) = (OwnerId::generate(), Bytes::from_static(b"c:ours"));
        let (mut stream, mut other) = (group.join(()), group.join(()));
        stream.claim(&ours);
        other.claim(&OwnerId::generate());

        assert!(called.want(&channel, &group, &ours, 1));
        assert!(called.want(&channel, &group, &ours, 1), "not confirmed yet");
        assert!(called.confirmed(&channel, 1));
        assert!(!called.want(&channel, &group, &ours, 1));
        assert!(called.want(&channel, &group, &ours, 2), "disrupted since");

        called.hear(&channel);
        assert_eq!(stream.next().now_or_never(), Some(Wake::Resync));
        assert_eq!(other.next().now_or_never(), None, "only the one called");

        assert!(called.forget_gone().is_empty());
        drop(stream);
        assert_eq!(called.forget_gone(), [channel]);
        assert!(called.all().is_empty());
        assert!(!called.confirmed(&Bytes::from_static(b"c:ours"), 2));
    }
}
