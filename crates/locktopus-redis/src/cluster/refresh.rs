//! Refreshes the slot map by asking the nodes.

use std::sync::atomic::Ordering;

use locktopus_protocol::slot_map::{Redirect, SlotRange, slot_ranges};
use locktopus_protocol::{ClientError, HostPort};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Cluster, send};

impl Cluster {
    /// Refreshes the map if it is marked as stale. Returns whether it changed. Waits for a refresh
    /// in progress, which may learn a better node to ask.
    pub(crate) async fn freshen(&self) -> bool {
        let _turn = self.refreshing.lock().await;
        if !self.stale.swap(false, Ordering::AcqRel) {
            return false;
        }
        self.refresh().await.unwrap_or_else(|error| {
            self.stale.store(true, Ordering::Release);
            tracing::debug!(%error, "the slot map could not be refreshed");
            false
        })
    }

    /// Counts events after which a node may no longer be right for its channels.
    pub(crate) fn disturbances(&self) -> watch::Receiver<u64> {
        self.disturbances.subscribe()
    }

    /// Waits until a refresh is requested.
    pub(crate) async fn refresh_wanted(&self) {
        self.wanted.notified().await;
    }

    /// Waits until a node reports that slots have moved, which calls for a refresh at once.
    pub(crate) async fn redirected(&self) {
        self.redirected.notified().await;
    }

    /// Notes a refusal that names a better node.
    pub(crate) fn moved(&self, message: &str, refused: &HostPort) {
        if let Some(better) = Redirect::parse(message, refused) {
            self.informants.prefer(better.node);
        }
        self.mark_stale();
        self.redirected.notify_one();
    }

    /// Replaces the map by what a node answers now. Returns whether it differs.
    pub(crate) async fn refresh(&self) -> Result<bool, ClientError> {
        let nobody = ClientError::NotSent("no cluster node is known".to_owned());
        let known = self.table();
        let asked = self
            .informants
            .ask(known.servers(), &self.seeds, nobody, |server| {
                self.ask(server)
            });
        let ranges = asked.await?;
        Ok(self.adopt(&ranges))
    }

    async fn ask(&self, server: HostPort) -> Result<Vec<SlotRange>, ClientError> {
        let link = self.link_to(&server);
        let Ok(answer) = timeout(
            self.dialer.budget().answer_of_anybody(),
            send(&link, &[b"CLUSTER", b"SLOTS"], false),
        )
        .await
        else {
            link.suspect();
            return Err(ClientError::NotSent(format!(
                "{server} does not tell the slot map"
            )));
        };
        slot_ranges(&answer?, &server).ok_or_else(|| {
            ClientError::NotSent(format!("{server} knows no cluster node with slots"))
        })
    }
}
