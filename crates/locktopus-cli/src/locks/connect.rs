//! From URLs to locks, and the end of them.

use std::time::Duration;

use locktopus::{Label, Locktopus, LocktopusBuilder};

use crate::config::Config;
use crate::failure::Failure;

/// How long the end waits for releases under way.
const GRACE: Duration = Duration::from_secs(2);

/// Connects to the one server, system of servers, or quorum that is configured, to look at locks: under no name.
pub(crate) async fn connect(config: &Config) -> Result<Locktopus, Failure> {
    connect_with(&config.urls()?.value, LocktopusBuilder::without_label).await
}

/// The same, to hold locks: under this label, or the one of the URL.
pub(crate) async fn connect_as(
    config: &Config,
    label: Option<Label>,
) -> Result<Locktopus, Failure> {
    connect_with(&config.urls()?.value, |builder| match label {
        Some(label) => builder.label(label),
        None => builder,
    })
    .await
}

/// Connects to these, under no name.
pub(crate) async fn connect_to(urls: &[String]) -> Result<Locktopus, Failure> {
    connect_with(urls, LocktopusBuilder::without_label).await
}

async fn connect_with(
    urls: &[String],
    configure: impl FnOnce(LocktopusBuilder) -> LocktopusBuilder,
) -> Result<Locktopus, Failure> {
    Ok(match urls {
        [url] => locktopus::connect_with(url, configure).await?,
        urls => locktopus::connect_quorum_with(urls, configure).await?,
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
