//! An address that can be pointed at any server, which may be distant.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::topology::error::TopologyError;
use crate::topology::line;

/// Like a virtual IP address, a DNS name or a TCP load balancer, it is one address whose server can
/// change.
///
/// A new connection leads to the server that the address points at then, and stays there when the
/// address moves. So after a failover a client may have one connection to the new primary and
/// another to the old one, which is a replica by now.
///
/// Dropping it closes every connection.
///
/// ```no_run
/// # async fn example() -> Result<(), locktopus_servers::topology::TopologyError> {
/// # let (primary, replica): (std::net::SocketAddr, std::net::SocketAddr) = unimplemented!();
/// use locktopus_servers::topology::Vip;
///
/// let vip = Vip::start(primary).await?;
/// let url = format!("redis://{}", vip.addr()); // connect: commands lead to the primary
/// vip.point_at(replica); // new connections now lead to the replica
/// # drop(url);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Vip {
    addr: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    one_way: watch::Sender<Duration>,
}

#[derive(Debug)]
struct State {
    target: SocketAddr,
    /// Each open connection: the server it leads to, and the token that ends it.
    open: Vec<(SocketAddr, CancellationToken)>,
    /// How many connections there were, by server.
    led: HashMap<SocketAddr, u64>,
}

impl Vip {
    /// An address on the loopback interface, pointed at a server. Must be called on a runtime.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Io`] if no port is free.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn start(target: SocketAddr) -> Result<Self, TopologyError> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), target).await
    }

    /// As [`start`](Self::start), at the caller's address.
    pub(crate) async fn start_at(
        listen_at: SocketAddr,
        target: SocketAddr,
    ) -> Result<Self, TopologyError> {
        let failed = |source| TopologyError::Io {
            doing: "listen for",
            path: PathBuf::from("a virtual address"),
            source,
        };
        let listener = TcpListener::bind(listen_at).await;
        let listener = listener.map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                target,
                open: Vec::new(),
                led: HashMap::new(),
            }),
            one_way: watch::Sender::new(Duration::ZERO),
        });
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Ok(Self {
            addr,
            shared,
            listening,
        })
    }

    /// The address that clients connect to.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Points new connections at `target` from now on. Open ones stay on their server.
    pub fn point_at(&self, target: SocketAddr) {
        self.shared.lock().target = target;
    }

    /// Sets how much longer an exchange takes than without the proxy, half in each direction.
    /// Applies to bytes sent from now on, on open connections too. Initially zero.
    pub fn set_round_trip(&self, round_trip: Duration) {
        self.shared.one_way.send_replace(round_trip / 2);
    }

    /// Closes every open connection.
    pub fn cut(&self) {
        for (_, end) in self.shared.lock().open.drain(..) {
            end.cancel();
        }
    }

    /// How many open connections lead to this server.
    #[must_use]
    pub fn connections_to(&self, server: SocketAddr) -> usize {
        let state = self.shared.lock();
        let here = state.open.iter().filter(|(target, _)| *target == server);
        here.count()
    }

    /// How many connections have led to this server so far, open or not.
    #[must_use]
    pub fn led_to(&self, server: SocketAddr) -> u64 {
        self.shared.lock().led.get(&server).copied().unwrap_or(0)
    }
}

impl Drop for Vip {
    fn drop(&mut self) {
        self.listening.abort();
        self.cut();
    }
}

impl Shared {
    /// A panic inside one of these short sections leaves the data intact, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                let end = CancellationToken::new();
                let target = {
                    let mut state = shared.lock();
                    let target = state.target;
                    state.open.push((target, end.clone()));
                    *state.led.entry(target).or_default() += 1;
                    target
                };
                connections.spawn(carry(client, target, end, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Carries bytes both ways until both sides are done. If the server cannot be reached, the client's
/// connection is closed.
async fn carry(client: TcpStream, target: SocketAddr, end: CancellationToken, shared: Arc<Shared>) {
    let carried = async {
        let server = TcpStream::connect(target).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        line::carry(client, server, shared.one_way.subscribe()).await;
        std::io::Result::Ok(())
    };
    // Both sides see for themselves how it ended.
    let _ = end.run_until_cancelled(carried).await;
    end.cancel();
    shared.lock().open.retain(|(_, end)| !end.is_cancelled());
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;
    use tokio_util::task::AbortOnDropHandle;

    use super::*;

    const FAR: Duration = Duration::from_millis(80);

    /// A server that echoes its input.
    async fn echo() -> (SocketAddr, AbortOnDropHandle<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.into_split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        (addr, AbortOnDropHandle::new(serving))
    }

    async fn exchange(stream: &mut TcpStream, words: &[u8]) -> Duration {
        let sent = Instant::now();
        stream.write_all(words).await.unwrap();
        let mut heard = vec![0; words.len()];
        stream.read_exact(&mut heard).await.unwrap();
        assert_eq!(heard, words);
        sent.elapsed()
    }

    #[tokio::test]
    async fn an_exchange_takes_a_round_trip_and_the_first_one_two() {
        let (server, _serving) = echo().await;
        let vip = Vip::start(server).await.unwrap();
        vip.set_round_trip(FAR);
        let mut stream = TcpStream::connect(vip.addr()).await.unwrap();
        assert!(exchange(&mut stream, b"one").await >= FAR * 2);
        assert!(exchange(&mut stream, b"two").await >= FAR);
        vip.set_round_trip(Duration::ZERO);
        assert!(
            exchange(&mut stream, b"three").await < FAR,
            "changed while open"
        );
    }

    #[tokio::test]
    async fn connections_are_counted_where_they_led() {
        let ((one, _serving), (other, _too)) = (echo().await, echo().await);
        let vip = Vip::start(one).await.unwrap();
        let led = || [vip.led_to(one), vip.led_to(other)];
        let come = async || {
            let mut stream = TcpStream::connect(vip.addr()).await.unwrap();
            exchange(&mut stream, b"hello").await;
        };
        come().await;
        assert_eq!(led(), [1, 0]);
        vip.point_at(other);
        come().await;
        come().await;
        assert_eq!(led(), [1, 2]);
    }

    #[tokio::test]
    async fn what_is_under_way_does_not_wait_for_what_went_before() {
        let (server, _serving) = echo().await;
        let vip = Vip::start(server).await.unwrap();
        vip.set_round_trip(FAR);
        let mut stream = TcpStream::connect(vip.addr()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        exchange(&mut stream, b"hello").await;
        let (mut from, mut to) = stream.into_split();
        let started = Instant::now();
        let speaking = async {
            for word in 0..20_u8 {
                to.write_all(&[word]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let mut heard = [0; 20];
        let (read, ()) = tokio::join!(from.read_exact(&mut heard), speaking);
        read.unwrap();
        assert_eq!(heard.to_vec(), (0..20).collect::<Vec<_>>());
        assert!(
            started.elapsed() < FAR * 10,
            "one after the other they take 20 times as long"
        );
    }
}
