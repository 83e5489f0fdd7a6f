//! An address that leads to whichever server it is pointed at.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::error::TopologyError;

/// What a virtual IP address, a DNS name or a TCP load balancer is to clients: one address, behind which the server
/// changes.
///
/// A new connection leads to the server that the address is pointed at when it is made, and stays there however the
/// address is pointed later. So after a failover a client may have one connection to the new primary and another to the
/// old one, which is a replica by now.
///
/// Dropping it closes every connection.
///
/// ```no_run
/// # async fn example() -> Result<(), locktopus_testkit::topology::TopologyError> {
/// # let (primary, replica): (std::net::SocketAddr, std::net::SocketAddr) = unimplemented!();
/// use locktopus_testkit::topology::Vip;
///
/// let vip = Vip::start(primary).await?;
/// let url = format!("redis://{}", vip.addr()); // connect: commands lead to the primary
/// vip.point_at(replica); // whatever is dialled from now on leads to the replica
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
}

#[derive(Debug)]
struct State {
    target: SocketAddr,
    /// Of each connection that is open: where it leads, and what ends it.
    open: Vec<(SocketAddr, CancellationToken)>,
}

impl Vip {
    /// An address on the loopback interface, pointed at a server. Must be called on a runtime.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Io`] when there is no free port.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn start(target: SocketAddr) -> Result<Self, TopologyError> {
        let failed = |source| TopologyError::Io {
            doing: "listen for",
            path: PathBuf::from("a virtual address"),
            source,
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                target,
                open: Vec::new(),
            }),
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

    /// Where new connections lead from now on. Those that are open stay where they are.
    pub fn point_at(&self, target: SocketAddr) {
        self.shared.lock().target = target;
    }

    /// Closes every connection that is open.
    pub fn cut(&self) {
        for (_, end) in self.shared.lock().open.drain(..) {
            end.cancel();
        }
    }

    /// How many connections that are open lead to this server.
    #[must_use]
    pub fn connections_to(&self, server: SocketAddr) -> usize {
        let state = self.shared.lock();
        let here = state.open.iter().filter(|(target, _)| *target == server);
        here.count()
    }
}

impl Drop for Vip {
    fn drop(&mut self) {
        self.listening.abort();
        self.cut();
    }
}

impl Shared {
    /// A panic while one of these short sections runs leaves the data whole, so poison is ignored.
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
                    target
                };
                connections.spawn(carry(client, target, end, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Carries bytes both ways until one side is done. A server that cannot be reached closes the client's connection.
async fn carry(
    mut client: TcpStream,
    target: SocketAddr,
    end: CancellationToken,
    shared: Arc<Shared>,
) {
    let carried = async {
        let mut server = TcpStream::connect(target).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        copy_bidirectional(&mut client, &mut server).await
    };
    // How it ended is the business of the two sides, who see it too.
    let _ = end.run_until_cancelled(carried).await;
    end.cancel();
    shared.lock().open.retain(|(_, end)| !end.is_cancelled());
}
