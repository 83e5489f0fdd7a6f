//! Lists of held locks, by prefix, a page at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use locktopus_contract::clock::timer_in;
use locktopus_contract::{BackendError, LockKind, LockName, LockTarget, RawName, ScanCursor};

use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::handles::lock_request::{LockRequest, RequestName};

/// The locks of a namespace that are held. Made by [`Locktopus::list`](crate::Locktopus::list).
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = locktopus::connect_with("memory:", |builder| builder.namespace("shop:")).await?;
/// let _guard = locks.lock("invoice:42").acquire().await?;
/// let mut list = locks.list("")?;
/// let page = list.next_page().await?.expect("at least one page");
/// assert_eq!(page[0].name().as_str(), "shop:invoice:42");
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "nothing is listed until `next_page` is awaited"]
pub struct LockList {
    services: Arc<Services>,
    prefix: String,
    cursor: Option<ScanCursor>,
    done: bool,
    left_out: BTreeSet<String>,
}

impl LockList {
    pub(crate) fn new(services: &Arc<Services>, prefix: &RawName) -> Result<Self, LockError> {
        let settings = &services.settings;
        let prefix = if prefix.as_ref().is_empty() {
            settings.namespace.clone()
        } else {
            let prefix = settings.names.encode(&settings.namespace, prefix)?;
            prefix.as_str().to_owned()
        };
        Ok(Self {
            services: Arc::clone(services),
            prefix,
            cursor: None,
            done: false,
            left_out: BTreeSet::new(),
        })
    }

    /// Returns the next page; `None` after the last one. A page may be empty, and a lock may appear
    /// twice. Locks that are taken or released meanwhile may or may not appear. Locks of other
    /// libraries whose names Locktopus refuses are [left out](Self::left_out).
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
        let deadline = timer_in(self.services.call_timeout());
        let backend = &self.services.backend;
        let call = backend.scan(&self.prefix, self.cursor.clone(), deadline);
        let page = self.services.within(deadline, call).await?;
        self.done = page.next.is_none();
        self.cursor = page.next;
        let mut listed = Vec::with_capacity(page.locks.len());
        for found in page.locks {
            let name = LockName::new(&found.name).ok().filter(|name| {
                let target = LockTarget::new(name.clone(), found.kind.clone());
                backend.check(&target).is_ok()
            });
            match name {
                Some(name) => listed.push(ListedLock {
                    services: Arc::clone(&self.services),
                    name,
                    kind: found.kind,
                }),
                None => {
                    self.left_out.insert(found.name);
                }
            }
        }
        Ok(Some(listed))
    }

    /// The held locks of other libraries that the pages so far left out, because Locktopus refuses
    /// their names: too long, or the name of something kept beside another lock. As stored, sorted.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let mut list = locks.list("")?;
    /// while list.next_page().await?.is_some() {}
    /// for name in list.left_out() {
    ///     println!("cannot be used here: {name}");
    /// }
    /// # Ok(()) }
    /// ```
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        self.left_out.iter().map(String::as_str)
    }
}

/// A lock that was held when it was listed.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = locktopus::connect_with("memory:", |builder| builder.namespace("shop:")).await?;
/// let _guard = locks.lock("invoice:42").acquire().await?;
/// let page = locks.list("")?.next_page().await?.expect("at least one page");
/// let listed = &page[0];
/// assert_eq!((listed.kind().as_str(), listed.name().as_str()), ("lock", "shop:invoice:42"));
/// assert_eq!(listed.given_name().as_deref(), Some(b"invoice:42".as_slice()));
/// listed.request().force_release("example").await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct ListedLock {
    services: Arc<Services>,
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
        let settings = &self.services.settings;
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
        let name = RequestName::Stored(self.name.clone());
        LockRequest::new(Arc::clone(&self.services), name, self.kind.clone())
    }
}
