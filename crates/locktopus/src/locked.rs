//! Functions whose whole body runs under a lock (feature `macros`): the attribute
//! [`locked`](macro@crate::locked), which saves you `run` and a closure.

use locktopus_core::{AnyGuard, Lease, LockError, LockRequest, Locktopus, Owner};

/// Runs an `async fn` under a lock: acquires it, runs the body and releases it. The body is dropped
/// at its current await point when the lock is lost.
///
/// ```
/// use locktopus::{LockError, Locktopus, locked};
///
/// struct Invoices {
///     locks: Locktopus,
/// }
///
/// impl Invoices {
///     #[locked(name = "invoice:{id}", locks = self.locks, wait = "5s", bind = lease)]
///     async fn pay(&self, id: u64) -> Result<String, LockError> {
///         lease.ensure_valid()?; // right before each side effect
///         Ok(format!("paid {id} under token {:?}", lease.token()))
///     }
///
///     #[locked(name = "reminders", locks = self.locks, when_busy = "skip", at_least = "1m")]
///     async fn remind(&self) -> Result<Option<u32>, LockError> {
///         Ok(Some(3)) // None if another instance is doing it, or did within the minute
///     }
/// }
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let invoices = Invoices { locks: locktopus::connect("memory:").await? };
/// invoices.pay(42).await?;
/// assert_eq!(invoices.remind().await?, Some(3));
/// # Ok(()) }
/// ```
///
/// | option | meaning | default |
/// |---|---|---|
/// | `name = "invoice:{id}"` | the lock's name | required |
/// | `locks = self.locks` | an expression for a [`Locktopus`] | required |
/// | `kind = "fair_lock"` | the kind of lock | `lock` |
/// | `wait = "5s"` | how long to wait for it | for ever; not at all with `skip` and `error` |
/// | `lease = "30s"` | a [renewed lease](LockRequest::renewed_lease) | as the builder says, 30 s |
/// | `fixed_lease = "30s"` | a [fixed lease](LockRequest::fixed_lease) | |
/// | `at_least = "1m"` | the [minimum hold time](LockRequest::hold_at_least) | released at once |
/// | `max_hold = "10m"` | the [maximum hold time](LockRequest::max_hold), renewed or not | none |
/// | `when_busy = "skip"` | `wait`, [`skip`](Skipped) the function, or `error` at once | `wait` |
/// | `bind = lease` | names the [`Lease`] in the body, for example to pass on the token | |
///
/// **Values.** `name` may contain `{argument}`, `{argument.field}` and `{self.field}`, with the
/// format options of `format!`; double a literal brace. `locks` may also be something that
/// dereferences to a [`Locktopus`]. The kinds are `lock`, `mutex`, `fair_lock`, `read_lock` and
/// `write_lock` (the halves of a read-write lock), `semaphore` and `permit_semaphore` (one permit).
/// `at_least` keeps a `lock`, `fair_lock` or `mutex` held even if the function returns sooner, so
/// that an instance whose clock is late does not run the job again. The default lease is that of
/// the [builder](locktopus_core::LocktopusBuilder::renewed_lease).
///
/// **The return type** is a `Result<T, E>` with `E: From<LockError>`, or an alias such as
/// `anyhow::Result`. The function returns what the body returns. It fails with
/// [`LockError::WaitTimeout`] if the lock is busy ([`LockError::is_busy`]), with
/// [`LockError::Lost`] if it was lost before the body was done, and with the other errors of
/// [`LockRequest::run`]. With `when_busy = "skip"`, `T` is an `Option` (`None`: skipped), or a type
/// of your own that implements [`Skipped`].
///
/// **Reentrancy.** The body runs as the [`Owner`] in whose [scope](Owner::scope) the function was
/// called, or else as a new one. So within one task it may take the same lock again, itself or by
/// calling another such function; a `mutex` then fails with [`LockError::NotReentrant`] instead of
/// waiting for ever. Spawned tasks have another owner.
///
/// **Where to put it**: on functions and methods with a body, above attributes that turn an `async
/// fn` into a plain function, such as `#[tokio::test]`. With `#[async_trait]`, put it on a function
/// that the method calls. Other attributes may be above or below; those below see the function as
/// this one has changed it.
///
/// # Cancel safety
///
/// Dropping the future of the function drops the body at its current await point and releases the
/// lock in the background.
pub use locktopus_macros::locked;

/// The result of a function that was skipped, because of `#[locked(when_busy = "skip")]`.
///
/// ```
/// # use locktopus::{LockError, Locktopus, Skipped, locked};
/// #[derive(Debug, PartialEq)]
/// enum Cleaned {
///     Rows(u64),
///     ByAnother,
/// }
///
/// impl Skipped for Cleaned {
///     fn skipped() -> Self {
///         Self::ByAnother
///     }
/// }
///
/// #[locked(name = "cleaning", locks = locks, when_busy = "skip")]
/// async fn clean(locks: &Locktopus) -> Result<Cleaned, LockError> {
///     Ok(Cleaned::Rows(7))
/// }
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// # let elsewhere = locks.lock("cleaning").acquire().await?;
/// assert_eq!(clean(&locks).await?, Cleaned::ByAnother);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "a function with `when_busy = \"skip\"` returns `Result<Option<T>, E>`, not `Result<{Self}, E>`",
    label = "what is returned if it is skipped?",
    note = "`None` means that it was skipped; other types implement `locktopus::Skipped`"
)]
pub trait Skipped {
    /// Called when the function was skipped, because another owner holds the lock.
    fn skipped() -> Self;
}

impl<T> Skipped for Option<T> {
    fn skipped() -> Self {
        None
    }
}

/// The type of `locks = ...`. Only for the attribute.
#[doc(hidden)]
#[must_use]
pub fn locks(locks: &Locktopus) -> &Locktopus {
    locks
}

/// Only for the attribute.
///
/// # Errors
///
/// The errors of the request and of the work.
#[doc(hidden)]
pub async fn run<G, T, E, F, Fut>(request: LockRequest<G>, work: F) -> Result<T, E>
where
    G: AnyGuard,
    E: From<LockError>,
    F: FnOnce(Lease) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    as_owner(request, work).await?
}

/// Only for the attribute.
///
/// # Errors
///
/// The errors of the request and of the work.
#[doc(hidden)]
pub async fn run_or_skip<G, T, E, F, Fut>(request: LockRequest<G>, work: F) -> Result<T, E>
where
    G: AnyGuard,
    T: Skipped,
    E: From<LockError>,
    F: FnOnce(Lease) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    match as_owner(request, work).await {
        Ok(done) => done,
        Err(error) if error.is_busy() => Ok(T::skipped()),
        Err(error) => Err(error.into()),
    }
}

/// As an owner, so that functions it calls can enter its locks again.
async fn as_owner<G, F, Fut>(request: LockRequest<G>, work: F) -> Result<Fut::Output, LockError>
where
    G: AnyGuard,
    F: FnOnce(Lease) -> Fut,
    Fut: Future,
{
    let owner = Owner::current().unwrap_or_default();
    owner.scope(request.run(work)).await
}
