//! Several URLs as one quorum.

use std::sync::Arc;

use locktopus_core::{DynBackend, Locktopus, LocktopusBuilder, NameEncoding, NodeProbe};
use locktopus_quorum::{QuorumBackend, QuorumBuilder};

use super::deferred::Deferred;
use crate::connect_error::ConnectError;
use crate::url::{BackendUrl, IntoBackendUrl};

/// Redlock over independent servers: a lock is held once a majority of them has granted it.
///
/// Each URL names one standalone server. The servers must not replicate each other, and their
/// number must be odd. Nodes may use different clients (`?client=fred`). A node that is down is
/// connected to when it comes back. A node that was restarted does not vote before the longest
/// lease is over; this time counts from its start, and from when a client first noted the restart
/// on another node. All programs must write the host of a node in the same way, or they will not
/// find each other's notes.
///
/// A node has the `timeout` of the URLs for its answer (the longest, if they differ; 1 s by
/// default), and at most a quarter of the lease. Distant nodes need leases of more than four times
/// as much. [`quorum_of`] can set another limit: [`QuorumBuilder::node_timeout`].
///
/// Only mutexes are supported. Other kinds are refused, because a majority of queues is not a
/// queue.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = locktopus::connect_quorum(&[
///     "redis://lock1:6379",
///     "redis://lock2:6379",
///     "redis://lock3:6379?client=redis",
/// ]).await?;
/// let guard = locks.mutex("invoice:42").acquire().await?;
/// guard.release().await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`ConnectError`]; bad URLs are refused before anything is sent. An unreachable server is not an
/// error.
///
/// # Cancel safety
///
/// Cancel safe: nothing is written.
pub async fn connect_quorum(
    urls: impl IntoIterator<Item = impl IntoBackendUrl>,
) -> Result<Locktopus, ConnectError> {
    connect_quorum_with(urls, |builder| builder).await
}

/// As [`connect_quorum`], but lets you configure the `Locktopus`. Settings in the URLs are applied
/// first.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let urls = ["redis://a", "redis://b", "redis://c"];
/// let locks = locktopus::connect_quorum_with(&urls, |builder| builder.label("billing-worker")).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`ConnectError`]; bad URLs and settings are refused before anything is sent. An unreachable
/// server is not an error.
///
/// # Cancel safety
///
/// Cancel safe: nothing is written.
pub async fn connect_quorum_with(
    urls: impl IntoIterator<Item = impl IntoBackendUrl>,
    configure: impl FnOnce(LocktopusBuilder) -> LocktopusBuilder,
) -> Result<Locktopus, ConnectError> {
    let urls = urls.into_iter().map(IntoBackendUrl::into_backend_url);
    let urls: Vec<_> = urls.collect::<Result<_, _>>()?;
    let (mut namespace, mut names) = (String::new(), NameEncoding::default());
    let (mut longest, mut label) = (None, None);
    for (at, url) in urls.iter().enumerate() {
        if at > 0 && url.options.namespace != namespace {
            return Err(ConnectError::NodesDiffer {
                url: url.to_string(),
                option: "namespace",
            });
        }
        if at > 0 && url.options.names != names {
            return Err(ConnectError::NodesDiffer {
                url: url.to_string(),
                option: "names",
            });
        }
        if at > 0 && url.options.label() != label {
            return Err(ConnectError::NodesDiffer {
                url: url.to_string(),
                option: "label",
            });
        }
        label = url.options.label();
        (namespace, names) = (url.options.namespace.clone(), url.options.names);
        longest = longest.max(url.options.renewed_lease);
    }
    let quorum = quorum_of(urls, |builder| builder)?;
    let mut builder = Locktopus::builder(quorum).namespace(namespace).names(names);
    if let Some(lease) = longest {
        builder = builder.renewed_lease(lease);
    }
    if let Some(label) = label {
        builder = builder.label(label);
    }
    Ok(configure(builder).build()?)
}

/// The backend of [`connect_quorum`], which you can configure.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// let urls = ["redis://lock1", "redis://lock2", "redis://lock3"];
/// let quorum = locktopus::quorum_of(&urls, |builder| builder.node_timeout(Duration::from_millis(200)))?;
/// assert_eq!(quorum.majority(), 2);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`ConnectError`]; nothing is sent.
pub fn quorum_of(
    urls: impl IntoIterator<Item = impl IntoBackendUrl>,
    configure: impl FnOnce(QuorumBuilder) -> QuorumBuilder,
) -> Result<QuorumBackend, ConnectError> {
    let mut builder = QuorumBackend::builder();
    let urls = urls.into_iter().map(IntoBackendUrl::into_backend_url);
    let urls: Vec<_> = urls.collect::<Result<_, _>>()?;
    for (url, label) in urls.iter().zip(labels(&urls)) {
        let node = Arc::new(Deferred::new(url.clone(), &label)?);
        let (backend, probe): (DynBackend, Arc<dyn NodeProbe>) = (Arc::clone(&node) as _, node);
        builder = builder.probed_node(label, backend, probe);
    }
    configure(builder)
        .build()
        .map_err(|error| ConnectError::Settings(error.into()))
}

/// The labels of the nodes: their URLs as messages show them, without options unless two labels
/// would be equal.
fn labels(urls: &[BackendUrl]) -> Vec<String> {
    let long: Vec<_> = urls.iter().map(ToString::to_string).collect();
    let short = |url: &str| url.split('?').next().unwrap_or_default().to_owned();
    let labels = long.iter().map(|url| {
        let alike = long.iter().filter(|other| short(other) == short(url));
        if alike.count() == 1 {
            short(url)
        } else {
            url.clone()
        }
    });
    labels.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_called_by_its_address_and_by_its_options_where_that_is_not_enough() {
        let urls = [
            "redis://a?checks=off",
            "redis://b:7/1?client=fred",
            "redis://b:7/1",
        ];
        let urls = urls.map(|url| url.parse().unwrap());
        let expected = ["redis://a", "redis://b:7/1?client=fred", "redis://b:7/1"];
        assert_eq!(labels(&urls), expected);
    }
}
