//! Refreshes the slot table of a cluster: whenever it may be stale, and periodically.
//!
//! fred tells nothing when a slot with subscriptions moves away: it throws the server's `sunsubscribe`
//! away. Comparing the table with the nodes of the subscriptions finds that out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::select_ok;
use locktopus_protocol::backoff::{Backoff, SETTLED};
use locktopus_protocol::slot_map::{SlotRange, slot_ranges};
use locktopus_protocol::{HostPort, PushEvent, Reply};
use tokio::time::Instant;

use super::shared::Shared;
use crate::connection::conn::Conn;
use crate::connection::dial::{Purpose, Target};
use crate::connection::request::Request;

/// While shard channels are subscribed, or a node is down.
const OFTEN: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(15);
/// Seeds asked at the same time: a frozen one then costs no time.
const ASKED_AT_ONCE: usize = 3;

/// Refreshes until the client is closed.
pub(crate) async fn run(shared: Arc<Shared>) {
    let closed = shared.closed.clone();
    closed
        .run_until_cancelled(Box::pin(refresh_until_cancelled(&shared)))
        .await;
    // Whoever waits for a refresh must not wait for ever.
    shared.refreshes.send_modify(|count| *count += 1);
}

async fn refresh_until_cancelled(shared: &Shared) {
    let mut turn = 1;
    let mut backoff = Backoff::new();
    loop {
        let quiet = Instant::now();
        tokio::select! {
            () = shared.stale.notified() => {}
            () = tokio::time::sleep(period(shared)) => {}
        }
        match once(shared, turn).await {
            Ok(news) if news || quiet.elapsed() >= SETTLED => backoff.reset(),
            // The pause grows while refreshes bring nothing new, however many are asked for.
            Ok(_) => {}
            Err(why) => tracing::debug!(%why, "no node gave the cluster's slot table"),
        }
        // Set before those who wait for this refresh can ask for another one.
        shared.resting.store(true, Ordering::Release);
        shared.refreshes.send_modify(|count| *count += 1);
        turn += 1;
        tokio::time::sleep(backoff.pause()).await;
        shared.resting.store(false, Ordering::Release);
    }
}

fn period(shared: &Shared) -> Duration {
    let map = shared.map();
    let mut nodes = map.nodes().iter();
    // None at all: nobody has answered yet.
    let all_up = !map.nodes().is_empty() && nodes.all(|node| node.commands().current().is_some());
    if all_up && !shared.placements.any_sharded() {
        SELDOM
    } else {
        OFTEN
    }
}

/// Asks one node after the other, beginning at another one each `turn`, until one knows the slots. Says whether
/// that told anything new.
pub(crate) async fn once(shared: &Shared, turn: usize) -> Result<bool, String> {
    let nodes = shared.map().nodes().to_vec();
    let count = nodes.len();
    for node in nodes.iter().cycle().skip(turn % count.max(1)).take(count) {
        let Some(conn) = node.commands().current() else {
            continue;
        };
        match ask(shared, &conn, node.address()).await {
            Ok(ranges) => return Ok(adopt(shared, &ranges)),
            Err(_silent) => node.commands().suspect(),
        }
    }
    let mut why = "no seed address was given".to_owned();
    for some in shared.seeds.chunks(ASKED_AT_ONCE) {
        let asked = some.iter().map(|seed| Box::pin(ask_seed(shared, seed)));
        match select_ok(asked).await {
            Ok((ranges, _slower)) => return Ok(adopt(shared, &ranges)),
            Err(failure) => why = failure,
        }
    }
    Err(why)
}

async fn ask_seed(shared: &Shared, seed: &HostPort) -> Result<Vec<SlotRange>, String> {
    let target = Target::Node(seed.clone());
    let answer = match shared.dialer.dial(&target, Purpose::Commands).await {
        Ok(conn) => ask(shared, &conn, seed).await,
        Err(failure) => Err(failure),
    };
    answer.map_err(|failure| format!("{seed}: {failure}"))
}

async fn ask(shared: &Shared, conn: &Conn, address: &HostPort) -> Result<Vec<SlotRange>, String> {
    let question = Request::of("CLUSTER", vec![Bytes::from_static(b"SLOTS")]);
    let answer = tokio::time::timeout(shared.dialer.budget().answer(), conn.send(question));
    let reply: Reply = match answer.await {
        Ok(Ok(reply)) => reply,
        Ok(Err(failure)) => return Err(failure.to_string()),
        Err(_elapsed) => return Err("no answer to CLUSTER SLOTS in time".to_owned()),
    };
    slot_ranges(&reply, address).ok_or_else(|| "it knows of no slots".to_owned())
}

fn adopt(shared: &Shared, ranges: &[SlotRange]) -> bool {
    let before = shared.map();
    shared.update(|map| map.replaced_by(ranges, |address| shared.make(address)));
    shared.extra_nodes.sweep();
    let map = shared.map();
    if shared.placements.any_moved(&map) {
        // The receiver is gone only if nobody listens.
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
