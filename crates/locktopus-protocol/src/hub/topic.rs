//! One lock that is listened to: its channels, its waiters, and what messages mean to them.

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
    /// Where releases are announced to all clients.
    pub(crate) announced: Bytes,
    /// Where this process receives its grants.
    pub(crate) inbox: Option<Bytes>,
    /// Nothing is ever published there: its subscribers are the clients that can be granted the
    /// lock directly. By their number scripts know how many subscribers of `announced` belong to
    /// other libraries.
    pub(crate) native: Option<Bytes>,
    /// Whether an announcement wakes all waiters, not one.
    pub(crate) wakes_all: bool,
    /// Whether announcements are plain messages whatever the flavour of the others, because another
    /// library sends them.
    pub(crate) plain: bool,
}

impl LockChannels {
    /// The channel that names the topic: of one kind of lock, of one client.
    pub(super) fn name(&self) -> &Bytes {
        self.inbox.as_ref().unwrap_or(&self.announced)
    }

    pub(super) fn list(&self, flavour: ChannelFlavour) -> Vec<Channel> {
        let announced = Channel {
            name: self.announced.clone(),
            flavour: if self.plain {
                ChannelFlavour::Plain
            } else {
                flavour
            },
        };
        let own = [self.inbox.as_ref(), self.native.as_ref()];
        let own = own.into_iter().flatten().map(|name| Channel {
            name: name.clone(),
            flavour,
        });
        std::iter::once(announced).chain(own).collect()
    }
}

/// What the hub must do about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Nothing,
    /// Give the grant back: no waiter has this owner id.
    Unclaimed,
    /// Subscribe anew: the server that published counted no subscriber.
    WrongServer,
}

/// The token and the owner of a grant, if a message is one.
pub(super) fn grant(payload: &[u8]) -> Option<(FencingToken, &[u8])> {
    let space = payload.iter().position(|byte| *byte == b' ')?;
    let token = std::str::from_utf8(&payload[..space]).ok()?;
    let token = FencingToken::new(token.parse().ok()?)?;
    Some((token, &payload[space + 1..]))
}

/// One lock that is listened to.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) channels: LockChannels,
    pub(super) group: Arc<WakeGroup>,
    /// The generation in which the server last confirmed the subscription; 0 if never.
    pub(super) confirmed: AtomicU64,
    /// New waiters that it is subscribed to for. Many at once subscribe once.
    pub(super) joiners: Joiners,
    /// Since when nobody waits.
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

    /// A message on one of its channels.
    pub(super) fn hear(&self, channel: &Bytes, payload: &[u8]) -> Heard {
        if self.channels.inbox.as_ref() != Some(channel) {
            if self.channels.wakes_all {
                self.group.wake_all();
            } else {
                self.group.wake_one();
            }
            return Heard::Nothing;
        }
        // `<token> <owner>`. Token 0: check again.
        // `w`: recall, another process wants the lock. `d`: passed over, because the server counted
        // no subscriber. `?`: no meaning. Anything else was not published by our scripts.
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
