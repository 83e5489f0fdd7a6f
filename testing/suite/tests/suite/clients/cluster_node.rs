//! `redis://` with the address of one node of a cluster.

use std::time::Duration;

use locktopus::{ConnectError, Severity};
use tokio::time::Instant;

use crate::common::{At, LOGIN, close, connect, unique_of};

/// Longer than anything may take here: a call that takes this long waited for a refusal to pass.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) async fn is_found_and_final((place, client): At) -> String {
    let url = format!(
        "redis://{LOGIN}{}?client={client}&timeout=30s",
        place.nodes()[0].addr()
    );
    let locks = connect(&url).await;
    let findings = locks.diagnose().await.unwrap().findings;
    let found = findings.iter().find(|found| found.check == "deployment");
    let found = found.unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!(found.severity, Severity::Danger);
    assert!(found.message.contains("redis-cluster://"), "{found}");
    let refused = locktopus::connect(&*format!("{url}&checks=refuse")).await;
    assert!(
        matches!(refused, Err(ConnectError::Unsafe { .. })),
        "{refused:?}"
    );

    // Every operation in another node's slots fails at once and says what to do.
    let begun = Instant::now();
    let elsewhere = unique_of(3, 2, "elsewhere");
    let mut said = Vec::new();
    let request = locks.lock(&elsewhere);
    said.push(request.clone().acquire().await.map(drop).unwrap_err());
    said.push(request.clone().try_acquire().await.map(drop).unwrap_err());
    let waits = request.clone().wait_at_most(TIMEOUT);
    said.push(waits.acquire().await.map(drop).unwrap_err());
    said.push(request.inspect().await.map(drop).unwrap_err());
    said.push(
        locks
            .fair_lock(&elsewhere)
            .acquire()
            .await
            .map(drop)
            .unwrap_err(),
    );
    for error in &said {
        let text = crate::common::chain(error);
        assert!(text.contains("redis-cluster://"), "{text}");
    }
    let took = begun.elapsed();
    assert!(took < TIMEOUT / 2, "{took:?}");
    close(locks).await;
    found.to_string()
}
