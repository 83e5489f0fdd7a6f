//! Connecting with a redis-rs client that you have already configured, without writing a URL:
//! [`from_client`] and its siblings.
//!
//! They return [`ClientSettings`]. The re-export [`redis`] is the version of redis-rs that they
//! accept.

use locktopus_protocol::{ReadSettings, SettingsError};
pub use locktopus_redis::redis;
use redis::{Client, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, TlsMode};

pub use crate::client_settings::ClientSettings;
use crate::url::ClientChoice;

/// The server of a client.
///
/// Certificates given to `build_with_tls` cannot be read back. Give them again, as the options
/// `ca`, `cert` and `key` or with [`ClientSettings::rustls`](crate::ClientSettings). A credentials
/// provider cannot be read either, because it belongs to connections, not to clients: give it to
/// [`ClientSettings::credentials`].
///
/// ```
/// use locktopus::redis::redis::Client;
///
/// let client = Client::open("redis://app:s3cret@db:6379/3")?;
/// let settings = locktopus::redis::from_client(&client).options("namespace=shop:");
/// assert!(!format!("{settings:?}").contains("s3cret"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_client(client: &Client) -> ClientSettings {
    from_connection_info(client.get_connection_info())
}

/// The server of a `ConnectionInfo`.
///
/// ```
/// use locktopus::redis::redis::IntoConnectionInfo;
///
/// let info = "redis://app:s3cret@db:6379/3".into_connection_info()?;
/// let settings = locktopus::redis::from_connection_info(&info);
/// assert!(!format!("{settings:?}").contains("s3cret"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_connection_info(info: &ConnectionInfo) -> ClientSettings {
    settings(locktopus_redis::from_connection_info(info))
}

/// A cluster, by the nodes that you gave to `ClusterClient::new` or `ClusterClient::builder`, in
/// any form. A cluster client does not reveal its settings, so repeat those that you gave only to
/// its builder: the login in each node, TLS as the nodes' scheme, certificates as options.
///
/// ```
/// let nodes = ["redis://app:s3cret@a:7000", "redis://app:s3cret@b:7000"];
/// let settings = locktopus::redis::from_cluster_nodes(nodes).options("namespace=shop:");
/// assert!(!format!("{settings:?}").contains("s3cret"));
/// ```
pub fn from_cluster_nodes<T: IntoConnectionInfo>(
    nodes: impl IntoIterator<Item = T>,
) -> ClientSettings {
    settings(locktopus_redis::from_cluster_nodes(nodes))
}

/// The primary that these sentinels know as `master_name`. A sentinel client does not reveal its
/// settings, so repeat what you gave to `SentinelClientBuilder`. `tls` and `login` are for the
/// primary; the sentinels have theirs in `sentinels`.
///
/// ```
/// use locktopus::redis::redis::RedisConnectionInfo;
///
/// let login = RedisConnectionInfo::default().set_password("s3cret").set_db(3);
/// let sentinels = ["redis://a:26379", "redis://b:26379"];
/// let settings = locktopus::redis::from_sentinels(sentinels, "mymaster", None, &login);
/// ```
pub fn from_sentinels<T: IntoConnectionInfo>(
    sentinels: impl IntoIterator<Item = T>,
    master_name: impl Into<String>,
    tls: Option<TlsMode>,
    login: &RedisConnectionInfo,
) -> ClientSettings {
    settings(locktopus_redis::from_sentinels(
        sentinels,
        master_name,
        tls,
        login,
    ))
}

fn settings(read: Result<ReadSettings, SettingsError>) -> ClientSettings {
    ClientSettings::new(read, ClientChoice::Redis)
}
