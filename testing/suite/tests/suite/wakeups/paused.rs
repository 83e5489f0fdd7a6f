//! Servers delay their clients, or forget scripts, while clients are queued.

use std::time::Duration;

use locktopus_servers::topology::Deployment;
use tokio::time::{Instant, timeout};

use crate::common::{HANDED, HANDED_LEASE, SOON, close_both, locks_apart, unique};
use crate::wakeups::{At, waiting};

/// The faults of every node while several wait.
pub(crate) const FAULTS: [(&str, &[&str]); 3] = [
    // Shorter than the time limit of a call.
    ("paused", &["CLIENT", "PAUSE", "500", "ALL"]),
    ("writes paused", &["CLIENT", "PAUSE", "500", "WRITE"]),
    ("scripts flushed", &["SCRIPT", "FLUSH"]),
];

const WAITERS: usize = 5;

pub(crate) async fn while_waiting((place, client): At, fault: &[&str]) -> String {
    let (holders, others) = (
        locks_apart(&place, client).await,
        locks_apart(&place, client).await,
    );
    let name = unique("paused");
    let guard = holders.lock(&name).acquire().await.unwrap();
    let waiters: Vec<_> = (0..WAITERS)
        .map(|number| {
            let locks = [&holders, &others][number % 2];
            let request = locks.lock(&name).strategy(HANDED).fixed_lease(HANDED_LEASE);
            tokio::spawn(async move {
                let guard = request.acquire().await.unwrap();
                let token = guard.token().unwrap();
                guard.release().await.unwrap();
                token
            })
        })
        .collect();
    waiting(&others, &name, WAITERS).await;
    everywhere(&place, fault).await;
    let begun = Instant::now();
    let mut tokens = vec![guard.token().unwrap()];
    guard.release().await.unwrap();
    for waiter in waiters {
        let served = timeout(SOON, waiter).await.expect("a waiter is served");
        tokens.push(served.unwrap());
    }
    let took = begun.elapsed();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(
        tokens.len(),
        1 + WAITERS,
        "everybody has a token of his own"
    );
    // Ends the pause for the cases that follow.
    everywhere(&place, &["CLIENT", "UNPAUSE"]).await;
    close_both(holders, others).await;
    assert!(took < SOON - Duration::from_millis(500), "{took:?}");
    format!("{WAITERS} waiters served within {took:.2?}")
}

async fn everywhere(place: &Deployment, command: &[&str]) {
    for node in place.nodes() {
        node.command(command).await.unwrap();
    }
}
