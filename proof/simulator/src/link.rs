//! The connections of one client, as seen by its process and by the network.

use std::collections::{BTreeMap, BTreeSet};

use locktopus_protocol::{Channel, ChannelFlavour, PushEvent};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use crate::event::{Answers, Delivery};

/// Whether a channel is sharded, and its name: servers count listeners by this.
pub(crate) type Topic = (bool, Vec<u8>);

/// How servers identify a channel when they count its listeners.
pub(crate) fn topic(channel: &Channel) -> Topic {
    (
        channel.flavour == ChannelFlavour::Sharded,
        channel.name.to_vec(),
    )
}

/// One client of one group of servers.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) process: usize,
    /// The servers that it may connect to: one, or a primary and its replicas.
    pub(crate) group: usize,
    /// The server it is connected to, if any.
    pub(crate) to: Option<usize>,
    /// How many times each connection was replaced.
    pub(crate) epochs: [u64; 3],
    /// Which of them are being checked after a timeout.
    pub(crate) checked: [Option<u64>; 3],
    pub(crate) generation: u64,
    /// The newest epoch that it heard from the sentinels.
    pub(crate) heard: u64,
    pub(crate) closed: bool,
    /// Until when nothing arrives in either direction.
    pub(crate) stalled_until: u64,
    /// When the last message on each connection arrives, there and back: they keep their order.
    pub(crate) busy_until: [[u64; 2]; 3],
    /// Calls without an answer yet.
    pub(crate) pending: BTreeMap<u64, (usize, Answers)>,
    /// Its subscriptions, and the server that has them.
    pub(crate) topics: BTreeSet<Topic>,
    pub(crate) listens_at: usize,
    pub(crate) events: UnboundedSender<PushEvent>,
    /// Counts the times after which another server may answer its client.
    pub(crate) changes: watch::Sender<u64>,
    /// Deliveries to the process, by time and order.
    pub(crate) inbox: BTreeMap<(u64, u64), Delivery>,
}

impl Link {
    pub(crate) fn new(
        process: usize,
        group: usize,
        events: UnboundedSender<PushEvent>,
        changes: watch::Sender<u64>,
    ) -> Self {
        Self {
            process,
            group,
            to: None,
            epochs: [0; 3],
            checked: [None; 3],
            generation: 0,
            heard: 0,
            closed: false,
            stalled_until: 0,
            busy_until: [[0; 2]; 3],
            pending: BTreeMap::new(),
            topics: BTreeSet::new(),
            listens_at: 0,
            events,
            changes,
            inbox: BTreeMap::new(),
        }
    }

    /// A connection was lost or given up.
    pub(crate) fn note_change(&mut self) {
        self.generation += 1;
        self.changes.send_modify(|count| *count += 1);
    }

    /// When a message with this travel time arrives, on a connection that keeps its order.
    pub(crate) fn arrival(&mut self, connection: usize, back: bool, sent: u64, travel: u64) -> u64 {
        let busy = &mut self.busy_until[connection][usize::from(back)];
        // Messages that a stalled network held back arrive in a burst.
        let at = (sent.max(self.stalled_until) + travel).max(*busy + 1);
        *busy = at;
        at
    }

    /// Drops the calls of connections that are gone: they are never answered.
    pub(crate) fn forget_calls(&mut self, of: &[usize]) {
        self.pending
            .retain(|_, (connection, _)| !of.contains(connection));
    }
}
