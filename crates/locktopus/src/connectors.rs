//! URL schemes that other crates offer.
//!
//! A program lists its connectors in a value of its own. There is no list for the whole process,
//! because it would depend on which crates were linked, or ran first.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use locktopus_core::{DynBackend, Locktopus, LocktopusBuilder};

use crate::connect;
use crate::connect_error::ConnectError;
use crate::url::{BackendUrl, CustomUrl, SCHEMES};

/// The reason why a [`Connector`] did not connect.
pub type ConnectorError = Box<dyn Error + Send + Sync>;

/// Connects to a kind of backend that this crate does not know. Crates with a backend of their own
/// implement it.
///
/// ```
/// use std::sync::Arc;
/// use locktopus::{Connector, ConnectorError, DynBackend, MemoryBackend, url::CustomUrl};
///
/// struct Postgres;
///
/// #[async_trait::async_trait]
/// impl Connector for Postgres {
///     fn schemes(&self) -> &[&str] {
///         &["postgres"]
///     }
///
///     async fn connect(&self, url: &CustomUrl) -> Result<DynBackend, ConnectorError> {
///         if !url.expose().contains('@') {
///             return Err(url.error("login", "is missing").into());
///         }
///         Ok(Arc::new(MemoryBackend::new())) // a backend of yours
///     }
/// }
/// ```
#[async_trait]
pub trait Connector: Send + Sync + 'static {
    /// The schemes that this connector understands, without the colon, in lower case. Always the
    /// same.
    fn schemes(&self) -> &[&str];

    /// Connects to the backend that this URL names. The caller makes the connect-time checks, with
    /// [`diagnose`](crate::Diagnostics::diagnose).
    ///
    /// # Errors
    ///
    /// Any error. The caller adds the URL without its secrets, and removes the secrets from the
    /// error's text. For a URL that you cannot understand, use [`CustomUrl::error`].
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, and must then leave no lock and no task behind.
    async fn connect(&self, url: &CustomUrl) -> Result<DynBackend, ConnectorError>;
}

/// The schemes that a program can connect to: those of this crate, and those of the connectors it
/// adds.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use locktopus::url::CustomUrl;
/// use locktopus::{Connector, ConnectorError, Connectors, DynBackend, MemoryBackend};
///
/// /// An example of a crate that keeps locks in PostgreSQL.
/// struct Postgres;
///
/// #[async_trait::async_trait]
/// impl Connector for Postgres {
///     fn schemes(&self) -> &[&str] {
///         &["postgres", "postgresql"]
///     }
///
///     async fn connect(&self, url: &CustomUrl) -> Result<DynBackend, ConnectorError> {
///         assert_eq!(url.expose(), "postgres://app:s3cret@db/locks?sslmode=require");
///         Ok(Arc::new(MemoryBackend::new()))
///     }
/// }
///
/// let connectors = Connectors::new().with(Postgres)?;
/// let locks = connectors.connect("postgres://app:s3cret@db/locks?sslmode=require&namespace=shop:").await?;
/// let guard = locks.lock("invoice:42").acquire().await?;
/// guard.release().await?;
/// // All other URLs keep their meaning.
/// let tests = connectors.connect("memory:").await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Connectors {
    added: Vec<(String, Arc<dyn Connector>)>,
}

impl Connectors {
    /// The schemes of this crate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a connector.
    ///
    /// # Errors
    ///
    /// [`ConnectError::SchemeRefused`] if the connector offers no scheme, or one that cannot be a
    /// scheme, that belongs to this crate (with any features), or that an earlier connector offers.
    pub fn with(mut self, connector: impl Connector) -> Result<Self, ConnectError> {
        let connector: Arc<dyn Connector> = Arc::new(connector);
        if connector.schemes().is_empty() {
            return Err(refused("", "is all there is: the connector offers none"));
        }
        for scheme in connector.schemes() {
            if *scheme == "memory" || SCHEMES.contains(scheme) {
                return Err(refused(scheme, "is one of locktopus itself"));
            }
            if self.of(scheme).is_some() {
                return Err(refused(scheme, "is offered by two connectors"));
            }
            if !is_scheme(scheme) {
                let rule =
                    "is not a letter followed by letters, digits, +, - and ., all in lower case";
                return Err(refused(scheme, rule));
            }
            self.added
                .push(((*scheme).to_owned(), Arc::clone(&connector)));
        }
        Ok(self)
    }

    /// As [`connect`](crate::connect()), for these schemes too.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let connectors = locktopus::Connectors::new(); // .with(...)
    /// let locks = connectors.connect("memory:").await?;
    /// assert!(connectors.connect("postgres://db").await.is_err()); // no connector offers it
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConnectError`]; for an unknown scheme it lists the known ones.
    ///
    /// # Cancel safety
    ///
    /// As [`connect`](crate::connect()).
    pub async fn connect(&self, url: &str) -> Result<Locktopus, ConnectError> {
        self.connect_with(url, |builder| builder).await
    }

    /// As [`connect_with`](crate::connect_with), for these schemes too.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let connectors = locktopus::Connectors::new(); // .with(...)
    /// let locks = connectors.connect_with("memory:", |builder| builder.namespace("shop:")).await?;
    /// assert_eq!(locks.namespace(), "shop:");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConnectError`]; for an unknown scheme it lists the known ones.
    ///
    /// # Cancel safety
    ///
    /// As [`connect`](crate::connect()).
    pub async fn connect_with(
        &self,
        url: &str,
        configure: impl FnOnce(LocktopusBuilder) -> LocktopusBuilder,
    ) -> Result<Locktopus, ConnectError> {
        match self.parse(url)? {
            AnyUrl::Own(url) => {
                let backend = connect::open(&url).await?;
                connect::build(backend, &url.options, configure)
            }
            AnyUrl::Custom(url, connector) => {
                let backend = open(&url, &*connector).await?;
                connect::build(backend, &url.options, configure)
            }
        }
    }

    /// As [`connect_backend`](crate::connect_backend), for these schemes too.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let connectors = locktopus::Connectors::new(); // .with(...)
    /// let backend = connectors.connect_backend("memory:").await?;
    /// assert_eq!(backend.info().name, "memory");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConnectError`]; for an unknown scheme it lists the known ones.
    ///
    /// # Cancel safety
    ///
    /// As [`connect`](crate::connect()).
    pub async fn connect_backend(&self, url: &str) -> Result<DynBackend, ConnectError> {
        match self.parse(url)? {
            AnyUrl::Own(url) => connect::open(&url).await,
            AnyUrl::Custom(url, connector) => open(&url, &*connector).await,
        }
    }

    fn parse(&self, text: &str) -> Result<AnyUrl, ConnectError> {
        let (scheme, rest) = text.split_once(':').unwrap_or(("", ""));
        // Connectors offer schemes in lower case; capitals mean the same.
        let scheme = scheme.to_ascii_lowercase();
        match self.of(&scheme) {
            Some(connector) => {
                let url = CustomUrl::parse(&format!("{scheme}:{rest}"), &scheme)?;
                Ok(AnyUrl::Custom(Box::new(url), Arc::clone(connector)))
            }
            None => Ok(AnyUrl::Own(Box::new(BackendUrl::parse(
                text,
                &self.schemes().collect::<Vec<_>>(),
            )?))),
        }
    }

    fn of(&self, scheme: &str) -> Option<&Arc<dyn Connector>> {
        let mut added = self.added.iter();
        added.find_map(|(known, connector)| (known == scheme).then_some(connector))
    }

    fn schemes(&self) -> impl Iterator<Item = &str> {
        self.added.iter().map(|(scheme, _)| scheme.as_str())
    }
}

impl fmt::Debug for Connectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connectors ")?;
        f.debug_list().entries(self.schemes()).finish()
    }
}

enum AnyUrl {
    Own(Box<BackendUrl>),
    Custom(Box<CustomUrl>, Arc<dyn Connector>),
}

async fn open(url: &CustomUrl, connector: &dyn Connector) -> Result<DynBackend, ConnectError> {
    connect::check_runtime(url)?;
    let backend = match connector.connect(url).await {
        Ok(backend) => backend,
        Err(error) => {
            return Err(match error.downcast() {
                Ok(bad_url) => ConnectError::Url(*bad_url),
                Err(error) => ConnectError::Unreachable {
                    url: url.to_string(),
                    source: url.without_secrets(error),
                },
            });
        }
    };
    let answer = backend.info().call_timeout;
    connect::checked(backend, url, &url.options, answer).await
}

fn is_scheme(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_lowercase())
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c))
}

fn refused(scheme: &str, problem: &'static str) -> ConnectError {
    ConnectError::SchemeRefused {
        scheme: scheme.to_owned(),
        problem,
    }
}

#[cfg(test)]
mod tests;
