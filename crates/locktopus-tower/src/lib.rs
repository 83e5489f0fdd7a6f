//! A [tower](https://docs.rs/tower) layer that holds a distributed lock while a service answers.
//! The request chooses the lock.
//!
//! For handlers that must not run twice at the same time: a payment with an idempotency key, a
//! webhook delivered again while its first delivery is in progress, a command for one shopping
//! cart. `examples/recipes` shows it with axum.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use locktopus_core::Locktopus;
//! use locktopus_memory::MemoryBackend;
//! use locktopus_tower::LockLayer;
//! use tower::{Layer, Service, ServiceExt, service_fn};
//!
//! let locks = Locktopus::builder(MemoryBackend::new()).build()?;
//! let pay =
//!     service_fn(
//!         |invoice: u32| async move { Ok::<_, std::io::Error>(format!("paid {invoice}")) },
//!     );
//! let mut once =
//!     LockLayer::new(move |invoice: &u32| Some(locks.lock(format!("invoice:{invoice}"))))
//!         .layer(pay);
//! assert_eq!(once.ready().await?.call(42).await?, "paid 42");
//! # Ok(()) }
//! ```
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod error;
mod service;

use std::fmt;
use std::sync::Arc;

use locktopus_core::{Lease, LockRequest};
use tower_layer::Layer;

pub use error::LockedError;
pub use service::LockService;

type LockOf<R> = dyn Fn(&R) -> Option<LockRequest> + Send + Sync;
type Attach<R> = dyn Fn(&mut R, Lease) + Send + Sync;

/// Holds a lock while a service answers. See the [crate].
///
/// As soon as the lock is lost, the service's future is dropped at its current await point
/// ([`LockedError::Lost`]). Dropping the future of a call does the same, and releases the lock in
/// the background.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use locktopus_core::Locktopus;
/// # use locktopus_memory::MemoryBackend;
/// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
/// use locktopus_tower::{LockLayer, LockedError};
/// use tower::{Layer, Service, ServiceExt, service_fn};
///
/// let elsewhere = locks.lock("invoice:42").acquire().await?;
/// let pay = service_fn(|invoice: u32| async move { Ok::<_, std::io::Error>(invoice) });
/// let layer = LockLayer::new(move |invoice: &u32| Some(locks.lock(format!("invoice:{invoice}"))));
/// let mut once = layer.layer(pay);
/// let refused = once.ready().await?.call(42).await;
/// assert!(matches!(refused, Err(LockedError::Busy)));
/// # drop(elsewhere);
/// # Ok(()) }
/// ```
pub struct LockLayer<R> {
    lock_of: Arc<LockOf<R>>,
    attach: Option<Arc<Attach<R>>>,
    waits: bool,
}

impl<R> LockLayer<R> {
    /// Takes the lock that `lock_of` returns for each request: its name, kind and lease. `None`:
    /// the request needs no lock.
    ///
    /// If another owner holds the lock, the request fails with [`LockedError::Busy`] at once,
    /// unless you set [`waiting`](Self::waiting).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// use locktopus_tower::LockLayer;
    ///
    /// let layer = LockLayer::new(move |path: &String| match path.as_str() {
    ///     "/health" => None, // needs no lock
    ///     path => Some(locks.lock(path)),
    /// });
    /// # drop(layer);
    /// # Ok(()) }
    /// ```
    pub fn new(lock_of: impl Fn(&R) -> Option<LockRequest> + Send + Sync + 'static) -> Self {
        Self {
            lock_of: Arc::new(lock_of),
            attach: None,
            waits: false,
        }
    }

    /// Waits for a lock that another owner holds, as long as its [`LockRequest`] says:
    /// [`wait_at_most`](LockRequest::wait_at_most), otherwise for ever.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// # use std::time::Duration;
    /// use locktopus_tower::LockLayer;
    ///
    /// let lock_of = move |cart: &u32| {
    ///     Some(locks.lock(format!("cart:{cart}")).wait_at_most(Duration::from_secs(2)))
    /// };
    /// let layer = LockLayer::new(lock_of).waiting();
    /// # drop(layer);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn waiting(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Gives the service the [`Lease`], for its fencing token and to check whether the lock is
    /// still held. For HTTP: `|request, lease| { request.extensions_mut().insert(lease); }`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// use locktopus_core::Lease;
    /// use locktopus_tower::{LockLayer, LockService};
    /// use tower::{Layer, Service, ServiceExt, service_fn};
    ///
    /// type Request = (u32, Option<Lease>);
    /// let lock_of = move |(cart, _): &Request| Some(locks.lock(format!("cart:{cart}")));
    /// let layer = LockLayer::new(lock_of)
    ///     .attach_lease(|request: &mut Request, lease| request.1 = Some(lease));
    /// let order = service_fn(|(_, lease): Request| async move {
    ///     lease.ok_or(std::fmt::Error).map(|lease| lease.token())
    /// });
    /// let mut order: LockService<_, _> = layer.layer(order);
    /// assert!(order.ready().await?.call((7, None)).await?.is_some());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn attach_lease(mut self, attach: impl Fn(&mut R, Lease) + Send + Sync + 'static) -> Self {
        self.attach = Some(Arc::new(attach));
        self
    }
}

impl<S, R> Layer<S> for LockLayer<R> {
    type Service = LockService<S, R>;

    fn layer(&self, inner: S) -> Self::Service {
        LockService {
            inner,
            layer: self.clone(),
        }
    }
}

impl<R> Clone for LockLayer<R> {
    fn clone(&self) -> Self {
        Self {
            lock_of: Arc::clone(&self.lock_of),
            attach: self.attach.clone(),
            waits: self.waits,
        }
    }
}

impl<R> fmt::Debug for LockLayer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockLayer")
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}
