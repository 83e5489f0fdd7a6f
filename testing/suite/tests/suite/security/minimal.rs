//! Removes one right at a time: something must fail without it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use locktopus::{BackendErrorKind, LockKind, LockName, LockTarget};
use locktopus_servers::rights::{self, PARTS, Part, rules};
use locktopus_servers::topology::{Deployment, TopologyKind};
use tokio::time::{Instant, timeout};

use crate::common::{CLIENTS, SOON};
use crate::security::acl::{connect_apart, url_of};
use crate::security::operations;

/// Rights whose absence shows only later. Clients check connections after idle times, and
/// unsubscribe channels without waiters. (fred needs PING at once for plain subscriptions.) Slots
/// move rarely: `wakeups/moving.rs` logs in with the same rights and needs `+asking`.
const FELT_LATER: [&str; 4] = ["+ping", "+unsubscribe", "+sunsubscribe", "+asking"];

/// The rights of this part, beyond what every user needs.
pub(crate) async fn nothing_to_spare(place: Arc<Deployment>, part: &'static Part) -> String {
    let all = rights::all(place.kind());
    let mut rights = part.words_on(place.kind());
    if part.what != PARTS[0].what {
        let everybodys = PARTS[0].words();
        rights.retain(|right| !everybodys.contains(right));
    }
    if part.what == "latches" && matches!(place.kind(), TopologyKind::Cluster { .. }) {
        // A cluster has no latches whose names contain braces.
        rights.retain(|right| !right.ends_with(":app:*"));
    }
    let mut spare = Vec::new();
    for (turn, right) in rights.iter().enumerate() {
        // The names of scripts and keys do not depend on the client.
        let clients = match right.starts_with('+') {
            true => &CLIENTS[..],
            false => &CLIENTS[turn % 2..=turn % 2],
        };
        let less: Vec<_> = all.iter().filter(|word| *word != right).cloned().collect();
        let less = rules(&less);
        let missed = clients
            .iter()
            .map(|client| is_missed(&place, client, part, right, &less));
        for (client, missed) in clients.iter().zip(join_all(missed).await) {
            if !missed && !FELT_LATER.contains(&right.as_str()) {
                spare.push(format!("{right} is not missed by {client}"));
            }
        }
    }
    assert!(spare.is_empty(), "{}: {spare:?}", part.what);
    format!("{} rights are needed", rights.len())
}

async fn is_missed(
    place: &Deployment,
    client: &str,
    part: &Part,
    right: &str,
    rules: &str,
) -> bool {
    let user = format!("less-{client}-{}", part.what.replace(' ', "-"));
    let start = ["ACL", "SETUSER", &user, "reset", "on", ">secret"];
    let words: Vec<_> = start.into_iter().chain(rules.split(' ')).collect();
    for node in place.nodes() {
        node.command(&words).await.unwrap();
        if right == "+eval" {
            // Needed only for a script that the server does not know.
            node.command(&["SCRIPT", "FLUSH"]).await.unwrap();
        }
    }
    let url = url_of(place, client, &user);
    if right.starts_with('&') {
        return cannot_listen(&url, part).await;
    }
    let Ok(locks) = connect_apart(&format!("{url}&checks=refuse")).await else {
        return true;
    };
    let done = timeout(SOON, Box::pin(operations::of(part.what, &locks, &url))).await;
    let _ = locks.shutdown(Duration::ZERO).await;
    !matches!(done, Ok(Ok(())))
}

/// Without channels locks still work, only slower, so this checks listening itself.
async fn cannot_listen(url: &str, part: &Part) -> bool {
    let backend = locktopus::connect_backend(&format!("{url}&checks=off"))
        .await
        .unwrap();
    let kind = match part.what {
        "locks" => LockKind::Reentrant,
        "mutexes" => LockKind::Mutex(Arc::default()),
        "read-write locks" => LockKind::Read,
        "semaphores" => LockKind::Semaphore,
        "latches" => LockKind::Latch,
        other => panic!("{other} have no channels"),
    };
    let mut denied = false;
    for name in ["app:listen", "app:{listen}-braced"] {
        let target = LockTarget::new(LockName::new(name).unwrap(), kind.clone());
        if let Err(error) = backend.subscribe(&target, Instant::now() + SOON).await {
            assert_eq!(error.kind(), BackendErrorKind::Denied, "{error}");
            denied = true;
        }
    }
    backend.close().await;
    denied
}
