//! The locks with listeners, indexed by the channels that carry their messages.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem::take;
use std::sync::Arc;

use bytes::Bytes;

use super::topic::Topic;

#[derive(Debug, Default)]
pub(super) struct Topics {
    by_channel: HashMap<Bytes, Arc<Topic>>,
    /// Topics whose announcement channel already leads to another topic: some kinds share a
    /// channel, and a name may have been used as both.
    beside: Vec<Arc<Topic>>,
}

impl Topics {
    pub(super) fn is_empty(&self) -> bool {
        self.by_channel.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.by_channel.clear();
        self.beside.clear();
    }

    pub(super) fn get(&self, channel: &Bytes) -> Option<&Arc<Topic>> {
        self.by_channel.get(channel)
    }

    /// The further topics that hear this channel.
    pub(super) fn beside(&self, channel: &Bytes) -> Vec<Arc<Topic>> {
        let others = self.beside.iter();
        let others = others.filter(|topic| topic.channels.announced == *channel);
        others.map(Arc::clone).collect()
    }

    /// Adds a topic whose name is new.
    pub(super) fn insert(&mut self, topic: &Arc<Topic>) {
        let name = topic.channels.name().clone();
        self.by_channel.insert(name, Arc::clone(topic));
        if topic.channels.inbox.is_some() {
            self.announce(Arc::clone(topic));
        }
    }

    fn announce(&mut self, topic: Arc<Topic>) {
        match self.by_channel.entry(topic.channels.announced.clone()) {
            Entry::Vacant(free) => {
                free.insert(topic);
            }
            Entry::Occupied(_) => self.beside.push(topic),
        }
    }

    /// Every topic, once.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Topic>> {
        let all = self.by_channel.iter();
        all.filter(|(name, topic)| *name == topic.channels.name())
            .map(|(_, topic)| topic)
    }

    /// Whether anything besides this list holds the topic.
    pub(super) fn is_in_use(topic: &Arc<Topic>) -> bool {
        // The list holds it by name, and by its announcement channel.
        Arc::strong_count(topic) > 1 + usize::from(topic.channels.inbox.is_some())
    }

    pub(super) fn remove(&mut self, gone: &[Arc<Topic>]) {
        let stays = |topic: &Arc<Topic>| !gone.iter().any(|gone| Arc::ptr_eq(gone, topic));
        self.by_channel.retain(|_, topic| stays(topic));
        // Another topic may take over a channel that became free.
        for topic in take(&mut self.beside).into_iter().filter(stays) {
            self.announce(topic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::LockChannels;

    fn topic(inbox: &'static [u8]) -> Arc<Topic> {
        Arc::new(Topic::of(LockChannels {
            announced: Bytes::from_static(b"releases"),
            inbox: Some(Bytes::from_static(inbox)),
            native: None,
            wakes_all: false,
            plain: false,
        }))
    }

    /// The topics that hear a message on the channel.
    fn told(topics: &Topics) -> Vec<Bytes> {
        let channel = Bytes::from_static(b"releases");
        let first = topics.get(&channel).map(Arc::clone);
        let all = first.into_iter().chain(topics.beside(&channel));
        all.map(|topic| topic.channels.name().clone()).collect()
    }

    #[test]
    fn kinds_that_share_a_channel_all_hear_of_releases() {
        let (mut topics, [one, other]) = (Topics::default(), [topic(b"one"), topic(b"other")]);
        topics.insert(&one);
        topics.insert(&other);
        assert_eq!(told(&topics), ["one", "other"]);
        assert_eq!(topics.all().count(), 2);
        topics.remove(&[Arc::clone(&one)]);
        assert_eq!(
            told(&topics),
            ["other"],
            "the channel led to the one that is gone"
        );
        topics.insert(&one);
        assert_eq!(told(&topics), ["other", "one"]);
        topics.remove(&[one, Arc::clone(&other)]);
        assert!(topics.is_empty() && told(&topics).is_empty());
        assert!(!Topics::is_in_use(&topic(b"one")));
    }

    #[test]
    fn one_that_nobody_else_has_is_not_in_use() {
        let (mut topics, one, other) = (Topics::default(), topic(b"one"), topic(b"other"));
        topics.insert(&one);
        topics.insert(&other);
        assert!(topics.all().all(Topics::is_in_use));
        drop((one, other));
        assert!(!topics.all().any(Topics::is_in_use));
    }
}
