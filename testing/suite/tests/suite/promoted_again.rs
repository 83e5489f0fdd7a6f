//! Sentinels replace a primary, and promote it again before they make it a replica. It has its old
//! history, and lacks the grants and extensions of the primary in between.

use crate::common;

use std::time::Duration;

use common::{CLIENTS, LONG, close, connect, eventually, servers_with, unique, url, url_for};
use locktopus_servers::topology::{Deployment, Knobs, Node, Role, TopologyKind};
use tokio::time::Instant;

const PLACE: TopologyKind = TopologyKind::Sentinel {
    replicas: 2,
    sentinels: 3,
};

/// The time without grants; extensions last as long.
const LONGEST: Duration = Duration::from_secs(12);
/// Ends on the old primary long before the extensions on the next one do.
const LEASE: Duration = Duration::from_secs(6);

/// Fails until the first sentinel sees this server and so may promote it.
async fn is_seen(place: &Deployment, node: &Node) -> Result<(), String> {
    let ask = ["SENTINEL", "REPLICAS", place.master_name()];
    let replicas = place.sentinels()[0].command(&ask).await.unwrap();
    let port = node.addr().port().to_string();
    let states: Vec<Vec<String>> = replicas
        .items()
        .iter()
        .map(|fields| fields.items().iter().map(|field| field.text()).collect())
        .collect();
    let of = |state: &[String], what: &str| {
        let at = state.iter().position(|field| field == what).unwrap();
        state[at + 1].clone()
    };
    let found = states.iter().find(|state| of(state, "port") == port);
    match found.map(|state| of(state, "flags")) {
        Some(flags) if !flags.contains("down") && !flags.contains("disconnected") => Ok(()),
        flags => Err(format!("{flags:?}")),
    }
}

async fn nothing_is_granted_twice(client: &str, place: &Deployment) {
    let options = format!(
        "safety=quarantine&quarantine_max_lease={}s",
        LONGEST.as_secs()
    );
    let url = url(&url_for(place, client), &options);
    let (holder, other) = (connect(&url).await, connect(&url).await);
    let name = unique("again");
    let first = place.primary().await.unwrap();
    let [next, never] = place
        .nodes()
        .iter()
        .filter(|node| node.addr() != first.addr())
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    // Only one of the two others may be promoted, so that the first one comes next.
    let priority = ["CONFIG", "SET", "replica-priority"];
    for (node, value) in [(first, "100"), (next, "100"), (never, "0")] {
        node.command(&[&priority[..], &[value]].concat())
            .await
            .unwrap();
    }
    let request = holder.lock(&name).fixed_lease(LEASE);
    let guard = request.acquire().await.unwrap();
    let begun = Instant::now();
    let before = first.command(&["INFO", "replication"]).await.unwrap();
    first.freeze().await.unwrap();
    place.wait_role(next, Role::Primary, LONG).await.unwrap();
    // The first one is frozen, and executes later what it is sent now.
    eventually("the holder to follow", LONG, async || {
        let request = holder.lock(unique("asked")).fixed_lease(LEASE);
        request.try_acquire().await.map(drop)
    })
    .await;
    eventually("an extension by the next primary", LEASE, async || {
        guard.extend(LONGEST).await
    })
    .await;
    let extended = Instant::now();
    first.thaw().await.unwrap();
    eventually("the sentinels to see the first one", LONG, async || {
        is_seen(place, first).await
    })
    .await;
    let frozen = Instant::now();
    next.freeze().await.unwrap();
    let again = eventually("a grant", LONG, async || {
        let request = other.lock(&name).fixed_lease(LEASE);
        match request.try_acquire().await {
            Ok(Some(guard)) => Ok(guard),
            Ok(None) => Err("it is not free".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
    let (until, now) = (guard.valid_until(), Instant::now());
    println!(
        "      {client}: extended {:?} after the grant, {:?} after the second failover; the holder believed until {:?} before it",
        extended - begun,
        now - frozen,
        now.saturating_duration_since(until)
    );
    next.thaw().await.unwrap();
    assert!(
        until <= now,
        "{client}: granted while its holder believes in it for {:?}",
        until - now
    );
    // It must be the case under test: promoted with its old history.
    let history = |info: &str| {
        let mut lines = info.lines();
        lines
            .find_map(|line| line.strip_prefix("master_replid:"))
            .unwrap()
            .trim()
            .to_owned()
    };
    let after = first.command(&["INFO", "replication"]).await.unwrap();
    assert_eq!(history(&after.text()), history(&before.text()));
    assert_eq!(first.role().await.unwrap(), Role::Primary);
    again.release().await.unwrap();
    let _lost = guard.release().await;
    for locks in [holder, other] {
        close(locks).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_primary_in_between_extended_is_not_granted() {
    let knobs = Knobs {
        down_after_ms: 500,
        failover_timeout_ms: 1_000,
        extra_args: ["--min-replicas-to-write", "1"].map(str::to_owned).to_vec(),
        ..Knobs::default()
    };
    let places = [
        servers_with(PLACE, knobs.clone()).await,
        servers_with(PLACE, knobs).await,
    ];
    let [one, other] = CLIENTS;
    tokio::join!(
        nothing_is_granted_twice(one, &places[0]),
        nothing_is_granted_twice(other, &places[1]),
    );
}
