//! A proxy in place of a server. It can drop all connections and keep its address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// A door to a server.
pub(crate) struct Door {
    addr: SocketAddr,
    open: watch::Sender<bool>,
    knocks: Arc<AtomicU64>,
    task: AbortHandle,
}

impl Door {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::at(listener, server, true)
    }

    /// Takes the address of a server that is gone. It starts shut.
    pub(crate) async fn instead_of(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(server).await.unwrap();
        Self::at(listener, server, false)
    }

    fn at(listener: TcpListener, server: SocketAddr, open: bool) -> Self {
        let addr = listener.local_addr().unwrap();
        let (open, state) = watch::channel(open);
        let knocks = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&knocks);
        let task = tokio::spawn(async move {
            loop {
                let (inside, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                if *state.borrow() {
                    tokio::spawn(carry(inside, server, state.clone()));
                }
            }
        });
        Self {
            addr,
            open,
            knocks,
            task: task.abort_handle(),
        }
    }

    /// Its address.
    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many connections there were.
    pub(crate) fn knocks(&self) -> u64 {
        self.knocks.load(Ordering::SeqCst)
    }

    /// Closes all connections, and every new one as soon as it is accepted.
    pub(crate) fn shut(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Copies bytes both ways until the door is shut.
async fn carry(mut client: TcpStream, server: SocketAddr, mut open: watch::Receiver<bool>) {
    let Ok(mut server) = TcpStream::connect(server).await else {
        return;
    };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = open.wait_for(|open| !open) => {}
    }
}
