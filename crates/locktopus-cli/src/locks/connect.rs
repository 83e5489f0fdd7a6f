//! From URLs to locks, and the end of them.

use std::time::Duration;

use locktopus::{Label, Locktopus, LocktopusBuilder};

use crate::config::Config;
use crate::failure::Failure;

/// How long the end waits for releases under way.
const GRACE: Duration = Duration::from_secs(2);

/// Connects to the one server, system of servers, or quorum that is configured, to look at locks:
/// under no name.
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
        tracing::warn!("{}", unconfirmed(report.abandoned));
    }
}

fn unconfirmed(releases: usize) -> String {
    match releases {
        1 => "1 release was not confirmed; its lock is free when its lease ends".to_owned(),
        _ => format!(
            "{releases} releases were not confirmed; their locks are free when their leases end"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_release_is_one() {
        assert!(unconfirmed(1).starts_with("1 release was"));
        assert!(unconfirmed(2).starts_with("2 releases were"));
    }
}
