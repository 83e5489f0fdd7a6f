//! Refreshes the slot table of a cluster, periodically and when it may be stale.
//!
//! fred does not report when a slot with subscriptions moves: it discards the server's
//! `sunsubscribe`. Comparing the table with the nodes of the subscriptions reveals that.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use locktopus_protocol::backoff::{Backoff, SETTLED};
use locktopus_protocol::slot_map::{SlotRange, slot_ranges};
use locktopus_protocol::{HostPort, PushEvent};
use tokio::time::Instant;

use super::shared::Shared;
use crate::connection::dial::{Purpose, Target};
use crate::connection::request::Request;

/// The interval while shard channels are subscribed, or a node is down.
const OFTEN: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(15);

/// Refreshes until the client is closed.
pub(crate) async fn run(shared: Arc<Shared>) {
    let closed = shared.closed.clone();
    closed
        .run_until_cancelled(Box::pin(refresh_until_cancelled(&shared)))
        .await;
    // Release the tasks that wait for a refresh.
    shared.refreshes.send_modify(|count| *count += 1);
}

async fn refresh_until_cancelled(shared: &Shared) {
    let mut backoff = Backoff::new();
    loop {
        let quiet = Instant::now();
        tokio::select! {
            () = shared.stale.notified() => {}
            () = tokio::time::sleep(period(shared)) => {}
        }
        match once(shared).await {
            Ok(news) if news || quiet.elapsed() >= SETTLED => backoff.reset(),
            // The pause grows while refreshes find nothing new, however many are requested.
            Ok(_) => {}
            Err(why) => tracing::debug!(%why, "no node gave the cluster's slot table"),
        }
        // Set this before tasks that wait for this refresh can request another one.
        shared.resting.store(true, Ordering::Release);
        shared.refreshes.send_modify(|count| *count += 1);
        tokio::time::sleep(backoff.pause()).await;
        shared.resting.store(false, Ordering::Release);
    }
}

fn period(shared: &Shared) -> Duration {
    let map = shared.map();
    let mut nodes = map.nodes().iter();
    // An empty map: no node has answered yet.
    let all_up = !map.nodes().is_empty() && nodes.all(|node| node.commands().current().is_some());
    if all_up && !shared.placements.any_sharded() {
        SELDOM
    } else {
        OFTEN
    }
}

/// Asks the nodes until one knows the slots. Returns whether the table changed.
pub(crate) async fn once(shared: &Shared) -> Result<bool, String> {
    let known = shared.map();
    let nobody = "no seed address was given".to_owned();
    let ask = |address| ask(shared, address);
    let asked = shared
        .informants
        .ask(known.servers(), &shared.seeds, nobody, ask);
    Ok(adopt(shared, &asked.await?))
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
    let reply = match shared.map().node_at(address) {
        Some(node) => match node.commands().conn().await {
            Ok(conn) => conn.send(question).await,
            Err(unreachable) => Err(unreachable),
        },
        None => {
            let target = Target::Node(address.clone());
            let conn = shared.dialer.dial(&target, Purpose::Commands).await?;
            conn.send(question).await
        }
    };
    let reply = reply.map_err(|failure| failure.to_string())?;
    slot_ranges(&reply, address).ok_or_else(|| "it knows of no slots".to_owned())
}

fn adopt(shared: &Shared, ranges: &[SlotRange]) -> bool {
    let before = shared.map();
    shared.update(|map| map.replaced_by(ranges, |address| shared.make(address)));
    shared.extra_nodes.sweep();
    let map = shared.map();
    if shared.placements.any_moved(&map) {
        // The receiver may be gone.
        let _gone = shared.events.send(PushEvent::Disrupted {
            reason: "a hash slot moved",
        });
    }
    let news = !map.agrees_with(&before);
    if news {
        shared.dialer.note_change();
    }
    news
}
