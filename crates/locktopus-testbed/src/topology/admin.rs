//! One admin command over one fresh connection.
//!
//! A connection per command keeps no state that a frozen or restarted server could spoil, and
//! costs far less than the waits it is used in.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::topology::error::TopologyError;
use crate::topology::resp::{Resp, encode, parse};

/// Sends `words` and returns the reply, error replies included.
pub(crate) async fn ask(
    node: &str,
    addr: SocketAddr,
    words: &[&str],
    within: Duration,
) -> Result<Resp, TopologyError> {
    let command = || words.first().copied().unwrap_or("nothing").to_owned();
    match timeout(within, exchange(addr, words)).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(source)) => Err(TopologyError::Connection {
            node: node.to_owned(),
            command: command(),
            source,
        }),
        Err(_) => Err(TopologyError::NoAnswer {
            node: node.to_owned(),
            command: command(),
            within,
        }),
    }
}

async fn exchange(addr: SocketAddr, words: &[&str]) -> io::Result<Resp> {
    let mut stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    stream.write_all(&encode(words)).await?;
    let mut input = Vec::with_capacity(4096);
    loop {
        if stream.read_buf(&mut input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match parse(&input) {
            Ok(Some(reply)) => return Ok(reply),
            Ok(None) => {}
            Err(problem) => return Err(io::Error::new(io::ErrorKind::InvalidData, problem)),
        }
    }
}
