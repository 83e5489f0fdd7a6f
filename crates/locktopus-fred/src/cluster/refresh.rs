//! Refreshes the slot table of a cluster, periodically and when it may be stale.
//!
//! fred does not report when a slot with subscriptions moves: it discards the server's
//! `sunsubscribe`. Comparing the table with the nodes of the subscriptions reveals that.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use locktopus_protocol::sentinels::Target;
use locktopus_protocol::slot_map::{SlotRange, slot_ranges};
use locktopus_protocol::{HostPort, PushEvent};

use super::shared::Shared;
use crate::connection::dial::Purpose;
use crate::connection::request::Request;

/// The interval while shard channels are subscribed, or a node is down.
const OFTEN: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(15);

/// Refreshes until the client is closed.
pub(crate) async fn run(shared: Arc<Shared>) {
    let refreshes = shared.map.keep_fresh(|| period(&shared), || once(&shared));
    refreshes.await;
}

fn period(shared: &Shared) -> Duration {
    let map = shared.map.table();
    let mut nodes = map.nodes().iter();
    // An empty map: no node has answered yet.
    let all_up = !map.nodes().is_empty() && nodes.all(|node| node.is_up());
    if all_up && !shared.placements.any_sharded() {
        SELDOM
    } else {
        OFTEN
    }
}

/// Asks the nodes until one knows the slots. Returns whether the table changed.
pub(crate) async fn once(shared: &Shared) -> Result<bool, String> {
    let nobody = "no seed address was given".to_owned();
    let news = shared.map.refresh(nobody, |address| ask(shared, address));
    let news = news.await?;
    if shared.placements.any_moved(&shared.map.table()) {
        // The receiver may be gone.
        let _gone = shared.events.send(PushEvent::Disrupted {
            reason: "a hash slot moved",
        });
    }
    if news {
        shared.dialer.note_change();
    }
    Ok(news)
}

async fn ask(shared: &Shared, address: HostPort) -> Result<Vec<SlotRange>, String> {
    let budget = shared.dialer.budget();
    let answer = tokio::time::timeout(budget.answer_of_anybody(), ranges(shared, &address));
    let silent = || Err("no answer to CLUSTER SLOTS in time".to_owned());
    let answer = answer.await.unwrap_or_else(|_elapsed| {
        shared.suspect(&address);
        silent()
    });
    answer.map_err(|failure| format!("{address}: {failure}"))
}

async fn ranges(shared: &Shared, address: &HostPort) -> Result<Vec<SlotRange>, String> {
    let question = Request::of("CLUSTER", vec![Bytes::from_static(b"SLOTS")]);
    let reply = match shared.map.table().node_at(address) {
        Some(node) => match node.links.commands().conn().await {
            Ok(conn) => conn.send(question).await,
            Err(unreachable) => Err(unreachable),
        },
        None => {
            let target = Target::Server(address.clone());
            let conn = shared.dialer.dial(&target, Purpose::Commands).await?;
            conn.send(question).await
        }
    };
    let reply = reply.map_err(|failure| failure.to_string())?;
    slot_ranges(&reply, address).ok_or_else(|| "it knows of no slots".to_owned())
}
