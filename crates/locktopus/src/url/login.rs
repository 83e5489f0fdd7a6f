//! Providers of credentials for a URL, and the types that functions accept as a URL.

#[cfg(any(feature = "redis", feature = "fred"))]
use locktopus_protocol::{CredentialsProvider, ProvideCredentials};

#[cfg(any(feature = "redis", feature = "fred"))]
use super::options::Routing;
use super::parse::BackendUrl;
#[cfg(any(feature = "redis", feature = "fred"))]
use super::parse::{Endpoint, Topology};
use super::shown::UrlError;

/// A URL as text, or a [`BackendUrl`], which can carry more than text.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use locktopus::url::BackendUrl;
///
/// let locks = locktopus::connect("memory:").await?;
/// let checked: BackendUrl = "memory:".parse()?;
/// let others = locktopus::connect(checked).await?;
/// # Ok(()) }
/// ```
pub trait IntoBackendUrl: sealed::Sealed {
    /// Checks the URL.
    ///
    /// ```
    /// use locktopus::url::IntoBackendUrl;
    ///
    /// assert_eq!("memory:".into_backend_url()?.to_string(), "memory:");
    /// # Ok::<(), locktopus::url::UrlError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UrlError`] if the text is not a backend URL.
    fn into_backend_url(self) -> Result<BackendUrl, UrlError>;
}

mod sealed {
    pub trait Sealed {}
    impl<T: AsRef<str> + ?Sized> Sealed for &T {}
    impl Sealed for super::BackendUrl {}
}

impl<T: AsRef<str> + ?Sized> IntoBackendUrl for &T {
    fn into_backend_url(self) -> Result<BackendUrl, UrlError> {
        self.as_ref().parse()
    }
}

impl IntoBackendUrl for BackendUrl {
    fn into_backend_url(self) -> Result<BackendUrl, UrlError> {
        Ok(self)
    }
}

#[cfg(any(feature = "redis", feature = "fred"))]
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Providers {
    pub(crate) servers: Option<CredentialsProvider>,
    pub(crate) sentinels: Option<CredentialsProvider>,
}

#[cfg(any(feature = "redis", feature = "fred"))]
impl BackendUrl {
    /// Asks `provider` for user and password before each login. Use it for passwords that expire.
    ///
    /// Every new connection asks: each reconnection, each node of a cluster, and connections that
    /// carry messages. An async closure is a provider. See [`ProvideCredentials`].
    ///
    /// ```no_run
    /// # async fn iam_token() -> Result<String, std::io::Error> { Ok(String::new()) }
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus::url::{BackendUrl, Credentials};
    ///
    /// let url: BackendUrl = "rediss://cache.example:6379?timeout=2s".parse()?;
    /// let url = url.credentials(|| async { Ok(Credentials::new("app", iam_token().await?)) })?;
    /// let locks = locktopus::connect(url).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`UrlError`] if the URL has a login, is a `memory:` URL, or has `router=client`.
    pub fn credentials(self, provider: impl ProvideCredentials) -> Result<Self, UrlError> {
        self.ask_for_credentials(CredentialsProvider::new(provider))
    }

    /// As [`credentials`](Self::credentials), for the sentinels, which have their own users.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus::url::{BackendUrl, Credentials};
    ///
    /// let url: BackendUrl = "redis-sentinel://a,b,c/mymaster".parse()?;
    /// let url = url.sentinel_credentials(|| async {
    ///     Ok(Credentials::new("watcher", std::fs::read_to_string("/run/secrets/sentinel")?))
    /// })?;
    /// let locks = locktopus::connect(url).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`UrlError`] if the URL has a login for sentinels, or has no sentinels.
    pub fn sentinel_credentials(self, provider: impl ProvideCredentials) -> Result<Self, UrlError> {
        self.ask_for_sentinel_credentials(CredentialsProvider::new(provider))
    }

    pub(crate) fn ask_for_credentials(
        mut self,
        provider: CredentialsProvider,
    ) -> Result<Self, UrlError> {
        let problem = match &self.endpoint {
            Endpoint::Memory { .. } => Some("means nothing for a memory: URL"),
            Endpoint::Servers { authority, .. } if authority.password.is_some() => {
                Some("is given, and the URL has a login too; leave one of them out")
            }
            Endpoint::Servers { .. } if self.options.router == Routing::Client => {
                let problem = "cannot be asked with router=client, whose connections log in by themselves; leave that option out";
                Some(problem)
            }
            Endpoint::Servers { .. } => None,
        };
        match problem {
            Some(problem) => Err(self.error("a credentials provider", problem)),
            None => {
                self.providers.servers = Some(provider);
                Ok(self)
            }
        }
    }

    pub(crate) fn ask_for_sentinel_credentials(
        mut self,
        provider: CredentialsProvider,
    ) -> Result<Self, UrlError> {
        let has_sentinels = matches!(
            self.endpoint,
            Endpoint::Servers {
                topology: Topology::Sentinel { .. },
                ..
            }
        );
        let problem = if !has_sentinels {
            "means nothing without sentinels"
        } else if self.options.sentinel_password.is_some() {
            "is given, and sentinel_password too; leave one of them out"
        } else {
            self.providers.sentinels = Some(provider);
            return Ok(self);
        };
        Err(self.error("a credentials provider for sentinels", problem))
    }
}

#[cfg(all(test, any(feature = "redis", feature = "fred")))]
mod tests {
    use super::*;
    use crate::url::Credentials;

    #[test]
    fn a_provider_is_refused_where_it_would_not_be_asked() {
        for (url, named) in [
            ("redis://app:hunter2@h", "has a login too"),
            ("redis://:hunter2@h", "has a login too"),
            ("memory:", "means nothing for a memory: URL"),
            ("redis-cluster://h?router=client", "router=client"),
        ] {
            let url: BackendUrl = url.parse().unwrap();
            let error = url.credentials(|| async { Ok(Credentials::new("app", "hunter3")) });
            let error = error.unwrap_err().to_string();
            assert!(
                error.contains(named) && !error.contains("hunter"),
                "{error}"
            );
        }
        for (url, named) in [
            ("redis://h", "without sentinels"),
            (
                "redis-sentinel://h/m?sentinel_password=hunter2",
                "sentinel_password too",
            ),
        ] {
            let url: BackendUrl = url.parse().unwrap();
            let error = url.sentinel_credentials(|| async { Ok(Credentials::new("w", "hunter3")) });
            let error = error.unwrap_err().to_string();
            assert!(
                error.contains(named) && !error.contains("hunter"),
                "{error}"
            );
        }
    }
}
