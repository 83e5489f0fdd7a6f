//! Logins that expire: clients ask the program for credentials before each login.

use std::error::Error;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use locktopus_contract::internal::with_causes;
use tokio::time::{Instant, timeout_at};

use crate::client::options::{ConnectOptions, Credentials};

/// Why a provider has no credentials. Errors and logs show this text, so keep secrets out of it.
pub type CredentialsError = Box<dyn Error + Send + Sync>;

/// Supplies user and password for each login, for passwords that expire: IAM tokens, rotated
/// secrets.
///
/// An async closure implements it. Clients ask before every login: for the first connection and
/// each reconnection, for each node of a cluster, and for connections that carry messages. Several
/// connections may ask at the same moment. An open connection keeps its login. If the server closes
/// it because its password expired, the client reconnects and asks again.
///
/// ```
/// use locktopus_protocol::{Credentials, CredentialsError, CredentialsProvider};
///
/// async fn token() -> Result<String, CredentialsError> {
///     Ok("a-token-that-expires".to_owned()) // ask your cloud, or read the file that is rotated
/// }
///
/// let provider = CredentialsProvider::new(|| async {
///     Ok(Credentials::new("app", token().await?))
/// });
/// assert_eq!(format!("{provider:?}"), "CredentialsProvider(..)");
/// ```
#[async_trait]
pub trait ProvideCredentials: Send + Sync + 'static {
    /// The credentials for one login.
    ///
    /// The time it takes counts towards [`ConnectOptions::connect_timeout`]. If getting a token
    /// takes longer, cache it and renew it ahead of time.
    ///
    /// # Errors
    ///
    /// Why there are none. The client then retries as if the server were unreachable.
    ///
    /// # Cancel safety
    ///
    /// Dropped when the time is up or the client closes.
    async fn credentials(&self) -> Result<Credentials, CredentialsError>;
}

#[async_trait]
impl<F, A> ProvideCredentials for F
where
    F: Fn() -> A + Send + Sync + 'static,
    A: Future<Output = Result<Credentials, CredentialsError>> + Send,
{
    async fn credentials(&self) -> Result<Credentials, CredentialsError> {
        self().await
    }
}

/// A shared [`ProvideCredentials`]. It is equal only to its clones.
#[derive(Clone)]
pub struct CredentialsProvider(Arc<dyn ProvideCredentials>);

impl CredentialsProvider {
    /// Wraps a provider: an async closure, or a type of your own.
    #[must_use]
    pub fn new(provider: impl ProvideCredentials) -> Self {
        Self(Arc::new(provider))
    }
}

/// Shows nothing of the provider, because it may hold secrets.
impl fmt::Debug for CredentialsProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialsProvider(..)")
    }
}

impl PartialEq for CredentialsProvider {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CredentialsProvider {}

/// How an adapter logs in: with fixed credentials, those of a provider, or not at all.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Login {
    /// The same credentials each time; `None` does not log in.
    Fixed(Option<Credentials>),
    /// Asks a provider each time.
    Provided(CredentialsProvider),
}

impl Login {
    /// How to log in at the servers that hold the data.
    #[must_use]
    pub fn for_data(options: &ConnectOptions) -> Self {
        Self::new(&options.credentials, &options.credentials_provider)
    }

    /// How to log in at the sentinels.
    #[must_use]
    pub fn for_sentinels(options: &ConnectOptions) -> Self {
        Self::new(
            &options.sentinel_credentials,
            &options.sentinel_credentials_provider,
        )
    }

    fn new(fixed: &Option<Credentials>, provider: &Option<CredentialsProvider>) -> Self {
        match provider {
            Some(provider) => Self::Provided(provider.clone()),
            None => Self::Fixed(fixed.clone()),
        }
    }

    /// The credentials for one login.
    ///
    /// # Errors
    ///
    /// One line for humans if the provider fails, panics, or misses the deadline.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the provider's future is dropped.
    pub async fn next(&self, deadline: Instant) -> Result<Option<Credentials>, String> {
        let provider = match self {
            Self::Fixed(credentials) => return Ok(credentials.clone()),
            Self::Provided(CredentialsProvider(provider)) => provider,
        };
        // A panic must not end the task that maintains the connection.
        let asked = AssertUnwindSafe(async { provider.credentials().await }).catch_unwind();
        match timeout_at(deadline, asked).await {
            Ok(Ok(Ok(credentials))) => Ok(Some(credentials)),
            Ok(Ok(Err(error))) => Err(format!(
                "the credentials provider failed: {}",
                with_causes(&*error)
            )),
            Ok(Err(_panic)) => Err("the credentials provider panicked".to_owned()),
            Err(_elapsed) => Err("the credentials provider did not answer in time".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    async fn asked(provider: impl ProvideCredentials) -> Result<Option<Credentials>, String> {
        let login = Login::Provided(CredentialsProvider::new(provider));
        login.next(Instant::now() + Duration::from_secs(1)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_is_asked_each_time_and_may_fail_in_any_way() {
        let count = AtomicU32::new(0);
        let login = Login::Provided(CredentialsProvider::new(move || {
            let token = format!("token-{}", count.fetch_add(1, Ordering::Relaxed));
            async { Ok(Credentials::new("app", token)) }
        }));
        for token in ["token-0", "token-1"] {
            let given = login.next(Instant::now()).await.unwrap().unwrap();
            assert_eq!(given, Credentials::new("app", token));
        }
        assert!(!format!("{login:?}").contains("token"));

        let failed =
            asked(|| async { Err(io::Error::other("403 from the metadata server").into()) });
        let failed = failed.await.unwrap_err();
        assert!(failed.contains("403 from the metadata server"), "{failed}");
        let silent = asked(std::future::pending).await.unwrap_err();
        assert!(silent.contains("did not answer in time"), "{silent}");
        let panicked = asked(|| async { panic!("a slip") }).await.unwrap_err();
        assert!(panicked.contains("panicked"), "{panicked}");
    }

    #[tokio::test]
    async fn a_provider_comes_before_fixed_credentials() {
        use crate::client::options::{HostPort, Servers};

        let mut options = ConnectOptions::new(Servers::Standalone(HostPort::unix("/s")));
        let now = Instant::now();
        assert_eq!(Login::for_data(&options).next(now).await, Ok(None));
        options.credentials = Some(Credentials::new("app", "old"));
        options.sentinel_credentials = Some(Credentials::new("watcher", "other"));
        options.credentials_provider = Some(CredentialsProvider::new(|| async {
            Ok(Credentials::new("app", "new"))
        }));
        let data = Login::for_data(&options).next(now).await.unwrap();
        assert_eq!(data, Some(Credentials::new("app", "new")));
        let sentinels = Login::for_sentinels(&options).next(now).await.unwrap();
        assert_eq!(sentinels, options.sentinel_credentials);
    }
}
