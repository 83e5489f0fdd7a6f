//! Keeps replicas from following a primary that is about to be killed.
//!
//! Plain processes have no network to cut. A password that the replicas do not have does the same:
//! existing connections continue, but closed links cannot return. It is gone when the process is.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const COMMANDS: [&[u8]; 2] = [
    b"CONFIG SET requirepass cut-off\r\n",
    b"CLIENT KILL TYPE replica\r\n",
];

/// Cuts the replicas of this server off for the rest of its life.
pub(super) async fn off(server: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(server).await?;
    for command in COMMANDS {
        stream.write_all(command).await?;
        let mut reply = [0; 256];
        let length = stream.read(&mut reply).await?;
        if length == 0 || reply[0] == b'-' {
            let said = String::from_utf8_lossy(&reply[..length]).into_owned();
            return Err(std::io::Error::other(format!(
                "the server refused: {said:?}"
            )));
        }
    }
    Ok(())
}
