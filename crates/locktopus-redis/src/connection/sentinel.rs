//! Connections to sentinels, and to the primary that they name.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locktopus_protocol::sentinels::{NamedPrimary, SentinelDialer, SentinelLine, Sentinels};
use locktopus_protocol::{ClientError, HostPort, ROLE_QUESTION, Reply, says_replica};
use redis::{Pipeline, PushInfo, PushKind, Value};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::connection::dial::Dialer;
use crate::connection::error::rejected;
use crate::connection::health::{Health, Listener};
use crate::connection::send::Live;

/// Makes connections with the login for sentinels.
#[derive(Debug)]
pub(crate) struct SentinelConnections(pub(crate) Dialer);

#[async_trait]
impl SentinelDialer for SentinelConnections {
    async fn dial(&self, sentinel: &HostPort) -> Result<Box<dyn SentinelLine>, ClientError> {
        let arrivals = Arc::new(Arrivals::default());
        let listener: Arc<dyn Listener> = Arc::clone(&arrivals) as _;
        let live = self.0.dial(sentinel, Some(&listener)).await?;
        Ok(Box::new(Line { live, arrivals }))
    }
}

struct Line {
    live: Live,
    arrivals: Arc<Arrivals>,
}

#[async_trait]
impl SentinelLine for Line {
    async fn ask(
        &self,
        commands: &[&[&[u8]]],
    ) -> Result<Vec<Result<Reply, ClientError>>, ClientError> {
        let answers = self.live.clone().send_each(commands).await?;
        Ok(answers.replies)
    }

    async fn subscribe(&self, channels: &[&'static str]) -> Result<(), ClientError> {
        let mut pipeline = Pipeline::with_capacity(channels.len());
        for channel in channels {
            pipeline.cmd("SUBSCRIBE").arg(*channel);
        }
        let answers = self.live.clone().send_all(&pipeline).await?;
        let refused = answers.iter().find_map(|answer| match answer {
            Value::ServerError(error) => Some(rejected(error)),
            _ => None,
        });
        refused.map_or(Ok(()), Err)
    }

    async fn message(&self) {
        self.arrivals.0.notified().await;
    }
}

/// Signals that a message arrived or the connection was lost.
#[derive(Debug, Default)]
struct Arrivals(Notify);

impl Listener for Arrivals {
    fn pushed(&self, _: &Arc<Health>, push: PushInfo) {
        if push.kind == PushKind::Message {
            self.0.notify_one();
        }
    }

    fn lost(&self, _: &HostPort, _: &'static str) {
        self.0.notify_one();
    }
}

/// Checks within `limit` that the named server is not a replica, which an isolated sentinel may
/// name. Gives the connection up as soon as the sentinels name a newer primary.
pub(crate) async fn follow(
    sentinels: &Arc<Sentinels>,
    named: NamedPrimary,
    mut live: Live,
    limit: Duration,
) -> Result<Live, ClientError> {
    let role = timeout(limit, live.send(&[ROLE_QUESTION.as_bytes()])).await;
    let health = live.health();
    let problem = match role {
        Ok(Ok(role)) if says_replica(&role) => {
            Some("is a replica, although sentinels name it".to_owned())
        }
        Ok(Ok(_) | Err(ClientError::Rejected { .. })) => None,
        Ok(Err(error)) => Some(format!("does not say what it is: {error}")),
        Err(_) => Some(format!("does not say what it is within {limit:?}")),
    };
    if let Some(problem) = problem {
        health.retire();
        let server = health.server();
        return Err(ClientError::NotSent(format!("{server} {problem}")));
    }
    let (sentinels, replaced) = (Arc::clone(sentinels), Arc::clone(health));
    let task = tokio::spawn(async move {
        sentinels.replaced(&named).await;
        replaced.kill("the sentinels name another primary");
    });
    health.accompany(task.abort_handle());
    Ok(live)
}
