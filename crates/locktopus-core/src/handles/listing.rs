//! Lists of held locks, by prefix, a page at a time.

use std::fmt;
use std::sync::Arc;

use locktopus_contract::clock::timer_in;
use locktopus_contract::{BackendError, LockKind, LockName, RawName, ScanCursor};

use crate::engine::acquisition::Engine;
use crate::engine::error::LockError;
use crate::handles::lock_request::{LockRequest, Named};

/// The locks of a namespace that are held. Made by [`Locktopus::list`](crate::Locktopus::list).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = locktopus::connect_with("memory:", |builder| builder.namespace("shop:")).await?;
/// let _guard = locks.lock("invoice:42").acquire().await?;
/// let mut list = locks.list("")?;
/// let page = list.next_page().await?.expect("at least one page");
/// assert_eq!(page[0].name().as_str(), "shop:invoice:42");
/// # Ok(()) }
/// ```
#[must_use = "nothing is listed until `next_page` is awaited"]
pub struct LockList {
    engine: Arc<Engine>,
    prefix: String,
    cursor: Option<ScanCursor>,
    done: bool,
}

impl LockList {
    pub(crate) fn new(engine: &Arc<Engine>, prefix: &RawName) -> Result<Self, LockError> {
        let settings = &engine.settings;
        let prefix = if prefix.as_ref().is_empty() {
            settings.namespace.clone()
        } else {
            let prefix = settings.names.encode(&settings.namespace, prefix)?;
            prefix.as_str().to_owned()
        };
        Ok(Self {
            engine: Arc::clone(engine),
            prefix,
            cursor: None,
            done: false,
        })
    }

    /// Returns the next page; `None` after the last one. A page may be empty, and a lock may appear
    /// twice. Locks that are taken or released meanwhile may or may not appear. Names longer than
    /// [`MAX_NAME_BYTES`](crate::MAX_NAME_BYTES) are left out: Locktopus never makes them.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let _guard = locks.lock("invoice:42").acquire().await?;
    /// let mut list = locks.list("invoice:")?;
    /// let mut names = Vec::new();
    /// while let Some(page) = list.next_page().await? {
    ///     names.extend(page.iter().map(|lock| lock.name().to_string()));
    /// }
    /// assert_eq!(names, ["invoice:42"]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The backend's error. You can ask for the same page again.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a page that was not returned comes with the next call.
    pub async fn next_page(&mut self) -> Result<Option<Vec<ListedLock>>, BackendError> {
        if self.done {
            return Ok(None);
        }
        let deadline = timer_in(self.engine.call_timeout());
        let scan = self
            .engine
            .scan(&self.prefix, self.cursor.clone(), deadline);
        let page = scan.await?;
        self.done = page.next.is_none();
        self.cursor = page.next;
        let listed = page.locks.into_iter().filter_map(|found| {
            Some(ListedLock {
                engine: Arc::clone(&self.engine),
                name: LockName::new(found.name).ok()?,
                kind: found.kind,
            })
        });
        Ok(Some(listed.collect()))
    }
}

impl fmt::Debug for LockList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockList")
            .field("prefix", &self.prefix)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

/// A lock that was held when it was listed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = locktopus::connect_with("memory:", |builder| builder.namespace("shop:")).await?;
/// let _guard = locks.lock("invoice:42").acquire().await?;
/// let page = locks.list("")?.next_page().await?.expect("at least one page");
/// let listed = &page[0];
/// assert_eq!((listed.kind().as_str(), listed.name().as_str()), ("lock", "shop:invoice:42"));
/// assert_eq!(listed.given_name().as_deref(), Some(b"invoice:42".as_slice()));
/// listed.request().force_release("example").await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ListedLock {
    engine: Arc<Engine>,
    name: LockName,
    kind: LockKind,
}

impl ListedLock {
    /// The lock's name, namespace included.
    #[must_use]
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// The name to request it by: without the namespace, and before
    /// [encoding](crate::LocktopusBuilder::names). `None` if no requested name is stored like this.
    #[must_use]
    pub fn given_name(&self) -> Option<Vec<u8>> {
        let settings = &self.engine.settings;
        settings.names.decode(&settings.namespace, &self.name).ok()
    }

    /// The kind, judged by the stored bytes. Kinds with the same layout look alike.
    #[must_use]
    pub fn kind(&self) -> &LockKind {
        &self.kind
    }

    /// A request for this lock, to [inspect](LockRequest::inspect) it or to [release it by
    /// force](LockRequest::force_release).
    pub fn request(&self) -> LockRequest {
        let name = Named::Stored(self.name.clone());
        LockRequest::new(Arc::clone(&self.engine), name, self.kind.clone())
    }
}

impl fmt::Debug for ListedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListedLock")
            .field("name", &self.name)
            .field("kind", &self.kind.as_str())
            .finish_non_exhaustive()
    }
}
