//! Keeps replicas from following: their links are closed again and again.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Sooner than a replica comes back by itself, which takes up to a second.
const AGAIN: Duration = Duration::from_millis(100);

/// Replicas of a server are cut off until this is dropped.
#[derive(Debug)]
pub(super) struct Cut(JoinHandle<()>);

impl Cut {
    pub(super) async fn start(server: SocketAddr) -> std::io::Result<Self> {
        let mut stream = TcpStream::connect(server).await?;
        close_links(&mut stream).await?;
        Ok(Self(tokio::spawn(async move {
            // It ends with an error when the server is killed, which is what it is there for.
            while close_links(&mut stream).await.is_ok() {
                tokio::time::sleep(AGAIN).await;
            }
        })))
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn close_links(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"CLIENT KILL TYPE replica\r\n").await?;
    let mut reply = [0; 64];
    match stream.read(&mut reply).await? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
