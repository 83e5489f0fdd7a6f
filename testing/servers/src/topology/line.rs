//! Simulates the line between a client and a distant server.
//!
//! Bytes arrive later and otherwise unchanged. They keep their order, and each chunk is delayed
//! from its own arrival, so chunks in flight fill the line instead of waiting for earlier ones. TLS
//! runs on top of it.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::Pause;

/// The most that one read returns.
const CHUNK: usize = 16 * 1024;
/// How many chunks may be in flight in one direction. Beyond that the sender must wait, as on a
/// real line.
const ON_THE_LINE: usize = 1024;

/// Carries bytes both ways until both sides are done. `one_way` is how long they take, and may
/// change meanwhile.
pub(crate) async fn carry(
    client: TcpStream,
    server: TcpStream,
    one_way: watch::Receiver<Duration>,
) {
    // The local kernel answered the client's handshake at once. Over a real line the client would
    // have started to send a round trip later.
    let shaken_hands = Instant::now() + *one_way.borrow() * 2;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::join!(
        one_direction(from_client, to_server, one_way.clone(), shaken_hands),
        one_direction(from_server, to_client, one_way, shaken_hands),
    );
}

/// Carries bytes in one direction. None left before `earliest`.
async fn one_direction(
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    one_way: watch::Receiver<Duration>,
    earliest: Instant,
) {
    let (line, end) = mpsc::channel(ON_THE_LINE);
    tokio::join!(take_up(from, line, one_way, earliest), hand_out(to, end));
}

/// Bytes in flight, and when they arrive. No bytes: the sender is done.
type Chunk = (Instant, Vec<u8>);

async fn take_up(
    mut from: OwnedReadHalf,
    line: mpsc::Sender<Chunk>,
    one_way: watch::Receiver<Duration>,
    earliest: Instant,
) {
    let mut last = earliest;
    loop {
        let mut bytes = Vec::with_capacity(CHUNK);
        // A broken connection ends like a closed one.
        let read = from.read_buf(&mut bytes).await.unwrap_or(0);
        // Nothing overtakes earlier bytes, even if the line became shorter.
        last = last.max(Instant::now().max(earliest) + *one_way.borrow());
        if line.send((last, bytes)).await.is_err() || read == 0 {
            return;
        }
    }
}

async fn hand_out(mut to: OwnedWriteHalf, mut end: mpsc::Receiver<Chunk>) {
    let Ok(pause) = Pause::new() else {
        return;
    };
    while let Some((arrives, bytes)) = end.recv().await {
        // The runtime's own timers have steps of a millisecond: a line of half a millisecond would
        // be as long as one of two.
        let under_way = arrives.saturating_duration_since(Instant::now());
        if pause.wait(under_way).await.is_err()
            || bytes.is_empty()
            || to.write_all(&bytes).await.is_err()
        {
            break;
        }
    }
    // Tells the reader on that side that nothing more comes.
    let _ = to.shutdown().await;
}
