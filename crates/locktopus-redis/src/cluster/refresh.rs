//! Refreshes the slot map by asking the nodes.

use std::time::Duration;

use locktopus_protocol::slot_map::{Redirect, SlotRange, slot_ranges};
use locktopus_protocol::{ClientError, HostPort};
use tokio::time::timeout;

use super::Cluster;

/// The interval for an idle client: one that only subscribes gets no redirects.
const PERIOD: Duration = Duration::from_secs(30);

impl Cluster {
    /// Refreshes the map until the client is closed.
    pub(crate) async fn keep_fresh(&self) {
        self.map.keep_fresh(|| PERIOD, || self.refresh()).await;
    }

    /// Applies a refusal that names a better node, and requests a refresh of the rest of the map.
    pub(crate) fn moved(&self, message: &str, refused: &HostPort) {
        match Redirect::parse(message, refused) {
            Some(to) => {
                self.map.moved(&to);
                self.dialer.note_change();
            }
            None => self.map.mark_stale(),
        }
    }

    /// Replaces the map by what a node answers now. Returns whether it differs.
    pub(crate) async fn refresh(&self) -> Result<bool, ClientError> {
        let nobody = ClientError::NotSent("no cluster node is known".to_owned());
        let news = self.map.refresh(nobody, |server| self.ask(server)).await?;
        if news {
            self.dialer.note_change();
        }
        self.disturbances.send_modify(|count| *count += 1);
        Ok(news)
    }

    async fn ask(&self, server: HostPort) -> Result<Vec<SlotRange>, ClientError> {
        let (node, limit) = (self.node(&server), self.dialer.budget().answer_of_anybody());
        let asked = node.send(&[b"CLUSTER", b"SLOTS"], false);
        let Ok(answer) = timeout(limit, asked).await else {
            node.link.suspect();
            return Err(ClientError::NotSent(format!(
                "{server} does not tell the slot map"
            )));
        };
        slot_ranges(&answer?, &server).ok_or_else(|| {
            ClientError::NotSent(format!("{server} knows no cluster node with slots"))
        })
    }
}
