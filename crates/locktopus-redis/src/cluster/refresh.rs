//! Asking the nodes of a cluster which of them serves which slot.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use futures_util::future::select_ok;
use locktopus_protocol::slot_map::{Redirect, slot_ranges};
use locktopus_protocol::{ClientError, HostPort};
use tokio::sync::watch;
use tokio::time::timeout;

use super::slots::SlotMap;
use super::{Cluster, send};
use crate::connection::sync::lock;

/// Nodes asked for their map at the same time: a frozen one then costs no time.
const ASKED_AT_ONCE: usize = 3;

impl Cluster {
    /// Refreshes the map if something happened that makes it doubtful; whether that told anything new. Waits for a
    /// refresh that is under way, which may know a better node to ask than a second one would.
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

    /// Counts events after which a node may not be the right one for its channels any more.
    pub(crate) fn disturbances(&self) -> watch::Receiver<u64> {
        self.disturbances.subscribe()
    }

    /// Waits until somebody wants the map refreshed.
    pub(crate) async fn refresh_wanted(&self) {
        self.wanted.notified().await;
    }

    /// Waits until a node says that slots have moved, which is worth a look at once.
    pub(crate) async fn redirected(&self) {
        self.redirected.notified().await;
    }

    /// A refusal that names a better node.
    pub(crate) fn moved(&self, message: &str, refused: &HostPort) {
        if let Some(better) = Redirect::parse(message, refused) {
            lock(&self.refresh_hints).better = Some(better.node);
        }
        self.mark_stale();
        self.redirected.notify_one();
    }

    /// Replaces the map by what some node answers now; whether it is another one.
    pub(crate) async fn refresh(&self) -> Result<bool, ClientError> {
        let map = self.current_map().await?;
        let news = self.table().map != map;
        self.adopt(map);
        Ok(news)
    }

    async fn current_map(&self) -> Result<SlotMap, ClientError> {
        let refresh_hints = std::mem::take(&mut *lock(&self.refresh_hints));
        let mut problem = ClientError::NotSent("no cluster node is known".to_owned());
        if let Some(better) = &refresh_hints.better {
            match self.ask(better).await {
                Ok(map) => return Ok(map),
                Err(error) => problem = error,
            }
        }
        for some in self
            .candidates(&refresh_hints.doubtful)
            .chunks(ASKED_AT_ONCE)
        {
            match select_ok(some.iter().map(|server| Box::pin(self.ask(server)))).await {
                Ok((map, _)) => return Ok(map),
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }

    /// Whom to ask for the map: every known node, the doubtful ones last, and not always the same
    /// one first, because a node that was cut off answers quickly and wrongly.
    fn candidates(&self, doubtful: &HashSet<HostPort>) -> Vec<HostPort> {
        let mut nodes = self.table().map.primaries().to_vec();
        for seed in &self.seeds {
            if !nodes.contains(seed) {
                nodes.push(seed.clone());
            }
        }
        if !nodes.is_empty() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % nodes.len();
            nodes.rotate_left(turn);
        }
        nodes.sort_by_key(|node| doubtful.contains(node));
        nodes
    }

    async fn ask(&self, server: &HostPort) -> Result<SlotMap, ClientError> {
        let link = self.link_to(server);
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
        let ranges = slot_ranges(&answer?, server);
        ranges.map(SlotMap::new).ok_or_else(|| {
            ClientError::NotSent(format!("{server} knows no cluster node with slots"))
        })
    }
}
