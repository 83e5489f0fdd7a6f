//! Writes that keep a primary and its replicas busy, so that replicas lag behind.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Part of the keys' names.
pub(super) const NAME: &str = "failover-load";

/// Connections that write.
const WRITERS: u32 = 2;
/// Keys of each connection, written again and again.
const KEYS: u32 = 32;
/// Writes that are sent before their replies are read.
const BATCH: u32 = 16;
const VALUE: usize = 64 * 1024;
/// The keys expire soon after the last write.
const EXPIRY_MS: &str = "5000";

/// Writes until dropped, or until the server is gone.
#[derive(Debug)]
pub(super) struct Load(Vec<JoinHandle<()>>);

impl Load {
    /// Writes to keys in the slot of `lock`.
    pub(super) fn start(server: SocketAddr, lock: &str) -> Self {
        let writer = |number| {
            let prefix = format!("{{{lock}}}:{NAME}:{number}");
            tokio::spawn(async move {
                // It ends with an error when the server is killed, as intended.
                let _ = write(server, &prefix).await;
            })
        };
        Self((0..WRITERS).map(writer).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for writer in &self.0 {
            writer.abort();
        }
    }
}

async fn write(server: SocketAddr, prefix: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(server).await?;
    let value = "x".repeat(VALUE);
    let batches: Vec<Vec<u8>> = (0..KEYS / BATCH)
        .map(|batch| {
            let keys = (0..BATCH).map(|key| format!("{prefix}:{}", batch * BATCH + key));
            keys.flat_map(|key| command(&["SET", &key, &value, "PX", EXPIRY_MS]))
                .collect()
        })
        .collect();
    let mut replies = vec![0; 5 * BATCH as usize];
    for batch in batches.iter().cycle() {
        stream.write_all(batch).await?;
        // "+OK\r\n" each; an error ends the load.
        stream.read_exact(&mut replies).await?;
        if replies.contains(&b'-') {
            return Ok(());
        }
    }
    Ok(())
}

fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}
