//! A store under test: how to connect to it, and its declared properties.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{DynBackend, LockTarget};
use tokio::sync::OnceCell;

use crate::timing::SHORT;

type Connect = dyn Fn() -> Pin<Box<dyn Future<Output = DynBackend> + Send>> + Send + Sync;
type Picture = dyn Fn(String) -> Pin<Box<dyn Future<Output = String> + Send>> + Send + Sync;
type Wipe = dyn Fn(LockTarget) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;

/// How many clients the cases share. Cases that close their client connect another one.
const CLIENTS: usize = 3;
/// How many times longer short leases are on a quorum.
const QUORUM_FACTOR: u32 = 10;
/// Longer than any case takes on a healthy store nearby.
const CASE_LIMIT: Duration = Duration::from_secs(60);
/// More consecutive exchanges than any case makes.
const EXCHANGES: u32 = 400;
/// Exchanges that fit into a short lease: a case must check what it holds before the lease ends.
const EXCHANGES_WITHIN_SHORT: u32 = 8;

/// A store, and the clients that the cases share. Clones share them too.
#[derive(Clone)]
pub(crate) struct Store {
    connect: Arc<Connect>,
    wipe: Option<Arc<Wipe>>,
    picture: Option<Arc<Picture>>,
    clients: Arc<[OnceCell<DynBackend>; CLIENTS]>,
    /// A release wakes one waiter of all clients together.
    pub(crate) shared_waiters: bool,
    /// If several clients try at the same moment, they may all fail.
    pub(crate) quorum: bool,
    /// How much longer an exchange takes than on a nearby store.
    pub(crate) far: Duration,
}

impl Store {
    pub(crate) fn new<F, Fut>(connect: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = DynBackend> + Send + 'static,
    {
        Self {
            connect: Arc::new(move || Box::pin(connect())),
            wipe: None,
            picture: None,
            clients: Arc::default(),
            shared_waiters: false,
            quorum: false,
            far: Duration::ZERO,
        }
    }

    pub(crate) fn set_wipe<F, Fut>(&mut self, wipe: F)
    where
        F: Fn(LockTarget) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.wipe = Some(Arc::new(move |target| Box::pin(wipe(target))));
    }

    pub(crate) fn set_picture<F, Fut>(&mut self, picture: F)
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = String> + Send + 'static,
    {
        self.picture = Some(Arc::new(move |name| Box::pin(picture(name))));
    }

    /// One of the clients that all cases share.
    pub(crate) async fn client(&self, index: usize) -> DynBackend {
        let client = self.clients[index % CLIENTS].get_or_init(|| self.fresh());
        Arc::clone(client.await)
    }

    /// Another client.
    pub(crate) async fn fresh(&self) -> DynBackend {
        (self.connect)().await
    }

    /// Closes the clients that the cases share.
    pub(crate) async fn close(&self) {
        for client in self.clients.iter().filter_map(OnceCell::get) {
            client.close().await;
        }
    }

    pub(crate) fn painter(&self) -> Option<&Picture> {
        self.picture.as_deref()
    }

    pub(crate) fn wiper(&self) -> Option<&Wipe> {
        self.wipe.as_deref()
    }

    /// The length of leases whose end a case waits for.
    pub(crate) fn short(&self) -> Duration {
        let nearby = SHORT * if self.quorum { QUORUM_FACTOR } else { 1 };
        nearby + self.far * EXCHANGES_WITHIN_SHORT
    }

    /// How long a case may take.
    pub(crate) fn case_limit(&self) -> Duration {
        CASE_LIMIT + self.far * EXCHANGES
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("shared_waiters", &self.shared_waiters)
            .field("quorum", &self.quorum)
            .field("far", &self.far)
            .finish_non_exhaustive()
    }
}
