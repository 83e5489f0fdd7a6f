//! Waiters whose user may not subscribe: they poll rarely and keep their order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use locktopus::Locktopus;
use locktopus_servers::rights;
use locktopus_servers::topology::{Knobs, Node, TopologyKind};
use tokio::time::{Instant, sleep};

use crate::common::{LONG, connect, eventually, plain_url_for, servers_with, unique};

/// Processes that want the lock.
const PEERS: usize = 17;
/// How often each of them acquires it.
const TURNS: usize = 3;

/// The server's counter of a command; 0 if it never ran.
pub(crate) async fn counted(node: &Node, command: &str, what: &str) -> u32 {
    let field = format!("cmdstat_{command}");
    let stats = node.info("commandstats", &field).await.unwrap();
    let mut counts = stats.iter().flat_map(|stats| stats.split(','));
    let count = counts.find_map(|count| count.strip_prefix(what));
    count.map_or(0, |count| count.parse().unwrap())
}

/// All wait behind one holder, and each waits again after its turn. No peer is overtaken.
pub(crate) async fn polls_in_turn(client: &'static str, fair: bool) -> String {
    let kind = TopologyKind::Standalone;
    let rules = rights::of_the_suite(kind);
    let knobs = Knobs {
        users: vec![format!("deaf on >secret {rules} -subscribe")],
        ..Knobs::default()
    };
    let place = servers_with(kind, knobs).await;
    let node = &place.nodes()[0];
    let url = plain_url_for(&place, client) + "&checks=off";
    let deaf = url.replacen("://", "://deaf:secret@", 1);
    let peers = join_all([(); PEERS].map(|()| connect(&deaf))).await;
    let name = unique("deaf");
    let request = |locks: &Locktopus| match fair {
        true => locks.fair_lock(&name),
        false => locks.lock(&name),
    };
    let holder = request(&connect(&url).await).acquire().await.unwrap();
    // By now each process knows that it may not listen.
    let found = join_all(peers.iter().map(Locktopus::diagnose)).await;
    let found = format!("{found:?}");
    assert!(
        found.contains("allow SUBSCRIBE") && found.contains("waiters poll"),
        "{found}"
    );
    let order = Arc::<Mutex<Vec<usize>>>::default();
    let mut waiting = Vec::new();
    for (at, locks) in peers.iter().enumerate() {
        let (wait, order) = (request(locks).wait_at_most(LONG * 2), Arc::clone(&order));
        waiting.push(tokio::spawn(async move {
            for _ in 0..TURNS {
                let guard = wait.clone().acquire().await.unwrap();
                order.lock().unwrap().push(at);
                guard.release().await.unwrap();
            }
        }));
        eventually("a place in the queue", LONG, async || {
            let waiters = request(locks).inspect().await.unwrap().waiters.len();
            (waiters > at).then_some(()).ok_or(waiters)
        })
        .await;
    }
    let scripts = async || counted(node, "evalsha", "calls=").await;
    let (begun, before) = (Instant::now(), scripts().await);
    sleep(Duration::from_secs(2)).await;
    let scripts = scripts().await - before;
    let often = f64::from(scripts) / 17.0 / begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    holder.release().await.unwrap();
    join_all(waiting).await;
    let each = begun.elapsed() / 51;
    let order = order.lock().unwrap().clone();
    let asked = counted(node, "subscribe", "rejected_calls=").await;
    let said = format!(
        "{often:.1} scripts a second from each that waits, {each:?} for a hand-over, asked to subscribe {asked} times, \
         order {order:?}"
    );
    assert_eq!(order.len(), PEERS * TURNS, "{said}");
    assert_eq!(order[..PEERS], (0..PEERS).collect::<Vec<_>>(), "{said}");
    // A peer that comes again waits behind all others.
    for at in 0..PEERS {
        let turns: Vec<_> = (0..order.len()).filter(|turn| order[*turn] == at).collect();
        let longest = turns.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(longest <= Some(PEERS + 1), "{at}: {said}");
    }
    assert!(often <= 8.0, "{said}");
    // Each tries once, and four times more after pauses, for the channels of lock and probe.
    assert!(asked <= 340, "{said}");
    said
}
