//! Keeps the slot table of a cluster true: on every suspicion, and from time to time.
//!
//! fred tells nothing when a slot with subscriptions moves away: it throws the server's `sunsubscribe`
//! away. Comparing the table with the places of the subscriptions finds that out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use locktopus_protocol::{HostPort, PushEvent, Reply};

use crate::cluster::Shared;
use crate::conn::Conn;
use crate::dial::{Purpose, Target};
use crate::request::Request;
use crate::slots::{self, Range};

/// While shard channels are subscribed, or a node is down.
const OFTEN: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(15);
/// However many suspicions there are, no two surveys come closer than this.
const BREATH: Duration = Duration::from_millis(50);

/// Surveys until the client is closed.
pub(crate) async fn run(shared: Arc<Shared>) {
    let closed = shared.closed.clone();
    closed
        .run_until_cancelled(Box::pin(survey_for_ever(&shared)))
        .await;
    // Whoever waits for a survey must not wait for ever.
    shared.surveys.send_modify(|count| *count += 1);
}

async fn survey_for_ever(shared: &Shared) {
    let mut turn = 1;
    loop {
        tokio::select! {
            () = shared.stale.notified() => {}
            () = tokio::time::sleep(period(shared)) => {}
        }
        if let Err(why) = once(shared, turn).await {
            tracing::debug!(%why, "no node gave the cluster's slot table");
        }
        shared.surveys.send_modify(|count| *count += 1);
        turn += 1;
        tokio::time::sleep(BREATH).await;
    }
}

fn period(shared: &Shared) -> Duration {
    let map = shared.map();
    let all_up = map
        .nodes()
        .iter()
        .all(|node| node.commands().current().is_some());
    if all_up && !shared.placements.any_sharded() {
        SELDOM
    } else {
        OFTEN
    }
}

/// Asks one node after the other, beginning at another one each `turn`, until one knows the slots.
pub(crate) async fn once(shared: &Shared, turn: usize) -> Result<(), String> {
    let nodes = shared.map().nodes().to_vec();
    let count = nodes.len();
    for node in nodes.iter().cycle().skip(turn % count.max(1)).take(count) {
        let Some(conn) = node.commands().current() else {
            continue;
        };
        match ask(shared, &conn, node.address()).await {
            Ok(ranges) => return adopt(shared, &ranges),
            Err(_silent) => node.commands().suspect(),
        }
    }
    let mut why = "no seed address was given".to_owned();
    for seed in &shared.seeds {
        let target = Target::Node(seed.clone());
        let outcome = match shared.dialer.dial(&target, Purpose::Commands, 0).await {
            Ok(conn) => ask(shared, &conn, seed).await,
            Err(failure) => Err(failure),
        };
        match outcome {
            Ok(ranges) => return adopt(shared, &ranges),
            Err(failure) => why = format!("{seed}: {failure}"),
        }
    }
    Err(why)
}

async fn ask(shared: &Shared, conn: &Conn, address: &HostPort) -> Result<Vec<Range>, String> {
    let question = Request::of("CLUSTER", vec![Bytes::from_static(b"SLOTS")]);
    let answer = tokio::time::timeout(shared.dialer.budget().answer(), conn.send(question));
    let reply: Reply = match answer.await {
        Ok(Ok(reply)) => reply,
        Ok(Err(failure)) => return Err(failure.to_string()),
        Err(_elapsed) => return Err("no answer to CLUSTER SLOTS in time".to_owned()),
    };
    slots::parse_slots(&reply, address).ok_or_else(|| "it knows of no slots".to_owned())
}

#[allow(clippy::unnecessary_wraps, reason = "ends a chain of attempts")]
fn adopt(shared: &Shared, ranges: &[Range]) -> Result<(), String> {
    shared.update(|map| map.replaced_by(ranges, |address| shared.make(address)));
    let map = shared.map();
    if shared.placements.any_moved(&map) {
        // The receiver is gone only if nobody listens.
        let _gone = shared.events.send(PushEvent::Disrupted {
            reason: "a hash slot moved",
        });
    }
    Ok(())
}
