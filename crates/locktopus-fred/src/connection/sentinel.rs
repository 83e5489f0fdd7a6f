//! Connections to sentinels.

use async_trait::async_trait;
use bytes::Bytes;
use locktopus_protocol::sentinels::{SentinelDialer, SentinelLine};
use locktopus_protocol::{ClientError, HostPort, PushEvent, Reply};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::connection::conn::Conn;
use crate::connection::dial::{Dialer, Purpose, Target};
use crate::connection::messages;
use crate::connection::request::Request;

/// Makes connections with the login for sentinels.
#[derive(Debug)]
pub(crate) struct SentinelConnections(pub(crate) Dialer);

#[async_trait]
impl SentinelDialer for SentinelConnections {
    async fn dial(&self, sentinel: &HostPort) -> Result<Box<dyn SentinelLine>, ClientError> {
        let target = Target::Node(sentinel.clone());
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
        let names = channels
            .iter()
            .map(|name| Bytes::from_static(name.as_bytes()));
        messages::subscribe_plain(&self.conn, &names.collect::<Vec<_>>()).await
    }

    async fn message(&self) {
        // `None` if the connection is gone.
        let _arrived = self.arrivals.lock().await.recv().await;
    }
}
