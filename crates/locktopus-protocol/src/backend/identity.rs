//! The identity of a server (run id, uptime), for quorums: a restarted server has forgotten its
//! locks.

use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{
    BackendError, BackendErrorKind, Executed, NodeIdentity, NodeProbe, Sighting,
};
use tokio::time::Instant;

use super::context::Contexts;
use crate::client::{Deployment, Reply, Route};
use crate::execution::executor::Executor;
use crate::wire::reply;

/// Notes about other nodes: a hash from a node's label to the run id and the time when a client
/// first saw it, in milliseconds since 1970.
const RUNS: &[u8] = b"locktopus_history_runs";

/// # Errors
///
/// Fails unless the client is connected to one standalone server.
pub(super) fn check(executor: &Executor) -> Result<(), BackendError> {
    match executor.client().deployment() {
        Deployment::Standalone => Ok(()),
        deployment => Err(executor.unsupported(format!(
            "a node of a quorum must be one standalone server, not a {deployment}: what is promoted may have \
             lost locks without a restart"
        ))),
    }
}

/// The server's clock, as time since 1970.
async fn now(executor: &Executor, deadline: Instant) -> Result<Duration, BackendError> {
    let reply = executor.ask(Route::Any, &[b"TIME"], deadline).await?;
    let micros = reply::time(&reply).and_then(|micros| u64::try_from(micros).ok());
    micros.map(Duration::from_micros).ok_or_else(|| {
        let message = "TIME gave an answer that makes no sense";
        executor.error(BackendErrorKind::Protocol, Executed::No, message)
    })
}

#[async_trait]
impl NodeProbe for Contexts {
    fn generation(&self) -> u64 {
        match self.here() {
            Ok(context) => context.generation(),
            Err(_) => self.first.generation(),
        }
    }

    async fn identity(&self, deadline: Instant) -> Result<NodeIdentity, BackendError> {
        let context = self.here()?;
        let executor = &context.executor;
        // Both at once, so that a distant node takes only one round trip.
        let section = |name: &'static [u8]| async move {
            let words: [&[u8]; 2] = [b"INFO", name];
            let reply = executor.ask(Route::Any, &words, deadline).await;
            reply.map(|reply| match reply {
                Reply::Bytes(text) => String::from_utf8_lossy(&text).into_owned(),
                _ => String::new(),
            })
        };
        let (server, replication) = tokio::try_join!(section(b"server"), section(b"replication"))?;
        let missing = |field: &str| {
            let message = format!("INFO does not tell {field}; may this user ask?");
            executor.error(BackendErrorKind::Protocol, Executed::No, message)
        };
        let run_id = reply::info(&server, "run_id").ok_or_else(|| missing("run_id"))?;
        let uptime = reply::info(&server, "uptime_in_seconds");
        let uptime: Option<i64> = uptime.and_then(|seconds| seconds.parse().ok());
        let uptime = uptime.ok_or_else(|| missing("uptime_in_seconds"))?;
        // The server reports whole seconds, perhaps rounded up. The value is negative if its clock
        // was set back since it started.
        let uptime = Duration::from_secs(u64::try_from(uptime.saturating_sub(1)).unwrap_or(0));
        let identity = NodeIdentity::new(run_id, uptime);
        Ok(match reply::info(&replication, "master_replid") {
            Some(id) => identity.with_replication_id(id),
            None => identity,
        })
    }

    async fn sighting(
        &self,
        label: &str,
        deadline: Instant,
    ) -> Result<Option<Sighting>, BackendError> {
        let question: [&[u8]; 3] = [b"HGET", RUNS, label.as_bytes()];
        let executor = &self.here()?.executor;
        let told = executor.ask(Route::Any, &question, deadline);
        let (now, told) = tokio::try_join!(now(executor, deadline), told)?;
        let Reply::Bytes(text) = told else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&text);
        let seen = text.split_once(' ').and_then(|(at, run_id)| {
            // A note from the future has no known age: the clock was set back since.
            let age = now.checked_sub(Duration::from_millis(at.parse().ok()?));
            Some(Sighting::new(run_id, age.unwrap_or(Duration::MAX)))
        });
        Ok(seen)
    }

    async fn note_sighting(
        &self,
        label: &str,
        sighting: &Sighting,
        deadline: Instant,
    ) -> Result<(), BackendError> {
        let executor = &self.here()?.executor;
        let at = now(executor, deadline).await?.saturating_sub(sighting.age);
        let text = format!("{} {}", at.as_millis(), sighting.run_id);
        let words: [&[u8]; 4] = [b"HSET", RUNS, label.as_bytes(), text.as_bytes()];
        let told = executor.ask(Route::Any, &words, deadline).await;
        told.map(drop)
    }
}
