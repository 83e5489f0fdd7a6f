//! One admin command over one new connection.
//!
//! A connection per command keeps no state that a frozen or restarted server could spoil, and costs
//! far less than the waits around it.

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

/// As [`ask`], for a read-only command: repeated once if the connection breaks, because a server
/// that becomes a replica closes all connections.
pub(crate) async fn ask_again(
    node: &str,
    addr: SocketAddr,
    words: &[&str],
    within: Duration,
) -> Result<Resp, TopologyError> {
    match ask(node, addr, words, within).await {
        Err(TopologyError::Connection { source, .. }) if is_broken(&source) => {
            ask(node, addr, words, within).await
        }
        answer => answer,
    }
}

/// Whether an established connection broke. A refused one means that there is no server.
fn is_broken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof
    )
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

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    const WITHIN: Duration = Duration::from_secs(10);

    /// A server that closes this many connections without an answer, and answers one.
    async fn closes(first: usize) -> SocketAddr {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = server.local_addr().unwrap();
        tokio::spawn(async move {
            for _ in 0..first {
                drop(server.accept().await.unwrap());
            }
            let (mut stream, _) = server.accept().await.unwrap();
            stream.write_all(b"+role\r\n").await.unwrap();
            // Until the other side has read it and is gone.
            while stream.read_u8().await.is_ok() {}
        });
        addr
    }

    #[tokio::test]
    async fn a_question_survives_one_broken_connection() {
        for (closed, answered) in [(0, true), (1, true), (2, false)] {
            let addr = closes(closed).await;
            let answer = ask_again("node-0", addr, &["ROLE"], WITHIN).await;
            assert_eq!(answer.is_ok(), answered, "{closed}: {answer:?}");
        }
        let addr = closes(1).await;
        let command = ask("node-0", addr, &["SHUTDOWN"], WITHIN).await;
        assert!(
            matches!(&command, Err(TopologyError::Connection { node, .. }) if node == "node-0"),
            "{command:?}"
        );
    }

    #[tokio::test]
    async fn nobody_is_asked_twice_where_no_server_is() {
        let addr = {
            let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
            server.local_addr().unwrap()
        };
        let refused = ask_again("node-0", addr, &["ROLE"], WITHIN).await;
        let Err(TopologyError::Connection { source, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(source.kind(), io::ErrorKind::ConnectionRefused);
        assert!(!is_broken(&source));
    }
}
