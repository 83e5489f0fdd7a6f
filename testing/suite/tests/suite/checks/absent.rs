//! Some or all servers are away when a program connects.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{BackendErrorKind, Executed, LockError, Severity};
use locktopus_servers::topology::{Deployment, TopologyKind};
use tokio::time::Instant;

use crate::checks::At;
use crate::common::{
    LONG, SOON, close_both, connect, eventually, servers, unique, unique_of, url_for,
};

/// How the first primary is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Dead,
    Frozen,
}

pub(crate) const WAYS: [Way; 2] = [Way::Dead, Way::Frozen];

pub(crate) async fn take_away(place: &Deployment, way: Way) {
    let node = &place.nodes()[0];
    match way {
        Way::Dead => node.crash().await.unwrap(),
        Way::Frozen => node.freeze().await.unwrap(),
    }
    // Until the others have given it up, their report about it changes.
    eventually("the others notice", LONG, async || {
        let nodes = place.nodes()[1].command(&["CLUSTER", "NODES"]).await;
        let text = nodes.unwrap().text();
        let port = format!(":{}@", node.addr().port());
        let line = text.lines().find(|line| line.contains(&port)).unwrap();
        line.contains("master,fail ").then_some(()).ok_or(text)
    })
    .await;
}

/// Connects all the same, soon, and can lock on the other primaries.
pub(crate) async fn others_serve((place, client): At, checks: &str, host: &str) -> String {
    let url = url_for(&place, client).replace("127.0.0.1", host);
    let begun = Instant::now();
    let locks = connect(&format!("{url}&checks={checks}")).await;
    let took = begun.elapsed();
    for node in 1..3 {
        let name = unique_of(3, node, "few");
        let guard = locks.lock(&name).wait_at_most(SOON).acquire().await;
        guard.unwrap().release().await.unwrap();
    }
    let lost = locks.lock(unique_of(3, 0, "few")).try_acquire().await;
    let LockError::Backend { source, .. } = lost.unwrap_err() else {
        panic!("nobody serves it");
    };
    let kind = source.kind();
    assert!(
        matches!(
            kind,
            BackendErrorKind::Unavailable | BackendErrorKind::Timeout
        ),
        "{source:?}"
    );
    let findings = locks.diagnose().await.unwrap().findings;
    let away = place.nodes()[0].addr().port().to_string();
    let found = |check| findings.iter().filter(move |found| found.check == check);
    let reach: Vec<_> = found("reach").collect();
    assert!(
        reach.len() == 1 && reach[0].message.contains(&away),
        "{findings:?}"
    );
    assert_eq!(reach[0].severity, Severity::Warning);
    assert_eq!(
        found("probe").chain(found("permission")).count(),
        0,
        "the probe went to a server that is there: {findings:?}"
    );
    let _ = locks.shutdown(Duration::ZERO).await;
    format!("connected after {took:.2?}; {}", reach[0])
}

/// Connects while no server runs; locks work as soon as one does.
pub(crate) async fn begins_without(kind: TopologyKind, client: &'static str) -> String {
    let place = Arc::new(servers(kind).await);
    let all = || place.nodes().iter().chain(place.sentinels());
    for node in all() {
        node.crash().await.unwrap();
    }
    let url = url_for(&place, client);
    let refused = locktopus::connect(&url).await;
    assert!(refused.is_err(), "only if it is asked for");
    let locks = connect(&format!("{url}&connect=lazy")).await;
    let cautious = connect(&format!(
        "{url}&connect=lazy&safety=quarantine&quarantine_max_lease=1s&timeout=300ms"
    ))
    .await;
    let request = locks.lock(unique("lazy"));
    let error = request.clone().try_acquire().await.unwrap_err();
    let LockError::Backend { source, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(source.executed(), Executed::No, "{error:?}");

    for node in all() {
        node.start().await.unwrap();
    }
    let begun = Instant::now();
    let guard = eventually("a lock", LONG, async || {
        request.clone().try_acquire().await.map(Option::unwrap)
    })
    .await;
    let took = begun.elapsed();
    assert!(locks.diagnose().await.is_ok());
    // Subscriptions work as well.
    let waiter = {
        let request = request.clone().wait_at_most(LONG);
        tokio::spawn(async move { request.acquire().await.unwrap() })
    };
    guard.release().await.unwrap();
    waiter.await.unwrap().release().await.unwrap();
    let guard = eventually("a lock after quarantine", LONG, async || {
        let request = cautious
            .lock(unique("lazy"))
            .fixed_lease(Duration::from_secs(1));
        request.wait_at_most(SOON).acquire().await
    })
    .await;
    guard.release().await.unwrap();
    close_both(locks, cautious).await;
    format!("a lock {took:.2?} after the servers were there")
}
