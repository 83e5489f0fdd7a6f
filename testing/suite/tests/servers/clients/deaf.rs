//! Waiters whose user may not subscribe.

use std::time::Duration;

use locktopus_testbed::rights;
use locktopus_testbed::topology::{Knobs, Node, TopologyKind};
use tokio::time::{Instant, sleep};

use crate::common::{LONG, close, connect, plain_url_for, servers_with, unique};

/// Processes that want the lock all the time.
const PEERS: usize = 4;
/// How long they do.
const SPAN: Duration = Duration::from_secs(6);
/// How long each holds it.
const HOLD: Duration = Duration::from_millis(5);

async fn refused(node: &Node) -> u64 {
    let stats = node
        .info("commandstats", "cmdstat_subscribe")
        .await
        .unwrap();
    let stats = stats.unwrap_or_default();
    let count = stats
        .split(',')
        .find_map(|part| part.strip_prefix("rejected_calls="));
    count.map_or(0, |count| count.parse().unwrap())
}

pub(crate) async fn polls_in_turn(client: &'static str) -> String {
    let kind = TopologyKind::Standalone;
    let rules = rights::of_the_suite(kind);
    let knobs = Knobs {
        users: vec![format!("deaf on >secret {rules} -subscribe")],
        ..Knobs::default()
    };
    let place = servers_with(kind, knobs).await;
    let node = &place.nodes()[0];
    let url = plain_url_for(&place, client).replacen("://", "://deaf:secret@", 1) + "&checks=off";
    let name = unique("deaf");
    let mut peers = Vec::new();
    for _ in 0..PEERS {
        peers.push(connect(&url).await);
    }
    let end = Instant::now() + SPAN;
    let turns: Vec<_> = peers
        .iter()
        .map(|locks| {
            let locks = locks.clone();
            let name = name.clone();
            tokio::spawn(async move {
                let (mut turns, mut longest) = (0_u32, Duration::ZERO);
                while Instant::now() < end {
                    let begun = Instant::now();
                    let guard = locks
                        .lock(&name)
                        .wait_at_most(LONG)
                        .acquire()
                        .await
                        .unwrap();
                    longest = longest.max(begun.elapsed());
                    turns += 1;
                    sleep(HOLD).await;
                    guard.release().await.unwrap();
                }
                (turns, longest)
            })
        })
        .collect();
    let mut seen = Vec::new();
    for turn in turns {
        seen.push(turn.await.unwrap());
    }
    let asked = refused(node).await;
    for locks in peers {
        close(locks).await;
    }
    let said = format!("turns and longest wait {seen:?}, asked to subscribe {asked} times");
    println!("{said}");
    // One question, and three more after pauses, for the three channels of the lock, from each.
    assert!(asked <= 4 * 3 * PEERS as u64, "{said}");
    let most = seen.iter().map(|(turns, _)| *turns).max().unwrap();
    let least = seen.iter().map(|(turns, _)| *turns).min().unwrap();
    assert!(least * 3 >= most, "{said}");
    said
}
