//! Commands by way of the cluster connection of redis-rs; without the feature `cluster-async`, there is none.

use locktopus_protocol::slot_map::Redirect;
use locktopus_protocol::{ClientError, HostPort, Reply, Route};

use super::Cluster;

#[cfg(feature = "cluster-async")]
mod enabled;

#[cfg(feature = "cluster-async")]
pub(crate) use enabled::Router;

#[cfg(not(feature = "cluster-async"))]
pub(crate) use disabled::Router;

impl Cluster {
    /// The connection of redis-rs, if it is used.
    pub(crate) fn router(&self) -> Option<&Router> {
        self.router.as_ref()
    }

    /// By way of redis-rs, which without retries follows no redirect.
    pub(super) async fn routed(
        &self,
        router: &Router,
        route: Route,
        args: &[&[u8]],
    ) -> Result<Reply, ClientError> {
        let answer = router.command(route, args).await;
        let Err(error) = &answer else { return answer };
        // It does not tell who refused, so a redirect to "the same host" leads nowhere.
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
            return self.redirected_to(redirect.node, args, asking).await;
        }
        let in_the_wrong_place = match error {
            ClientError::Rejected { code, .. } => matches!(
                code.as_str(),
                "MOVED" | "ASK" | "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "LOADING"
            ),
            ClientError::NotSent(_) | ClientError::MaybeExecuted(_) => true,
        };
        if in_the_wrong_place {
            // Then subscriptions may be, too.
            self.mark_stale();
        }
        if matches!(error, ClientError::Rejected { code, .. } if code == "READONLY") {
            self.unrest.send_modify(|count| *count += 1);
        }
        answer
    }
}

#[cfg(not(feature = "cluster-async"))]
mod disabled {
    use locktopus_protocol::{Budget, ClientError, ConnectOptions, HostPort, Reply, Route};

    use crate::connection::error::ConnectError;

    /// Never exists: [`Router::new`] refuses.
    #[derive(Debug)]
    pub(crate) enum Router {}

    impl Router {
        pub(crate) fn new(
            _: &ConnectOptions,
            _: &[HostPort],
            _: Budget,
        ) -> Result<Self, ConnectError> {
            Err(ConnectError::RouterNotBuiltIn)
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
