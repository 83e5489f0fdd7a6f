//! Connects to the servers of a URL, and disconnects.

use std::time::Duration;

use locktopus::{Label, Locktopus, LocktopusBuilder};

use crate::config::Config;
use crate::failure::Failure;

/// How long closing waits for releases in flight.
const GRACE: Duration = Duration::from_secs(2);

/// Connects, without a label, to inspect locks. Several URLs are the nodes of a quorum.
pub(crate) async fn connect(config: &Config) -> Result<Locktopus, Failure> {
    connect_with(&config.urls()?.value, LocktopusBuilder::without_label).await
}

/// Connects to hold locks, under this label or that of the URL.
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

/// Connects to these URLs, without a label.
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

/// Waits for releases in flight.
pub(crate) async fn close(locks: Locktopus) {
    let report = locks.shutdown(GRACE).await;
    if report.abandoned > 0 {
        tracing::warn!("{}", unconfirmed(report.abandoned));
    }
}

fn unconfirmed(releases: usize) -> String {
    match releases {
        1 => "1 release was not confirmed; the lock becomes free when its lease ends".to_owned(),
        _ => format!(
            "{releases} releases were not confirmed; the locks become free when their leases end"
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
