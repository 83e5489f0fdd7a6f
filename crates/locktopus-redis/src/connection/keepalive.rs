//! Detects dead connections that are idle.
//!
//! A closed connection is noticed at once. A frozen server or a silent network cut is not, and a
//! subscription would wait for ever. A primary that became a replica is not noticed either, and
//! subscriptions there are on the wrong server.

use std::time::Duration;

use locktopus_protocol::{ClientError, ROLE_QUESTION, says_replica};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::connection::send::Live;

/// How often to check an idle connection.
const INTERVAL: Duration = Duration::from_secs(2);

/// Why a working connection for subscriptions is given up.
pub(crate) const REPLICA: &str = "the server is a replica";

/// Checks the connection periodically and after each disturbance, until it is dead or on the wrong
/// server.
pub(crate) async fn watch(mut live: Live, limit: Duration, mut disturbances: watch::Receiver<u64>) {
    loop {
        tokio::select! {
            () = sleep(INTERVAL) => {}
            Ok(()) = disturbances.changed() => {}
        }
        if live.health().is_dead() {
            return;
        }
        let right = live
            .health()
            .listener()
            .is_none_or(|listener| listener.still_right(live.health().server()));
        if !right {
            live.health().kill("another server is responsible now");
            return;
        }
        let problem = match timeout(limit, live.send(&[ROLE_QUESTION.as_bytes()])).await {
            Ok(Ok(role)) if says_replica(&role) => REPLICA,
            Ok(Ok(_) | Err(ClientError::Rejected { .. })) => continue,
            Ok(Err(_)) | Err(_) => "the server does not answer",
        };
        live.health().kill(problem);
        return;
    }
}

/// Checks a connection after a caller timed out on it.
pub(crate) async fn check(mut live: Live, limit: Duration) {
    match timeout(limit, live.answers()).await {
        Ok(true) => live.health().end_check(),
        Ok(false) | Err(_) => live.health().kill("the server does not answer"),
    }
}
