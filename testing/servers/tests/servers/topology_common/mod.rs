//! Scenarios for every provider.

use std::time::{Duration, Instant};

use locktopus_servers::topology::{
    Deployment, Node, ProviderKind, Role, ServerImage, Spec, TopologyError, TopologyKind, start,
};

pub(crate) const SOON: Duration = Duration::from_secs(5);
pub(crate) const FAILOVER: Duration = Duration::from_secs(40);

/// Starts a topology and prints how long that took, because the figure is worth watching.
pub(crate) async fn up(
    provider: ProviderKind,
    kind: TopologyKind,
    image: Option<&str>,
) -> Deployment {
    let mut spec = Spec::new(kind);
    if let Some(image) = image {
        spec = spec.with_image(image.parse::<ServerImage>().unwrap());
    }
    let begun = Instant::now();
    let deployment = start(provider, &spec).await.unwrap_or_else(|error| {
        panic!(
            "{provider} {kind} {}: {error}",
            image.unwrap_or("local program")
        )
    });
    println!(
        "{provider} {kind} {} ({}): ready after {:.2?}",
        deployment.label(),
        deployment.server_version(),
        begun.elapsed()
    );
    deployment
}

pub(crate) async fn down(deployment: Deployment) {
    let dir = deployment.run_dir().to_owned();
    let begun = Instant::now();
    deployment.stop().await.unwrap();
    println!("  removed after {:.2?}", begun.elapsed());
    assert!(!dir.exists(), "{} is left", dir.display());
}

/// The requirements of every kind, beyond the readiness that `start` has waited for.
pub(crate) async fn looks_right(deployment: &Deployment) {
    let kind = deployment.kind();
    assert_eq!(
        deployment.nodes().len(),
        usize::from(kind.data_nodes()),
        "{kind}"
    );
    assert!(
        deployment.server_version().contains(' '),
        "{}",
        deployment.server_version()
    );
    assert!(
        deployment
            .nodes()
            .iter()
            .all(|node| node.addr().ip().is_loopback())
    );
    let urls = deployment.urls();
    let (count, scheme) = match kind {
        TopologyKind::Sentinel { sentinels, .. } => {
            assert_eq!(deployment.sentinels().len(), usize::from(sentinels));
            (1, "redis-sentinel://127.0.0.1:")
        }
        TopologyKind::Cluster { .. } => (1, "redis-cluster://127.0.0.1:"),
        TopologyKind::Quorum { nodes } => (usize::from(nodes), "redis://127.0.0.1:"),
        TopologyKind::Tls => (1, "rediss://127.0.0.1:"),
        _ => (1, "redis://127.0.0.1:"),
    };
    assert_eq!(urls.len(), count, "{urls:?}");
    assert!(urls.iter().all(|url| url.starts_with(scheme)), "{urls:?}");
    assert_eq!(deployment.url(), urls[0]);
    for key in ["a", "b", "{c}d"] {
        let writer = deployment.wait_writable(key, SOON).await.unwrap();
        assert_eq!(writer.role().await.unwrap(), Role::Primary);
    }
}

/// Every verb of one server.
pub(crate) async fn verbs(deployment: &Deployment) {
    let node = &deployment.nodes()[0];

    node.freeze().await.unwrap();
    let patience = Duration::from_millis(300);
    let silent = node.command_within(patience, &["PING"]).await;
    assert!(
        matches!(silent, Err(TopologyError::NoAnswer { .. })),
        "{silent:?}"
    );
    assert!(node.is_running().await, "a frozen server is still there");
    node.thaw().await.unwrap();
    assert_eq!(node.command(&["PING"]).await.unwrap().text(), "PONG");

    stalls(node).await;

    let first = node.info("server", "run_id").await.unwrap();
    node.crash().await.unwrap();
    assert!(!node.is_running().await);
    assert!(node.command(&["PING"]).await.is_err());
    let again = node.crash().await;
    assert!(
        matches!(again, Err(TopologyError::WrongState { .. })),
        "{again:?}"
    );
    node.start().await.unwrap();
    let second = node.info("server", "run_id").await.unwrap();
    assert_ne!(first, second);
    let running = node.start().await;
    assert!(
        matches!(running, Err(TopologyError::WrongState { .. })),
        "{running:?}"
    );

    // Frozen servers die and stop like others.
    node.freeze().await.unwrap();
    node.crash().await.unwrap();
    assert!(!node.is_running().await);
    node.start().await.unwrap();
    node.freeze().await.unwrap();
    node.stop(SOON).await.unwrap();
    assert!(!node.is_running().await);
    assert!(!node.last_output().await.is_empty());
    node.restart(SOON).await.unwrap();
    node.restart(SOON).await.unwrap();
    assert_ne!(node.info("server", "run_id").await.unwrap(), second);

    let refused = node.command(&["NONSENSE"]).await;
    assert!(
        matches!(refused, Err(TopologyError::Refused { .. })),
        "{refused:?}"
    );
}

async fn stalls(node: &Node) {
    let span = Duration::from_secs(1);
    let begun = Instant::now();
    // The stall needs a moment to reach the server.
    let silent = async {
        loop {
            match node.command_within(span / 2, &["PING"]).await {
                Ok(_) => tokio::time::sleep(span / 50).await,
                Err(silent) => return silent,
            }
        }
    };
    let silent = tokio::time::timeout(SOON, silent);
    let (stalled, silent) = tokio::join!(node.stall(span), silent);
    stalled.unwrap();
    assert!(
        matches!(silent, Ok(TopologyError::NoAnswer { .. })),
        "{silent:?}"
    );
    assert!(begun.elapsed() >= span);
}

/// The primary dies, another node takes over, and the dead one comes back as a replica.
pub(crate) async fn crash_and_take_over(deployment: &Deployment) {
    let key = "take-over";
    let old = deployment.primary_for(key).await.unwrap();
    let begun = Instant::now();
    old.crash().await.unwrap();
    let new = deployment.wait_writable(key, FAILOVER).await.unwrap();
    println!("  writable again after {:.2?}", begun.elapsed());
    assert_ne!(new.name(), old.name());
    old.start().await.unwrap();
    // Sentinel deliberately waits before it demotes a returned primary.
    let replica = Role::Replica { linked: true };
    deployment.wait_role(old, replica, FAILOVER).await.unwrap();
    println!("  demoted after {:.2?}", begun.elapsed());
    deployment.wait_ready().await.unwrap();
    // The new primary must come back as a primary, not in the role it was first started in.
    if let TopologyKind::Sentinel { .. } = deployment.kind() {
        // A slow restart must not count as another death.
        for sentinel in deployment.sentinels() {
            let patience = [
                "SENTINEL",
                "SET",
                "mymaster",
                "down-after-milliseconds",
                "60000",
            ];
            sentinel.command(&patience).await.unwrap();
        }
        // A longer timeout does not end a failover that had started before, as on a busy machine.
        // From here on, none can start.
        deployment.wait_ready().await.unwrap();
        let promoted = deployment.primary_for(key).await.unwrap();
        promoted.restart(SOON).await.unwrap();
        assert_eq!(promoted.role().await.unwrap(), Role::Primary);
    }
}

/// The primary freezes, another node takes over, and the thawed one steps down.
pub(crate) async fn freeze_and_take_over(deployment: &Deployment) {
    let key = "freezing";
    let old = deployment.primary_for(key).await.unwrap();
    old.freeze().await.unwrap();
    let new = deployment.wait_writable(key, FAILOVER).await.unwrap();
    assert_ne!(new.name(), old.name());
    old.thaw().await.unwrap();
    let replica = Role::Replica { linked: true };
    deployment.wait_role(old, replica, FAILOVER).await.unwrap();
    assert_eq!(
        deployment.primary_for(key).await.unwrap().name(),
        new.name()
    );
}
