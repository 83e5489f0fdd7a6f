//! Finding out that a connection is dead although nobody uses it.
//!
//! A closed connection announces itself. A server that is frozen, or cut off without a word, does
//! not, and a subscription would wait on it for ever.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::send::Live;

/// How often a quiet connection is tried.
const INTERVAL: Duration = Duration::from_secs(2);

/// Tries the connection now and then until it is found dead.
pub(crate) async fn watch(mut live: Live, limit: Duration) {
    loop {
        sleep(INTERVAL).await;
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
        if !answers_within(&mut live, limit).await {
            live.health().kill("the server does not answer");
            return;
        }
    }
}

/// Checks a connection on which somebody waited in vain.
pub(crate) async fn check(mut live: Live, limit: Duration) {
    if answers_within(&mut live, limit).await {
        live.health().end_check();
    } else {
        live.health().kill("the server does not answer");
    }
}

async fn answers_within(live: &mut Live, limit: Duration) -> bool {
    timeout(limit, live.answers()).await.unwrap_or(false)
}
