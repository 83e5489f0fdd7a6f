//! From URLs to locks, and the end of them.

use std::time::Duration;

use locktopus::Locktopus;

use crate::config::Config;
use crate::failure::Failure;

/// How long the end waits for releases under way.
const GRACE: Duration = Duration::from_secs(2);

/// Connects to the one server, system of servers, or quorum that is configured.
pub(crate) async fn connect(config: &Config) -> Result<Locktopus, Failure> {
    connect_to(&config.urls()?.value).await
}

/// Connects to these.
pub(crate) async fn connect_to(urls: &[String]) -> Result<Locktopus, Failure> {
    Ok(match urls {
        [url] => locktopus::connect(url).await?,
        urls => locktopus::connect_quorum(urls).await?,
    })
}

/// Waits for releases that are under way.
pub(crate) async fn close(locks: Locktopus) {
    let report = locks.shutdown(GRACE).await;
    if report.abandoned > 0 {
        let left = report.abandoned;
        tracing::warn!(
            "{left} releases were not confirmed; those locks are free when their leases end"
        );
    }
}
