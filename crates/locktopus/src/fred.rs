//! Connecting with a fred client that you have already configured, without writing a URL:
//! [`from_config`] and its siblings.
//!
//! They return [`ClientSettings`]. The re-export [`fred`] is the version of fred that they accept.

pub use locktopus_fred::fred;

use fred::interfaces::ClientLike;
use fred::types::Builder;
use fred::types::config::Config;

pub use crate::client_settings::ClientSettings;
use crate::url::ClientChoice;

/// The servers of a configuration: a single one, a cluster, or the sentinels. A fred credential
/// provider cannot be used: give one to [`ClientSettings::credentials`].
///
/// ```
/// use locktopus::fred::fred::types::config::Config;
///
/// let config = Config::from_url("redis-cluster://app:s3cret@a:7000?node=b:7000")?;
/// let settings = locktopus::fred::from_config(&config).options("namespace=shop:");
/// assert!(!format!("{settings:?}").contains("s3cret"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_config(config: &Config) -> ClientSettings {
    ClientSettings::new(locktopus_fred::from_config(config), ClientChoice::Fred)
}

/// As [`from_config`], with the present settings of a builder.
///
/// ```
/// use locktopus::fred::fred::types::{Builder, config::Config};
///
/// let builder = Builder::from_config(Config::from_url("redis://app:s3cret@db:6379/3")?);
/// let settings = locktopus::fred::from_builder(&builder);
/// assert!(!format!("{settings:?}").contains("s3cret"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_builder(builder: &Builder) -> ClientSettings {
    ClientSettings::new(locktopus_fred::from_builder(builder), ClientChoice::Fred)
}

/// As [`from_config`], with the settings of a `Client` or a `Pool`, connected or not.
///
/// ```
/// use locktopus::fred::fred::types::{Builder, config::Config};
///
/// let client = Builder::from_config(Config::from_url("redis://app:s3cret@db:6379/3")?).build()?;
/// let settings = locktopus::fred::from_client(&client);
/// assert!(!format!("{settings:?}").contains("s3cret"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_client(client: &impl ClientLike) -> ClientSettings {
    ClientSettings::new(locktopus_fred::from_client(client), ClientChoice::Fred)
}
