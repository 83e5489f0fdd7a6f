//! One lock that is listened to: its channels, its waiters, and what messages mean to them.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use locktopus_core::{FencingToken, WakeGroup};
use tokio::time::Instant;

use crate::client::{Channel, ChannelFlavour};

/// What to listen to for one lock.
#[derive(Debug, Clone)]
pub(crate) struct Listened {
    /// Where releases are announced to everybody.
    pub(crate) announced: Bytes,
    /// Where this process is handed the lock.
    pub(crate) inbox: Option<Bytes>,
    /// Where nobody ever says anything: who listens there can be handed the lock. Tells scripts who of those that hear
    /// announcements are others.
    pub(crate) native: Option<Bytes>,
    /// Whether an announcement lets everybody go, not one.
    pub(crate) all_go: bool,
    /// Whether announcements are plain messages whatever the flavour of the others, because another library sends them.
    pub(crate) plain: bool,
}

impl Listened {
    /// The channel that names the topic: of one kind of lock, of one client.
    pub(super) fn name(&self) -> &Bytes {
        self.inbox.as_ref().unwrap_or(&self.announced)
    }

    pub(super) fn channels(&self, flavour: ChannelFlavour) -> Vec<Channel> {
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

/// Where this process listens, as far as a message tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// Where it should, or the message does not tell.
    Right,
    /// Not on the server whose script said it: that server counted nobody.
    Elsewhere,
}

/// One lock that is listened to.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) listened: Listened,
    pub(super) group: Arc<WakeGroup>,
    /// The generation in which the server last confirmed the subscription; 0 if never.
    pub(super) confirmed: AtomicU64,
    /// Held while a newcomer subscribes, so that a crowd subscribes once.
    pub(super) subscribing: tokio::sync::Mutex<()>,
    /// Since when nobody waits.
    pub(super) idle_since: Mutex<Option<Instant>>,
}

impl Topic {
    pub(super) fn of(listened: Listened) -> Self {
        Self {
            listened,
            group: Arc::default(),
            confirmed: AtomicU64::new(0),
            subscribing: tokio::sync::Mutex::new(()),
            idle_since: Mutex::new(None),
        }
    }

    /// Somebody said something on one of its channels.
    pub(super) fn hear(&self, channel: &Bytes, payload: &[u8]) -> Placed {
        if self.listened.inbox.as_ref() != Some(channel) {
            if self.listened.all_go {
                self.group.wake_all();
            } else {
                self.group.wake_one();
            }
            return Placed::Right;
        }
        // `<token> <owner>`; token 0 says: look; `w` says: somebody else wants the lock; `d` says: passed over, because
        // nobody listens here; `?` says nothing. Anything else did not come from a script of ours.
        let Some(space) = payload.iter().position(|byte| *byte == b' ') else {
            return Placed::Right;
        };
        let (token, owner) = (&payload[..space], &payload[space + 1..]);
        match token {
            b"w" => {
                self.group.want(owner);
                return Placed::Right;
            }
            b"d" => {
                self.group.nudge(owner);
                return Placed::Elsewhere;
            }
            _ => {}
        }
        let token = std::str::from_utf8(token)
            .ok()
            .and_then(|token| token.parse().ok());
        match token.map(FencingToken::new) {
            Some(Some(token)) => self.group.grant(owner, token),
            Some(None) => self.group.nudge(owner),
            None => false,
        };
        Placed::Right
    }
}
