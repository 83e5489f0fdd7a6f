//! A worker's connection to the resource.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::failover::resource::{Ask, Reply};

pub(super) struct ResourceClient {
    to: OwnedWriteHalf,
    from: Lines<BufReader<OwnedReadHalf>>,
}

impl ResourceClient {
    pub(super) async fn open(addr: SocketAddr) -> Result<Self, String> {
        let opened = async {
            let stream = TcpStream::connect(addr).await?;
            stream.set_nodelay(true)?;
            Ok::<_, std::io::Error>(stream)
        };
        let stream = opened.await.map_err(unreachable)?;
        let (from, to) = stream.into_split();
        let from = BufReader::new(from).lines();
        Ok(Self { to, from })
    }

    pub(super) async fn ask(&mut self, ask: &Ask) -> Result<Reply, String> {
        let mut line = serde_json::to_vec(ask).map_err(|error| error.to_string())?;
        line.push(b'\n');
        self.to.write_all(&line).await.map_err(unreachable)?;
        let answer = self.from.next_line().await.map_err(unreachable)?;
        let answer = answer.ok_or("the resource went away")?;
        match serde_json::from_str(&answer) {
            Ok(Reply::Bad { reason }) => Err(format!("the resource does not understand: {reason}")),
            Ok(reply) => Ok(reply),
            Err(error) => Err(format!("the resource sent an invalid reply: {error}")),
        }
    }
}

fn unreachable(error: std::io::Error) -> String {
    format!("cannot reach the resource: {error}")
}
