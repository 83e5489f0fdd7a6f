//! The tools of a case.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use locktopus_core::{
    DynBackend, LockName, LockRequest, LockTarget, Locktopus, LocktopusBuilder, OwnerId,
    WaitStrategy,
};

use crate::client::Client;
use crate::flavour::Flavour;
use crate::lasting;
use crate::store::Store;
use crate::timing::{HEARTBEAT, SLACK};

/// One case on one flavour, with its own names, owners and clients. Clones share them.
#[derive(Debug, Clone)]
pub struct Ctx {
    store: Store,
    flavour: Flavour,
    name: String,
    skipped: Arc<OnceLock<String>>,
    /// How often it was restarted, each time with leases twice as long.
    doublings: u32,
}

/// By then leases of 400 ms last 3.2 s, and no test machine is that slow.
const DOUBLINGS: u32 = 3;

impl Ctx {
    pub(super) fn new(store: Store, flavour: Flavour, name: String) -> Self {
        let skipped = Arc::default();
        Self {
            store,
            flavour,
            name,
            skipped,
            doublings: 0,
        }
    }

    /// The context to restart the case with leases twice as long; `None` after the last doubling.
    pub(super) fn with_longer_leases(&self) -> Option<Self> {
        (self.doublings < DOUBLINGS).then(|| Self {
            // A new name, because the last attempt may have left something.
            name: format!("{}'", self.name),
            skipped: Arc::default(),
            doublings: self.doublings + 1,
            ..self.clone()
        })
    }

    /// The flavour the case runs on.
    #[must_use]
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// A lock name that no other case uses.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lock of this case.
    #[must_use]
    pub fn target(&self) -> LockTarget {
        self.target_with("")
    }

    /// Another lock of this case.
    #[must_use]
    pub fn target_with(&self, suffix: &str) -> LockTarget {
        self.target_named(&format!("{}{suffix}", self.name))
    }

    /// A lock with a name of the case's choice, which must contain the case's own name.
    #[must_use]
    pub fn target_named(&self, name: &str) -> LockTarget {
        let name = LockName::new(name).expect("case names are short enough");
        LockTarget::new(name, self.flavour.kind())
    }

    /// A fresh owner.
    #[must_use]
    pub fn owner(&self) -> OwnerId {
        self.flavour.owner()
    }

    /// The first client, on the lock of this case; a semaphore has one permit.
    pub async fn first(&self) -> Client {
        self.prepared(self.bare(0).await).await
    }

    /// Another client, on the lock of this case; a semaphore has one permit.
    pub async fn second(&self) -> Client {
        self.prepared(self.bare(1).await).await
    }

    /// One of the clients, on the lock of this case, unprepared.
    pub async fn bare(&self, index: usize) -> Client {
        Client::new(self.backend(index).await, self.target())
    }

    /// Makes sure that a semaphore has a permit.
    pub async fn prepared(&self, client: Client) -> Client {
        if self.flavour.is_counted() {
            let _ = client.initialise(1).await;
        }
        client
    }

    /// One of the clients that all cases share.
    pub async fn backend(&self, index: usize) -> DynBackend {
        self.store.client(index).await
    }

    /// A client for this case alone, which it may close.
    pub async fn fresh(&self) -> DynBackend {
        self.store.fresh().await
    }

    /// How long background work may take: an abandoned request may be in flight for as long as a
    /// call may take, and is then checked once more.
    pub(super) async fn settling(&self) -> Duration {
        self.backend(0).await.info().call_timeout
    }

    /// Whether subscribers of this flavour get hints on this backend.
    pub async fn wakes(&self) -> bool {
        self.flavour.announces() && self.backend(0).await.wake_ups().is_some()
    }

    /// Whether the store is a quorum, where simultaneous attempts may all fail.
    #[must_use]
    pub fn is_quorum(&self) -> bool {
        self.store.quorum
    }

    /// Whether `again` is a correct answer to the holder of `token` that repeats its attempt. It
    /// must be equal, except at a quorum through another client: there it may be later, because
    /// nodes that granted late have tokens of their own.
    #[must_use]
    pub fn repeats<T: PartialOrd>(&self, token: T, again: T, through_another: bool) -> bool {
        again == token || through_another && self.is_quorum() && again > token
    }

    /// A lease whose end the case waits for: [`SHORT`](crate::SHORT), or longer if calls take
    /// longer.
    ///
    /// Until the case begins to wait, a broken rule counts only while such a lease surely lasts.
    /// After that the machine was too slow, and the suite runs the case again with longer leases.
    #[must_use]
    pub fn short(&self) -> Duration {
        let lease = self.store.short() * 2_u32.pow(self.doublings);
        lasting::relies_on(lease);
        lease
    }

    /// Tells the suite that the case now waits for its leases to end. From now on its findings hold
    /// even if they have ended.
    pub fn waits_for_leases(&self) {
        lasting::relies_on_no_lease();
    }

    /// How late things may happen: [`SLACK`] and twenty round trips, which is more than any
    /// acquisition takes and far less than any heartbeat.
    #[must_use]
    pub fn slack(&self) -> Duration {
        SLACK + self.store.far * 20
    }

    /// Gives a client that was just started the time for something that takes `nearby` on a nearby
    /// store and up to three round trips: to try, to listen, and to try again.
    pub async fn let_it_act(&self, nearby: Duration) {
        tokio::time::sleep(nearby + self.store.far * 3).await;
    }

    /// How far away the store is: how much longer an exchange takes than on a nearby store.
    #[must_use]
    pub fn far(&self) -> Duration {
        self.store.far
    }

    /// Whether all clients together count as one process for wake-ups.
    #[must_use]
    pub fn has_shared_waiters(&self) -> bool {
        self.store.shared_waiters
    }

    /// Deletes the lock behind the backend's back. If the suite has no way to, it returns false and
    /// the case counts as skipped.
    pub async fn wipe(&self) -> bool {
        match self.store.wiper() {
            Some(wipe) => {
                wipe(self.target()).await;
                true
            }
            None => {
                self.skip("the suite was not told how to delete a lock");
                false
            }
        }
    }

    /// Everything stored under the names of this case, if the suite has a way to read it.
    pub async fn picture(&self) -> String {
        match self.store.painter() {
            Some(picture) => picture(self.name.clone()).await,
            None => String::new(),
        }
    }

    /// Records why the case does not apply.
    pub fn skip(&self, reason: impl Into<String>) {
        let _ = self.skipped.set(reason.into());
    }

    pub(super) fn case_limit(&self) -> Duration {
        self.store.case_limit()
    }

    pub(super) fn skipped(&self) -> Option<String> {
        self.skipped.get().cloned()
    }

    /// A `Locktopus` on one of the shared clients; a semaphore has one permit. Do not shut it down.
    pub async fn locks(&self, index: usize) -> Locktopus {
        let _ = self.prepared(self.bare(index).await).await;
        self.build(Locktopus::builder_dyn(self.backend(index).await))
    }

    /// A `Locktopus` on a client of its own.
    pub async fn fresh_locks(&self) -> Locktopus {
        self.build(Locktopus::builder_dyn(self.fresh().await))
    }

    fn build(&self, builder: LocktopusBuilder) -> Locktopus {
        // With messages nothing else may move a waiter, so the heartbeat must be out of reach. A
        // heartbeat is at most a twelfth of the lease, so the lease is long, too.
        let strategy = if self.flavour.announces() {
            WaitStrategy::HandOff {
                heartbeat: HEARTBEAT,
                confirm: false,
            }
        } else {
            WaitStrategy::Poll {
                min: Duration::from_millis(5),
                max: Duration::from_millis(50),
            }
        };
        let locks = builder.strategy(strategy).renewed_lease(HEARTBEAT * 20);
        locks.build().expect("the suite's settings are good")
    }

    /// A request for the lock of this case.
    pub fn request(&self, locks: &Locktopus) -> LockRequest {
        self.flavour.request(locks, &self.name)
    }
}
