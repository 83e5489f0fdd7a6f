//! Connecting by URL.

use std::fmt::Display;
use std::time::Duration;

use locktopus_core::{BackendError, DynBackend, Locktopus, LocktopusBuilder, Severity};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::connect_error::ConnectError;
use crate::url::{BackendUrl, Checks, ConnectWhen, IntoBackendUrl, UrlOptions};

/// Connects to the backend that a URL names. See [the tables](mod@crate::url) for all URLs and
/// options, and [`BackendUrl::credentials`] for passwords that expire.
///
/// # Runtimes
///
/// You may use the handle on any tokio runtime, on several at once, and after the one that
/// connected has ended. Keep it in a `static`, share it between `#[tokio::test]`s, or connect in
/// one `block_on` and lock in the next. Each runtime that uses the handle renews all leases,
/// reports losses and releases dropped guards. It makes its own connections, or shares those of a
/// multi-threaded runtime that uses the handle.
///
/// A single-threaded runtime runs only inside `block_on`. While no runtime with the handle runs,
/// leases are not renewed, and [`ensure_valid`](locktopus_core::Lease::ensure_valid) tells you.
/// [`lost`](locktopus_core::Lease::lost) and `run` bring their own timer to the runtime where you
/// await them.
///
/// Outside tokio every call fails with
/// [`BackendErrorKind::NoRuntime`](locktopus_core::BackendErrorKind::NoRuntime). Enable the
/// runtime's timers and IO (`enable_all`): without them tokio panics.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = locktopus::connect("memory:").await?;
/// let guard = locks.lock("invoice:42").acquire().await?;
/// guard.release().await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`ConnectError`]; a bad URL is refused before anything is sent.
///
/// # Cancel safety
///
/// Cancel safe: the only lock taken is the probe of the connect-time checks, which expires after
/// twice the option `timeout`.
pub async fn connect(url: impl IntoBackendUrl) -> Result<Locktopus, ConnectError> {
    connect_with(url, |builder| builder).await
}

/// As [`connect`], but lets you configure the `Locktopus`. Settings in the URL are applied first.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// let patience = Duration::from_secs(3);
/// let locks = locktopus::connect_with("memory:", |builder| builder.tolerate_outage(patience)).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`ConnectError`]; a bad URL is refused before anything is sent.
///
/// # Cancel safety
///
/// As [`connect`].
pub async fn connect_with(
    url: impl IntoBackendUrl,
    configure: impl FnOnce(LocktopusBuilder) -> LocktopusBuilder,
) -> Result<Locktopus, ConnectError> {
    let url = url.into_backend_url()?;
    build(open(&url).await?, &url.options, configure)
}

/// Builds a `Locktopus` on a backend from the options of its URL and the caller's settings.
pub(crate) fn build(
    backend: DynBackend,
    options: &UrlOptions,
    configure: impl FnOnce(LocktopusBuilder) -> LocktopusBuilder,
) -> Result<Locktopus, ConnectError> {
    let mut builder = Locktopus::builder_dyn(backend)
        .namespace(&options.namespace)
        .names(options.names);
    if let Some(lease) = options.default_lease() {
        builder = builder.renewed_lease(lease);
    }
    if let Some(label) = options.label() {
        builder = builder.label(label);
    }
    Ok(configure(builder).build()?)
}

/// Connects and returns the bare backend, for code that wraps or combines backends. The options
/// `namespace`, `names`, `label` and `renewed_lease` configure a `Locktopus`, so they have no
/// effect here.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = locktopus::connect_backend("memory:").await?;
/// let locks = locktopus::Locktopus::builder_dyn(backend).namespace("shop:").build()?;
/// locks.lock("invoice:42").acquire().await?.release().await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`ConnectError`]; a bad URL is refused before anything is sent.
///
/// # Cancel safety
///
/// As [`connect`].
pub async fn connect_backend(url: impl IntoBackendUrl) -> Result<DynBackend, ConnectError> {
    open(&url.into_backend_url()?).await
}

/// Connects and returns the bare client, for tools that send their own commands beside the locks
/// (`PING`, `INFO`). Locks need [`connect`].
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use locktopus::client::{Reply, Route};
/// let client = locktopus::connect_client("redis://localhost").await?;
/// let reply: Reply = client.command(Route::Any, &[b"PING"]).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`ConnectError`]; a `memory:` URL has no client.
///
/// # Cancel safety
///
/// Cancel safe: nothing is written.
#[cfg(any(feature = "redis", feature = "fred"))]
pub async fn connect_client(
    url: impl IntoBackendUrl,
) -> Result<std::sync::Arc<dyn locktopus_protocol::RedisClient>, ConnectError> {
    let url = url.into_backend_url()?;
    check_runtime(&url)?;
    match &url.endpoint {
        crate::url::Endpoint::Servers {
            tls,
            authority,
            topology,
        } => servers::open_client(&url, *tls, authority, topology).await,
        crate::url::Endpoint::Memory { .. } => Err(ConnectError::FeatureMissing {
            url: url.to_string(),
            feature: "redis",
        }),
    }
}

/// The limit of a call timeout; backends cut longer ones to this.
const LONGEST_ANSWER: Duration = Duration::from_secs(60 * 60);

pub(crate) async fn open(url: &BackendUrl) -> Result<DynBackend, ConnectError> {
    check_runtime(url)?;
    checked(backend(url).await?, url, &url.options, url.options.timeout).await
}

/// Timers need a runtime.
pub(crate) fn check_runtime(url: &impl Display) -> Result<(), ConnectError> {
    let no_runtime = |_| ConnectError::Backend {
        url: url.to_string(),
        source: BackendError::no_runtime("locktopus"),
    };
    Handle::try_current().map(drop).map_err(no_runtime)
}

/// Makes the connect-time checks that the URL's options ask for, and returns the backend. `answer`
/// is the longest wait for one answer.
pub(crate) async fn checked(
    backend: DynBackend,
    url: &(impl Display + Sync),
    options: &UrlOptions,
    answer: Duration,
) -> Result<DynBackend, ConnectError> {
    if options.checks == Checks::Off {
        return Ok(backend);
    }
    let deadline = Instant::now() + time_for_checks(answer);
    let diagnosis = match backend.diagnose(deadline).await {
        Ok(diagnosis) => diagnosis,
        Err(error) if options.connect_when == ConnectWhen::Lazy => {
            tracing::warn!(backend = %url, %error, "the connect-time checks were not made");
            return Ok(backend);
        }
        Err(source) => {
            backend.close().await;
            return Err(ConnectError::Backend {
                url: url.to_string(),
                source,
            });
        }
    };
    for finding in &diagnosis.findings {
        let (check, message) = (finding.check, &finding.message);
        // The log level shows the severity.
        match finding.severity {
            Severity::Note => tracing::debug!(backend = %url, "[{check}] {message}"),
            Severity::Warning => tracing::warn!(backend = %url, "[{check}] {message}"),
            Severity::Danger => tracing::error!(backend = %url, "[{check}] {message}"),
        }
    }
    if options.checks == Checks::Refuse && diagnosis.worst() == Some(Severity::Danger) {
        backend.close().await;
        return Err(ConnectError::Unsafe {
            url: url.to_string(),
            findings: diagnosis.findings,
        });
    }
    Ok(backend)
}

/// The time for about twenty questions, one after the other. With a well-chosen timeout, a server
/// answers each in at most a quarter of it.
fn time_for_checks(timeout: Duration) -> Duration {
    timeout.min(LONGEST_ANSWER) * 5
}

#[cfg(any(feature = "redis", feature = "fred"))]
mod deferred;
#[cfg(any(feature = "redis", feature = "fred"))]
mod node_address;
#[cfg(any(feature = "redis", feature = "fred"))]
pub(crate) mod quorum;
#[cfg(any(feature = "redis", feature = "fred"))]
mod servers;
#[cfg(all(test, any(feature = "redis", feature = "fred")))]
pub(crate) use servers::connect_options as options_of;

#[cfg_attr(
    not(any(feature = "redis", feature = "fred")),
    expect(clippy::unused_async, reason = "only servers are waited for")
)]
async fn backend(url: &BackendUrl) -> Result<DynBackend, ConnectError> {
    match &url.endpoint {
        #[cfg(feature = "memory")]
        crate::url::Endpoint::Memory { name } => Ok(memory::open(name.as_deref())),
        #[cfg(not(feature = "memory"))]
        crate::url::Endpoint::Memory { .. } => Err(ConnectError::FeatureMissing {
            url: url.to_string(),
            feature: "memory",
        }),
        #[cfg(any(feature = "redis", feature = "fred"))]
        crate::url::Endpoint::Servers {
            tls,
            authority,
            topology,
        } => servers::open(url, *tls, authority, topology).await,
        #[cfg(not(any(feature = "redis", feature = "fred")))]
        crate::url::Endpoint::Servers { .. } => Err(ConnectError::FeatureMissing {
            url: url.to_string(),
            feature: "redis",
        }),
    }
}

#[cfg(feature = "memory")]
mod memory {
    //! Named stores of this process.

    use std::collections::HashMap;
    use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

    use locktopus_core::DynBackend;
    use locktopus_memory::MemoryBackend;

    /// The clients of each store. Weak, so that a store ends with its last client.
    static STORES: LazyLock<Mutex<HashMap<String, Vec<Weak<MemoryBackend>>>>> =
        LazyLock::new(Mutex::default);

    pub(super) fn open(name: Option<&str>) -> DynBackend {
        let Some(name) = name else {
            return Arc::new(MemoryBackend::new());
        };
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        stores.retain(|_, clients| {
            clients.retain(|client| client.strong_count() > 0);
            !clients.is_empty()
        });
        let clients = stores.entry(name.to_owned()).or_default();
        // Each gets its own client, so that a shutdown closes only that one.
        let client = match clients.iter().find_map(Weak::upgrade) {
            Some(other) => other.another_client(),
            None => MemoryBackend::new(),
        };
        let client = Arc::new(client);
        clients.push(Arc::downgrade(&client));
        client
    }
}
