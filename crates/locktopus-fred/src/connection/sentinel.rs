//! Connections to sentinels.

use async_trait::async_trait;
use locktopus_protocol::sentinels::{SentinelDialer, SentinelLine, Target};
use locktopus_protocol::{Channel, ChannelFlavour, ClientError, HostPort, PushEvent, Reply};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::connection::conn::Conn;
use crate::connection::dial::{Dialer, Purpose};
use crate::connection::messages;
use crate::connection::request::Request;

/// Makes connections with the login for sentinels.
#[derive(Debug)]
pub(crate) struct SentinelConnections(pub(crate) Dialer);

#[async_trait]
impl SentinelDialer for SentinelConnections {
    async fn dial(&self, sentinel: &HostPort) -> Result<Box<dyn SentinelLine>, ClientError> {
        let target = Target::Server(sentinel.clone());
        let conn = self.0.dial(&target, Purpose::Commands).await;
        let conn = conn.map_err(|why| {
            ClientError::NotSent(format!("cannot connect to sentinel {sentinel}: {why}"))
        })?;
        let (sender, arrivals) = unbounded_channel();
        messages::forward(&conn, sender);
        Ok(Box::new(Line {
            conn,
            arrivals: Mutex::new(arrivals),
        }))
    }
}

struct Line {
    conn: Conn,
    arrivals: Mutex<UnboundedReceiver<PushEvent>>,
}

#[async_trait]
impl SentinelLine for Line {
    async fn ask(
        &self,
        commands: &[&[&[u8]]],
    ) -> Result<Vec<Result<Reply, ClientError>>, ClientError> {
        let answers = self.conn.send_each(Request::each(commands)?).await?;
        Ok(answers.replies)
    }

    async fn subscribe(&self, channels: &[&'static str]) -> Result<(), ClientError> {
        let plain = channels.iter().map(|name| Channel {
            name: (*name).into(),
            flavour: ChannelFlavour::Plain,
        });
        let plain: Vec<_> = plain.collect();
        let outcomes = messages::subscribe(&self.conn, &plain).await;
        outcomes.into_iter().collect()
    }

    async fn message(&self) {
        // `None` if the connection is gone.
        let _arrived = self.arrivals.lock().await.recv().await;
    }
}
