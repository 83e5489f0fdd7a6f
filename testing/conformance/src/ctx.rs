//! What a case has in hand.

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

/// One case on one flavour: names, owners and clients of its own. Clones are the same.
#[derive(Debug, Clone)]
pub struct Ctx {
    store: Store,
    flavour: Flavour,
    name: String,
    skipped: Arc<OnceLock<String>>,
    /// How often it was begun anew, each time with leases twice as long.
    doublings: u32,
}

/// Leases of 400 ms are 3.2 s long then: no machine is that slow on which tests are run.
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

    /// For the same case, from its beginning, with leases twice as long; `None` if that was done
    /// often enough.
    pub(super) fn with_longer_leases(&self) -> Option<Self> {
        (self.doublings < DOUBLINGS).then(|| Self {
            // What the last attempt left there is not looked at again.
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

    /// A lock whose name this case makes up. It must contain the case's own.
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

    /// One of the clients, on the lock of this case as it is.
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

    /// A client of this case alone, which it may close.
    pub async fn fresh(&self) -> DynBackend {
        self.store.fresh().await
    }

    /// How long things may go on in the background: a request that nobody waited for may be under
    /// way for as long as a call may take, and is looked for again after that.
    pub(super) async fn settling(&self) -> Duration {
        self.backend(0).await.info().call_timeout
    }

    /// Whether subscribers of this flavour get hints on this backend.
    pub async fn wakes(&self) -> bool {
        self.flavour.announces() && self.backend(0).await.wake_ups().is_some()
    }

    /// Whether the store is a quorum, where nobody may win if several try at the same moment.
    #[must_use]
    pub fn is_quorum(&self) -> bool {
        self.store.quorum
    }

    /// Whether `again` is what a holder of `token` must get when it repeats its attempt: the same,
    /// but of a quorum through another client perhaps a later one, because nodes that were late to
    /// grant have tokens of their own.
    #[must_use]
    pub fn repeats<T: PartialOrd>(&self, token: T, again: T, through_another: bool) -> bool {
        again == token || through_another && self.is_quorum() && again > token
    }

    /// A lease that the case waits for: [`SHORT`](crate::SHORT), or longer where a call takes
    /// longer.
    ///
    /// Until the case begins to wait, a rule that it finds broken later than such a lease may last
    /// says nothing about the store: a busy machine was too slow, and the case is run again with a
    /// longer one.
    #[must_use]
    pub fn short(&self) -> Duration {
        let lease = self.store.short() * 2_u32.pow(self.doublings);
        lasting::relies_on(lease);
        lease
    }

    /// Says that the case begins to wait for its leases to end, and that what it finds from now on
    /// is true whether they have ended or not.
    pub fn waits_for_leases(&self) {
        lasting::relies_on_no_lease();
    }

    /// How much later than planned things may happen: [`SLACK`], and a score of round trips, which
    /// is more than any acquisition takes and far less than any heartbeat.
    #[must_use]
    pub fn slack(&self) -> Duration {
        SLACK + self.store.far * 20
    }

    /// Lets a client that was just started get something done that takes `nearby` on a store
    /// nearby, and up to three round trips: to ask, to listen, and to ask again.
    pub async fn let_it_act(&self, nearby: Duration) {
        tokio::time::sleep(nearby + self.store.far * 3).await;
    }

    /// How far away the store is: what an exchange takes beyond what it takes nearby.
    #[must_use]
    pub fn far(&self) -> Duration {
        self.store.far
    }

    /// Whether all clients together count as one process for wake-ups.
    #[must_use]
    pub fn has_shared_waiters(&self) -> bool {
        self.store.shared_waiters
    }

    /// Deletes the lock behind the backend's back. False, and the case counts as skipped, if the
    /// suite was not told how.
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

    /// Everything that is stored under the names of this case, if the suite was told how to see it.
    pub async fn picture(&self) -> String {
        match self.store.painter() {
            Some(picture) => picture(self.name.clone()).await,
            None => String::new(),
        }
    }

    /// Says why the case does not apply.
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
        // Where messages exist nothing else may get a waiter on: the heartbeat is out of reach. A
        // heartbeat is at most a twelfth of the lease, so that is long, too.
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
