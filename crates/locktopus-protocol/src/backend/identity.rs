//! The identity of a server (run id, uptime), for quorums: a restarted server has forgotten its
//! locks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use locktopus_contract::{
    BackendError, BackendErrorKind, Executed, NodeIdentity, NodeProbe, Sighting,
};
use tokio::time::Instant;

use super::context::Contexts;
use super::diagnose::clocks::server_time;
use crate::client::{Deployment, Reply, Route};
use crate::execution::executor::Executor;

/// Notes about other nodes: a hash from a node's label to the run id and the time when a client
/// first saw it, in milliseconds since 1970.
const RUNS: &[u8] = b"locktopus_history_runs";

/// Asks a standalone server for its identity. Created by
/// [`RedisBackend::probe`](crate::RedisBackend::probe).
#[derive(Debug)]
pub(crate) struct ServerProbe {
    contexts: Arc<Contexts>,
}

impl ServerProbe {
    pub(crate) fn new(contexts: &Arc<Contexts>) -> Result<Self, BackendError> {
        let executor = &contexts.any().executor;
        let deployment = executor.client().deployment();
        if deployment != Deployment::Standalone {
            let message = format!(
                "a node of a quorum must be one standalone server, not a {deployment}: what is promoted may have \
                 lost locks without a restart"
            );
            return Err(executor.error(BackendErrorKind::Unsupported, Executed::No, message));
        }
        let contexts = Arc::clone(contexts);
        Ok(Self { contexts })
    }
}

/// The server's clock, as time since 1970.
async fn now(executor: &Executor, deadline: Instant) -> Result<Duration, BackendError> {
    let reply = executor.ask(Route::Any, &[b"TIME"], deadline).await?;
    let time = server_time(&reply).and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    time.ok_or_else(|| {
        let message = "TIME gave an answer that makes no sense";
        executor.error(BackendErrorKind::Protocol, Executed::No, message)
    })
}

#[async_trait]
impl NodeProbe for ServerProbe {
    fn generation(&self) -> u64 {
        match self.contexts.here() {
            Ok(context) => context.generation(),
            Err(_) => self.contexts.any().generation(),
        }
    }

    async fn identity(&self, deadline: Instant) -> Result<NodeIdentity, BackendError> {
        let context = self.contexts.here()?;
        let executor = &context.executor;
        // Both at once, so that a distant node takes only one round trip.
        let section = |name: &'static [u8]| async move {
            let words: [&[u8]; 2] = [b"INFO", name];
            let reply = executor.ask(Route::Any, &words, deadline).await;
            reply.map(|reply| fields(&reply))
        };
        let (server, replication) = tokio::try_join!(section(b"server"), section(b"replication"))?;
        let missing = |field: &str| {
            let message = format!("INFO does not tell {field}; may this user ask?");
            executor.error(BackendErrorKind::Protocol, Executed::No, message)
        };
        let run_id = server.get("run_id").ok_or_else(|| missing("run_id"))?;
        let uptime = server.get("uptime_in_seconds");
        let uptime: Option<i64> = uptime.and_then(|seconds| seconds.parse().ok());
        let uptime = uptime.ok_or_else(|| missing("uptime_in_seconds"))?;
        // The server reports whole seconds, perhaps rounded up. The value is negative if its clock
        // was set back since it started.
        let uptime = Duration::from_secs(u64::try_from(uptime.saturating_sub(1)).unwrap_or(0));
        let identity = NodeIdentity::new(run_id.as_str(), uptime);
        Ok(match replication.get("master_replid") {
            Some(id) => identity.with_replication_id(id.as_str()),
            None => identity,
        })
    }

    async fn recall(
        &self,
        label: &str,
        deadline: Instant,
    ) -> Result<Option<Sighting>, BackendError> {
        let question: [&[u8]; 3] = [b"HGET", RUNS, label.as_bytes()];
        let executor = &self.contexts.here()?.executor;
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

    async fn note(
        &self,
        label: &str,
        sighting: &Sighting,
        deadline: Instant,
    ) -> Result<(), BackendError> {
        let executor = &self.contexts.here()?.executor;
        let at = now(executor, deadline).await?.saturating_sub(sighting.age);
        let text = format!("{} {}", at.as_millis(), sighting.run_id);
        let words: [&[u8]; 4] = [b"HSET", RUNS, label.as_bytes(), text.as_bytes()];
        let told = executor.ask(Route::Any, &words, deadline).await;
        told.map(drop)
    }
}

/// The `name:value` lines of an `INFO` answer.
fn fields(reply: &Reply) -> HashMap<String, String> {
    let Reply::Bytes(text) = reply else {
        return HashMap::new();
    };
    let text = String::from_utf8_lossy(text);
    text.lines()
        .filter_map(|line| line.trim_end().split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
