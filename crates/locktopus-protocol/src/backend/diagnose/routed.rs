//! Whether a proxy spreads the keys over several servers.
//!
//! It sends a script for several locks to the server of the first one. Renewals do not find the
//! others there, and attempts take them although they are held elsewhere.

use futures_util::future::join_all;
use locktopus_contract::{
    ExtendOutcome, ExtendRequest, Finding, LockBackend as _, SafetyMode, Severity,
};
use tokio::time::Instant;

use super::ask::finding;
use super::probe::probe;
use crate::backend::RedisBackend;
use crate::backend::context::Context;
use crate::client::Deployment;

/// How many other locks are named before the held one. With two servers, such a proxy passes once
/// in 64 times.
const OTHERS: u8 = 6;

/// Extends a held lock in one script with each of several others, which come first. If a script
/// does not find it, calls go alone from now on.
pub(super) async fn check(
    backend: &RedisBackend,
    context: &Context,
    held: &ExtendRequest,
    deadline: Instant,
) -> Option<Finding> {
    let single = context.executor.client().deployment() == Deployment::Standalone;
    // Proxies have no `WAIT`.
    if !single || matches!(context.options.safety, SafetyMode::Replicated { .. }) {
        return None;
    }
    let asked = (1..=OTHERS).filter_map(|number| {
        let other = ExtendRequest {
            target: probe(context, number)?,
            ..held.clone()
        };
        Some(async move { backend.extend(&[other, held.clone()], deadline).await.pop() })
    });
    let mut answers = join_all(asked).await.into_iter().flatten();
    let astray = answers.any(|answer| match answer {
        Ok(outcome) => outcome != ExtendOutcome::Extended,
        Err(error) => error.message().starts_with("CROSSSLOT"),
    });
    astray.then(|| {
        if let Some(gather) = &context.gather {
            gather.keep_apart();
        }
        let message = "requests for several locks do not reach the servers of all: a proxy spreads the keys over several servers, so \
                       renewals may find held locks lost; connect to one server, or to a cluster with redis-cluster://";
        finding(Severity::Danger, "routing", message)
    })
}
