//! One lock with listeners: its channels, its waiters, and what messages mean to them.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use locktopus_contract::{FencingToken, WakeGroup};
use tokio::time::Instant;

use super::joining::Joiners;
use crate::client::{Channel, ChannelFlavour};

/// The channels of one lock.
#[derive(Debug, Clone)]
pub(crate) struct LockChannels {
    /// The channel that announces releases to all clients.
    pub(crate) announced: Bytes,
    /// The channel that brings this process its grants.
    pub(crate) inbox: Option<Bytes>,
    /// Nothing is published here. Its subscribers are the clients that can be granted the lock
    /// directly, so scripts can count how many subscribers of `announced` belong to other
    /// libraries.
    pub(crate) native: Option<Bytes>,
    /// Whether an announcement wakes all waiters instead of one.
    pub(crate) wakes_all: bool,
    /// Whether announcements use plain pub/sub regardless of the flavour, because another library
    /// sends them.
    pub(crate) plain: bool,
}

impl LockChannels {
    /// The channel that names the topic. It is specific to a kind of lock and a client.
    pub(super) fn name(&self) -> &Bytes {
        self.inbox.as_ref().unwrap_or(&self.announced)
    }

    /// The channels, in the order to subscribe to them. Unsubscribe in the reverse order.
    ///
    /// A server may run other commands in between. If a client listened to `announced` but not to
    /// `native`, a release would take it for another library's, and leave the lock to it.
    pub(super) fn list(&self, flavour: ChannelFlavour) -> Vec<Channel> {
        let announced = match self.plain {
            true => ChannelFlavour::Plain,
            false => flavour,
        };
        let own = [self.native.as_ref(), self.inbox.as_ref()];
        let own = own.into_iter().flatten().map(|name| (name, flavour));
        own.chain([(&self.announced, announced)])
            .map(|(name, flavour)| Channel {
                name: name.clone(),
                flavour,
            })
            .collect()
    }
}

/// The action that a message requires of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Nothing,
    /// Give the grant back: no waiter has this owner id.
    Unclaimed,
    /// Subscribe again: the publishing server counted no subscriber.
    WrongServer,
}

/// The token and the owner of a grant, if a message is one.
pub(super) fn grant(payload: &[u8]) -> Option<(FencingToken, &[u8])> {
    let space = payload.iter().position(|byte| *byte == b' ')?;
    let token = std::str::from_utf8(&payload[..space]).ok()?;
    let token = FencingToken::new(token.parse().ok()?)?;
    Some((token, &payload[space + 1..]))
}

/// One lock with listeners.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) channels: LockChannels,
    pub(super) group: Arc<WakeGroup>,
    /// The generation of the server's last confirmation; 0 if never.
    pub(super) confirmed: AtomicU64,
    /// Waiters that wait for the subscription. Many at once share one.
    pub(super) joiners: Joiners,
    /// Since when the topic has had no waiters.
    pub(super) idle_since: Mutex<Option<Instant>>,
}

impl Topic {
    pub(super) fn of(channels: LockChannels) -> Self {
        Self {
            channels,
            group: Arc::default(),
            confirmed: AtomicU64::new(0),
            joiners: Joiners::default(),
            idle_since: Mutex::new(None),
        }
    }

    /// Handles a message on one of its channels.
    pub(super) fn hear(&self, channel: &Bytes, payload: &[u8]) -> Heard {
        if self.channels.inbox.as_ref() != Some(channel) {
            if self.channels.wakes_all {
                self.group.wake_all();
            } else {
                self.group.wake_one();
            }
            return Heard::Nothing;
        }
        // `<token> <owner>` is a grant; with token 0, check again. `w` recalls the lease: another
        // process wants the lock. `d`: passed over, because the server counted no subscriber. `?`
        // has no meaning. Our scripts publish nothing else.
        if let Some((token, owner)) = grant(payload) {
            return match self.group.grant(owner, token) {
                true => Heard::Nothing,
                false => Heard::Unclaimed,
            };
        }
        let space = payload.iter().position(|byte| *byte == b' ');
        let (word, rest) = payload.split_at(space.unwrap_or(0));
        let owner = rest.get(1..).unwrap_or_default();
        match word {
            b"w" => self.group.want(owner),
            b"d" | b"0" => self.group.nudge(owner),
            _ => false,
        };
        match word {
            b"d" => Heard::WrongServer,
            _ => Heard::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A release between the two subscriptions would count the client as another library's.
    #[test]
    fn a_client_is_seen_as_native_before_it_is_seen_at_all() {
        let channels = LockChannels {
            announced: Bytes::from_static(b"announced"),
            inbox: Some(Bytes::from_static(b"inbox")),
            native: Some(Bytes::from_static(b"native")),
            wakes_all: false,
            plain: false,
        };
        let order = channels.list(ChannelFlavour::Sharded);
        let place = |name: &[u8]| order.iter().position(|channel| &channel.name[..] == name);
        assert!(place(b"native") < place(b"announced"), "{order:?}");
        assert_eq!(order.len(), 3);
    }
}
