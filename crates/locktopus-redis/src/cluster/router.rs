//! Routes commands through the cluster connection of redis-rs. Disabled without the feature
//! `cluster-async`.

use std::sync::Arc;
use std::time::Duration;

use locktopus_protocol::slot_map::Redirect;
use locktopus_protocol::{ClientError, HostPort, Reply, Route, lock};
use tokio::time::Instant;

use super::{Cluster, Table};

/// How long to bypass redis-rs for the slots of a silent node.
const DOUBTED: Duration = Duration::from_secs(60);

/// The slots of a node that left a request of redis-rs unanswered.
///
/// A missing answer does not change the map of redis-rs. Suppose another node takes over. If the
/// old one resumes and still believes that it is the primary, redis-rs keeps asking it, and it may
/// grant what the new one has granted. Our own map is refreshed meanwhile.
#[derive(Debug)]
pub(super) struct Doubt {
    table: Arc<Table>,
    owner: HostPort,
    until: Instant,
}

#[cfg(feature = "cluster-async")]
mod enabled;

#[cfg(feature = "cluster-async")]
pub(crate) use enabled::Router;

#[cfg(not(feature = "cluster-async"))]
pub(crate) use disabled::Router;

impl Cluster {
    /// The cluster connection of redis-rs, if used.
    pub(crate) fn router(&self) -> Option<&Router> {
        self.router.as_ref()
    }

    /// The same, unless a request for this slot was not answered.
    pub(super) fn router_for(&self, route: Route) -> Option<&Router> {
        let is_doubted = || matches!(route, Route::Slot(slot) if self.is_doubted(slot));
        self.router().filter(|_| !is_doubted())
    }

    /// Notes that a request for this slot was not answered.
    pub(super) fn doubt(&self, slot: u16) {
        let table = self.map.table();
        let Some(owner) = table.server(slot).filter(|_| self.router.is_some()) else {
            return;
        };
        let owner = owner.clone();
        let now = Instant::now();
        let mut doubts = lock(&self.doubts);
        // Requests that go unanswered together count as one doubt.
        doubts.retain(|doubt| {
            doubt.until > now && !(doubt.owner == owner && Arc::ptr_eq(&doubt.table, &table))
        });
        doubts.push(Doubt {
            table,
            owner,
            until: now + DOUBTED,
        });
    }

    fn is_doubted(&self, slot: u16) -> bool {
        let now = Instant::now();
        let concerns =
            |doubt: &Doubt| doubt.until > now && doubt.table.server(slot) == Some(&doubt.owner);
        lock(&self.doubts).iter().any(concerns)
    }

    /// Sends a command through redis-rs. Without retries, redis-rs does not follow redirects.
    pub(super) async fn routed(
        &self,
        router: &Router,
        route: Route,
        args: &[&[u8]],
    ) -> Result<Reply, ClientError> {
        let answer = router.command(route, args).await;
        let Err(error) = &answer else { return answer };
        // redis-rs does not say which node refused, so a redirect to "the same host" is useless.
        let unknown = HostPort {
            host: String::new(),
            port: 0,
        };
        if let ClientError::Rejected { code, message } = error
            && matches!(code.as_str(), "MOVED" | "ASK")
            && let Some(redirect) = Redirect::parse(message, &unknown)
            && !redirect.node.host.is_empty()
        {
            let asking = code == "ASK";
            if !asking {
                self.moved(message, &unknown);
            }
            return self.redirected_to(&redirect.node, args, asking).await;
        }
        let in_the_wrong_place = match error {
            ClientError::Rejected { code, .. } => matches!(
                code.as_str(),
                "MOVED" | "ASK" | "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "LOADING"
            ),
            ClientError::NotSent(_) | ClientError::MaybeExecuted(_) => true,
        };
        if in_the_wrong_place {
            // Subscriptions may be misplaced too.
            self.map.mark_stale();
        }
        if let (ClientError::MaybeExecuted(_), Route::Slot(slot)) = (error, route) {
            self.doubt(slot);
        }
        if matches!(error, ClientError::Rejected { code, .. } if code == "READONLY") {
            self.disturbances.send_modify(|count| *count += 1);
        }
        answer
    }
}

#[cfg(not(feature = "cluster-async"))]
mod disabled {
    use locktopus_protocol::{
        Budget, ClientError, ConnectError, ConnectOptions, HostPort, Reply, Route,
    };

    /// Cannot be created: [`Router::new`] fails.
    #[derive(Debug)]
    pub(crate) enum Router {}

    impl Router {
        pub(crate) fn new(
            _: &ConnectOptions,
            _: &[HostPort],
            _: Budget,
        ) -> Result<Self, ConnectError> {
            Err(ConnectError::NotBuiltIn {
                option: "cluster_router",
                feature: "cluster-async",
                library: "locktopus-redis",
            })
        }

        pub(crate) fn again(&self) -> Self {
            match *self {}
        }

        pub(crate) fn sent(&self) -> u64 {
            match *self {}
        }

        #[expect(
            clippy::unused_async,
            reason = "the other build waits for an answer here"
        )]
        pub(crate) async fn command(&self, _: Route, _: &[&[u8]]) -> Result<Reply, ClientError> {
            match *self {}
        }

        pub(crate) fn close(&self) {
            match *self {}
        }
    }
}
