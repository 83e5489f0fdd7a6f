//! Connections: how they break, how clients reconnect, and how to find them by process and by
//! server.

use crate::event::{Delivery, Event};
use crate::world::{MS, World};

impl World {
    /// Breaks the connections of a client. The client notices, and reconnects to the primary it
    /// finds.
    pub(crate) fn disconnect(&mut self, link: usize, why: &str) {
        self.stop_listening(link);
        let travel = self.travels();
        let to = &mut self.links[link];
        to.epochs = to.epochs.map(|epoch| epoch + 1);
        let (epochs, process) = (to.epochs, to.process);
        self.trace.say(self.now, || {
            format!("p{process} its connections break: {why}")
        });
        self.deliver(link, self.now + travel, Delivery::Broken { epochs });
    }

    /// Looks for the primary soon.
    pub(crate) fn reconnect_soon(&mut self, link: usize, at: u64) {
        let pause = self.travel * 2 + self.rng.below(60 * MS);
        self.at(at.max(self.now) + pause, Event::Connect(link));
    }

    /// A client connects to the primary, if there is one.
    pub(crate) fn connect(&mut self, link: usize) {
        let (closed, group, to) = {
            let link = &self.links[link];
            (link.closed, link.group, link.to)
        };
        if closed || to.is_some() {
            return;
        }
        self.hear_sentinels(link);
        let node = self.primaries[group];
        if !self.nodes[node].is_primary() {
            self.reconnect_soon(link, self.now);
            return;
        }
        let travel = self.travels();
        let stalled = self.links[link].stalled_until;
        self.deliver(
            link,
            self.now.max(stalled) + travel,
            Delivery::Connected { node },
        );
    }

    /// The client asks the sentinels, or they announce a failover.
    pub(crate) fn hear_sentinels(&mut self, link: usize) {
        self.links[link].heard = self.failovers[self.links[link].group];
    }

    /// The client receives no more of its messages.
    pub(crate) fn stop_listening(&mut self, link: usize) {
        let topics = std::mem::take(&mut self.links[link].topics);
        let node = self.links[link].listens_at;
        for topic in topics {
            self.uncount(node, &topic);
        }
    }

    pub(crate) fn uncount(&mut self, node: usize, topic: &crate::link::Topic) {
        if let Some(count) = self.nodes[node].server.listeners.get_mut(topic) {
            *count = count.saturating_sub(1);
        }
    }

    /// The clients that are connected to a server.
    pub(crate) fn links_to(&self, node: usize) -> Vec<usize> {
        let links = self.links.iter().enumerate();
        let connected = links.filter(|(_, link)| link.to == Some(node) && !link.closed);
        connected.map(|(number, _)| number).collect()
    }

    pub(crate) fn links_of(&self, process: usize) -> Vec<usize> {
        let links = self.links.iter().enumerate();
        links
            .filter(|(_, link)| link.process == process)
            .map(|(number, _)| number)
            .collect()
    }
}
