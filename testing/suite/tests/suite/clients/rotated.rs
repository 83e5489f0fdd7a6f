//! A password that is rotated, as a cloud's IAM does, while locks are held and waited for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktopus::url::{BackendUrl, Credentials};
use locktopus_servers::rights;
use locktopus_servers::topology::{Deployment, Knobs, Node, TopologyKind};
use tokio::time::Instant;

use crate::common::{LONG, close_both, eventually, plain_url_for, servers_with, unique};

/// Renewed after a third of it.
const LEASE: Duration = Duration::from_secs(6);
const USER: &str = "rotating";

/// Knows the current password.
#[derive(Debug)]
struct Vault {
    current: Mutex<String>,
    asked: AtomicU32,
}

impl Vault {
    fn login(self: &Arc<Self>) -> Credentials {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Credentials::new(USER, self.current.lock().unwrap().clone())
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Invalidates the old password, and disconnects every client that logged in with it.
async fn rotate(place: &Deployment, vault: &Vault, password: &str) {
    password.clone_into(&mut vault.current.lock().unwrap());
    let rule = format!(">{password}");
    for node in place.nodes().iter().chain(place.sentinels()) {
        let change = ["ACL", "SETUSER", USER, "resetpass", &rule];
        node.command(&change).await.unwrap();
    }
    for node in place.nodes().iter().chain(place.sentinels()) {
        node.command(&["CLIENT", "KILL", "USER", USER])
            .await
            .unwrap();
    }
}

async fn listening(node: &Node) -> usize {
    let list = ["CLIENT", "LIST", "TYPE", "pubsub"];
    let list = node.command(&list).await.unwrap().text();
    list.matches(&format!("user={USER} ")).count()
}

pub(crate) async fn locks_outlive_passwords(kind: TopologyKind, client: &'static str) -> String {
    let rules = rights::of_the_suite(kind);
    let knobs = Knobs {
        users: vec![format!("{USER} on >token-one {rules}")],
        sentinel_users: vec![format!("{USER} on >token-one {}", rights::of_sentinels())],
        ..Knobs::default()
    };
    let place = servers_with(kind, knobs).await;
    let vault = Arc::new(Vault {
        current: Mutex::new("token-one".to_owned()),
        asked: AtomicU32::new(0),
    });
    let provided = |text: String| {
        let vault = Arc::clone(&vault);
        let ours = Arc::clone(&vault);
        let url: BackendUrl = text.parse().unwrap();
        let url = url.credentials(move || {
            let login = ours.login();
            async move { Ok(login) }
        });
        let url = url.unwrap();
        if !matches!(kind, TopologyKind::Sentinel { .. }) {
            return url;
        }
        let url = url.sentinel_credentials(move || {
            let login = vault.login();
            async move { Ok(login) }
        });
        url.unwrap()
    };
    let url = || provided(plain_url_for(&place, client));
    let connect =
        || async { locktopus::connect_with(url(), |builder| builder.renewed_lease(LEASE)).await };
    let (ours, theirs) = (connect().await.unwrap(), connect().await.unwrap());
    assert!(!format!("{:?} {ours:?}", url()).contains("token-"));

    let name = unique("rotated");
    let guard = ours.lock(&name).acquire().await.unwrap();
    let waiting = tokio::spawn({
        let request = theirs.lock(&name).wait_at_most(LONG);
        async move { request.acquire().await }
    });
    eventually("somebody waits", LONG, async || {
        let state = ours.lock(&name).inspect().await.unwrap();
        if !state.waiters.is_empty() {
            Ok(())
        } else {
            Err(state)
        }
    })
    .await;

    let before = vault.asked();
    rotate(&place, &vault, "token-two").await;
    let begun = Instant::now();
    // Renewals continue over connections that logged in with the new password.
    let left = guard.lease().remaining();
    eventually("the lease is renewed", LONG, async || {
        guard.ensure_valid().map_err(|error| error.to_string())?;
        let renewed = begun.elapsed() + guard.lease().remaining() > left + LEASE / 4;
        if renewed {
            Ok(())
        } else {
            Err("not yet".to_owned())
        }
    })
    .await;
    assert!(vault.asked() > before, "nobody asked again");
    eventually("messages come again", LONG, async || {
        let mut all = 0;
        for node in place.nodes() {
            all += listening(node).await;
        }
        if all >= 1 { Ok(()) } else { Err(all) }
    })
    .await;
    guard.release().await.unwrap();
    let second = waiting.await.unwrap().unwrap();
    second.release().await.unwrap();

    // Errors of a refused login and of a failing provider contain no secret.
    "wrong-token".clone_into(&mut vault.current.lock().unwrap());
    let refused = connect().await.map(drop).unwrap_err();
    let said = format!("{refused} {refused:?}");
    assert!(
        said.contains("WRONGPASS") || said.contains("assword"),
        "{said}"
    );
    assert!(
        !said.contains("wrong-token") && !said.contains("token-"),
        "{said}"
    );
    let url: BackendUrl = plain_url_for(&place, client).parse().unwrap();
    let url = url.credentials(|| async { Err("the token service is away".into()) });
    let failed = locktopus::connect(url.unwrap())
        .await
        .map(drop)
        .unwrap_err();
    assert!(
        failed.to_string().contains("the token service is away"),
        "{failed}"
    );

    close_both(ours, theirs).await;
    format!("{} logins asked for", vault.asked())
}
