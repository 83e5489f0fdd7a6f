//! Builds a `Locktopus`, with the defaults for all of its requests.

use std::time::Duration;

use locktopus_contract::{
    DynBackend, Label, NameEncoding, OptionError, TokenRetention, ValidityMargin, internal,
};

use crate::engine::cohort_settings::CohortSettings;
use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::engine::settings::{LONGEST_LEASE, Settings, WaitStrategy};
use crate::handles::locktopus::Locktopus;

/// Builds a [`Locktopus`].
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use locktopus::{Locktopus, MemoryBackend};
/// let locks = Locktopus::builder(MemoryBackend::new())
///     .namespace("shop:")
///     .renewed_lease(Duration::from_secs(10))
///     .tolerate_outage(Duration::from_secs(3))
///     .build()?;
/// assert_eq!(locks.lock("invoice:42").acquire().await?.name().as_str(), "shop:invoice:42");
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct LocktopusBuilder {
    backend: DynBackend,
    settings: Settings,
}

impl LocktopusBuilder {
    pub(super) fn new(backend: DynBackend) -> Self {
        Self {
            backend,
            settings: Settings::default(),
        }
    }

    /// Sets the prefix of every lock name. Default: none.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let locks = locktopus::connect_with("memory:", |builder| builder.namespace("shop:")).await?;
    /// assert_eq!(locks.lock("invoice").acquire().await?.name().as_str(), "shop:invoice");
    /// # Ok(()) }
    /// ```
    pub fn namespace(mut self, prefix: impl Into<String>) -> Self {
        self.settings.namespace = prefix.into();
        self
    }

    /// Sets how lock names are encoded for storage. Default: [`NameEncoding::Plain`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus::NameEncoding;
    /// let locks = locktopus::connect_with("memory:", |builder| builder.names(NameEncoding::Escaped)).await?;
    /// locks.lock(b"\xff\x00".as_slice()).acquire().await?.release().await?; // any bytes
    /// # Ok(()) }
    /// ```
    pub fn names(mut self, encoding: NameEncoding) -> Self {
        self.settings.names = encoding;
        self
    }

    /// The lease of locks that are requested without one; the watchdog renews it. Default 30 s.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// let lease = Duration::from_secs(10);
    /// let locks = locktopus::connect_with("memory:", |builder| builder.renewed_lease(lease)).await?;
    /// let guard = locks.lock("import").acquire().await?;
    /// assert!(guard.remaining() <= lease);
    /// # Ok(()) }
    /// ```
    pub fn renewed_lease(mut self, lease: Duration) -> Self {
        self.settings.renewed_lease = lease;
        self
    }

    /// The longest lease that a request may ask for. Default 24 h.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// let most = Duration::from_secs(60);
    /// let locks = locktopus::connect_with("memory:", |builder| builder.max_lease(most)).await?;
    /// assert!(locks.lock("import").fixed_lease(most * 2).acquire().await.is_err());
    /// # Ok(()) }
    /// ```
    pub fn max_lease(mut self, lease: Duration) -> Self {
        self.settings.max_lease = lease;
        self
    }

    /// How much sooner than the server a holder treats its lease as over.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// use locktopus::ValidityMargin;
    /// let margin = ValidityMargin { clock_step: Duration::from_millis(20), ..ValidityMargin::default() };
    /// let locks = locktopus::connect_with("memory:", |builder| builder.validity_margin(margin)).await?;
    /// let guard = locks.lock("import").fixed_lease(Duration::from_secs(1)).acquire().await?;
    /// assert!(guard.remaining() <= Duration::from_millis(980));
    /// # Ok(()) }
    /// ```
    pub fn validity_margin(mut self, margin: ValidityMargin) -> Self {
        self.settings.margin = margin;
        self
    }

    /// How to wait for locks held by others. Default: [`WaitStrategy::HandOff`] with a heartbeat of
    /// one second.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// use locktopus::WaitStrategy;
    /// let look = WaitStrategy::Notify { heartbeat: Duration::from_secs(5) };
    /// let locks = locktopus::connect_with("memory:", |builder| builder.strategy(look)).await?;
    /// # Ok(()) }
    /// ```
    pub fn strategy(mut self, strategy: WaitStrategy) -> Self {
        self.settings.strategy = strategy;
        self
    }

    /// How far tasks of this process pass a lock to each other before it goes back to the backend.
    /// Default: 64 times, for 20 ms.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus::CohortSettings;
    /// let fair = CohortSettings { turns: 1, ..CohortSettings::default() }; // never passed on here
    /// let locks = locktopus::connect_with("memory:", |builder| builder.cohort(fair)).await?;
    /// # Ok(()) }
    /// ```
    pub fn cohort(mut self, cohort: CohortSettings) -> Self {
        self.settings.cohort = cohort;
        self
    }

    /// Keeps the leases of all [locks](Locktopus::lock) and native [mutexes](Locktopus::mutex) for
    /// a moment after they are released, as
    /// [`LockRequest::lease_cache`](crate::LockRequest::lease_cache) does for one. A single request
    /// may override this. Kinds that cannot be kept are not affected, and a lease is kept for at
    /// most a third of its length. Default: off (zero).
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// let keep = Duration::from_millis(50);
    /// let locks = locktopus::connect_with("memory:", |builder| builder.lease_cache(keep)).await?;
    /// locks.lock("report:7").acquire().await?.release().await?;
    /// let [kept] = locks.held_locks().try_into().expect("one that is kept");
    /// assert_eq!(kept.holds, 0);
    /// # Ok(()) }
    /// ```
    pub fn lease_cache(mut self, keep: Duration) -> Self {
        self.settings.lease_cache = keep;
        self
    }

    /// How long the last fencing token of a name is remembered after a grant. A single request may
    /// override this ([`LockRequest::token_retention`](crate::LockRequest::token_retention)).
    /// Default: the backend's setting (`token_retention` in a URL), or a day.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// let week = Duration::from_secs(7 * 24 * 60 * 60);
    /// let locks = locktopus::connect_with("memory:", |builder| builder.token_retention(week)).await?;
    /// # Ok(()) }
    /// ```
    pub fn token_retention(mut self, keep: impl Into<TokenRetention>) -> Self {
        self.settings.token_retention = Some(keep.into());
        self
    }

    /// How long a waiting acquisition tolerates a backend that does not answer before it fails with
    /// [`LockError::Backend`]. Default 10 s.
    ///
    /// A backend may say [when it will be ready](crate::BackendError::ready_in). A longer wait
    /// continues until then, and starts to count this time there.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// let patience = Duration::from_secs(2);
    /// let locks = locktopus::connect_with("memory:", |builder| builder.tolerate_outage(patience)).await?;
    /// # Ok(()) }
    /// ```
    pub fn tolerate_outage(mut self, patience: Duration) -> Self {
        self.settings.tolerate_outage = patience;
        self
    }

    /// Sets a label that everyone who looks at locks sees, with this host and process, for each
    /// lock that this `Locktopus` holds or waits for. Plain text will do; [`Label`] lists what you
    /// can choose. [`Locktopus::who`] and the command `locktopus` show it.
    ///
    /// Costs one request every 25 seconds, and nothing for each acquisition: owner ids name their
    /// instance, and the backend keeps one record for each instance, for two minutes after the last
    /// request. [`shutdown`](Locktopus::shutdown) removes the record, as does dropping the last
    /// clone.
    ///
    /// This is best effort: a write that fails is logged and tried again, and locks do not depend
    /// on it. A backend without such records
    /// ([`LockBackend::instances`](crate::LockBackend::instances)) is not asked. Default: no label,
    /// and nothing is sent.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::{Label, Locktopus};
    /// # use locktopus_memory::MemoryBackend;
    /// let label = Label::new("billing-worker").host("web-3");
    /// let locks = Locktopus::builder(MemoryBackend::new()).label(label).build()?;
    /// assert!(Locktopus::builder(MemoryBackend::new()).label("\u{1b}[2J").build().is_err());
    /// # Ok(()) }
    /// ```
    pub fn label(mut self, label: impl Into<Label>) -> Self {
        self.settings.label = Some(label.into());
        self
    }

    /// Removes the label, even one that the URL set. For tools that look at locks and hold none.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let url = "memory:?label=billing";
    /// let locks = locktopus::connect_with(url, |builder| builder.without_label()).await?;
    /// # Ok(()) }
    /// ```
    pub fn without_label(mut self) -> Self {
        self.settings.label = None;
        self
    }

    /// Puts the lock's name into the spans of waits and holds, in the field `lock.name`. Default:
    /// off, because names may be personal data, and there may be many of them. Metrics never carry
    /// names.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus::{Locktopus, MemoryBackend};
    /// let locks = Locktopus::builder(MemoryBackend::new()).names_in_spans(true).build()?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "tracing")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
    pub fn names_in_spans(mut self, names: bool) -> Self {
        self.settings.names_in_spans = names;
        self
    }

    /// Builds the `Locktopus` and starts its watchdog on this runtime.
    ///
    /// You may use it on other runtimes too, even after this one has ended. Each runtime where you
    /// acquire a lock or await a loss runs the watchdog. While one of them runs, it renews leases,
    /// reports losses and releases dropped guards.
    ///
    /// # Errors
    ///
    /// [`LockError::Option`] for impossible settings, or when called outside a tokio runtime.
    pub fn build(self) -> Result<Locktopus, LockError> {
        let Self {
            backend,
            mut settings,
        } = self;
        settings.longest_lease = backend.info().safety.longest_lease();
        settings.check_lease("renewed_lease", settings.renewed_lease)?;
        if settings.max_lease > LONGEST_LEASE {
            let rule = format!("must be at most {LONGEST_LEASE:?}, or servers could not count it");
            return Err(OptionError::new("max_lease", settings.max_lease, rule).into());
        }
        if let Some(keep) = settings.token_retention {
            keep.check()?;
        }
        if let Some(label) = &settings.label {
            label.check()?;
        }
        settings.strategy.check()?;
        settings.cohort.check()?;
        settings.check_lease_cache(backend.info())?;
        if settings.margin.drift_ppm >= 1_000_000 {
            let rule = "must be below 1,000,000 parts per million";
            return Err(OptionError::new("drift_ppm", settings.margin.drift_ppm, rule).into());
        }
        if let Err(error) = internal::current() {
            return Err(OptionError::new("runtime", "none", error.to_string()).into());
        }
        Ok(Locktopus::on(Services::start(backend, settings)))
    }
}
