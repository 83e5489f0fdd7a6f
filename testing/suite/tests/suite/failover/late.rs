//! Attempts that arrive after their callers gave up: their connection is gone, but the network
//! still delivers their bytes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use locktopus::{DynBackend, Locktopus};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::common::{LONG, SOON, close, eventually, locks, plain_url_for, unique, url};
use crate::failover::At;

/// Longer than the test: a lock taken by a late attempt must be given back, not just expire.
const GHOST_LEASE: Duration = Duration::from_secs(300);

/// The delay of late attempts, in ms: shorter than, close to and longer than the time until the
/// last release. A call may take a second.
const DELIVERED_AFTER: [u64; 6] = [300, 1_050, 1_150, 1_350, 1_700, 2_400];

/// The fate of the next script.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// It is delivered after this delay.
    Slow(Duration),
    /// Its connection is closed, and the script is delivered after this delay.
    Late(Duration),
}

/// A proxy that delays scripts.
struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Default)]
struct Shared {
    fate: Mutex<Option<Fate>>,
    /// A late script's connection was closed.
    caught: Notify,
    /// The server answered the late script.
    delivered: Notify,
}

impl Proxy {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, shared) = (listener.local_addr().unwrap(), Arc::<Shared>::default());
        let of_all = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(server).await.unwrap();
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                tokio::spawn(carry(client, server, Arc::clone(&of_all)));
            }
        });
        Self {
            addr,
            shared,
            task: task.abort_handle(),
        }
    }

    fn next(&self, fate: Fate) {
        *lock(&self.shared.fate) = Some(fate);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn carry(client: TcpStream, server: TcpStream, shared: Arc<Shared>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = tokio::spawn(async move {
        let _ = copy(&mut from_server, &mut to_client).await;
        from_server
    });
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from_client.read(&mut bytes).await {
        let script = bytes[..length].windows(8).any(|part| part == b"EVALSHA\r");
        let fate = script.then(|| lock(&shared.fate).take()).flatten();
        match fate {
            Some(Fate::Late(after)) => {
                back.abort();
                drop(from_client);
                shared.caught.notify_one();
                sleep(after).await;
                let _ = to_server.write_all(&bytes[..length]).await;
                // No one reads the answer. One tick of the server is enough for the script to run.
                sleep(Duration::from_millis(100)).await;
                shared.delivered.notify_one();
                return;
            }
            Some(Fate::Slow(by)) => sleep(by).await,
            None => {}
        }
        if to_server.write_all(&bytes[..length]).await.is_err() {
            break;
        }
    }
    back.abort();
}

/// A client behind the proxy, and another one that bypasses it.
struct Scene {
    proxy: Proxy,
    backend: DynBackend,
    locks: Locktopus,
    other: Locktopus,
}

impl Scene {
    async fn set(at: &At) -> Self {
        let (place, client) = at;
        let server = place.nodes()[0].addr();
        let proxy = Proxy::to(server).await;
        let other = locks(place, client).await;
        // The server must know the scripts, or it would refuse the late one for that.
        let known = other.lock(unique("known")).acquire().await.unwrap();
        known.release().await.unwrap();
        let direct = plain_url_for(place, client);
        let through = direct.replace(&server.port().to_string(), &proxy.addr.port().to_string());
        let backend = locktopus::connect_backend(&url(&through, "checks=off"))
            .await
            .unwrap();
        let locks = Locktopus::builder_dyn(Arc::clone(&backend))
            .build()
            .unwrap();
        Self {
            proxy,
            backend,
            locks,
            other,
        }
    }

    /// The other client gets the lock within seconds.
    async fn ends_free(self, name: &str, what: &str) {
        timeout(LONG, self.proxy.shared.delivered.notified())
            .await
            .unwrap();
        let next = self.other.lock(name).wait_at_most(SOON).acquire().await;
        let next = next.unwrap_or_else(|error| panic!("{what}: {error}"));
        next.release().await.unwrap();
        close(self.locks).await;
        close(self.other).await;
    }
}

/// A client tries once, and gives up when the connection is lost.
async fn asked_once(at: At, first: bool, after: Duration) -> String {
    let scene = Scene::set(&at).await;
    if !first {
        // The answer says more about the network than about the server's clock.
        scene.proxy.next(Fate::Slow(Duration::from_millis(900)));
        let slow = scene.locks.lock(unique("slow")).acquire().await.unwrap();
        slow.release().await.unwrap();
    }
    scene.proxy.next(Fate::Late(after));
    let name = unique("late");
    let request = scene.locks.lock(&name).fixed_lease(GHOST_LEASE);
    request.try_acquire().await.unwrap_err();
    let what = format!("first: {first}, delivered after {after:?}");
    scene.ends_free(&name, &what).await;
    what
}

/// A waiter gives up, while another one of the same process listens for the same lock.
async fn waited(at: At, after: Duration) -> String {
    let scene = Scene::set(&at).await;
    let name = unique("queue");
    let holder = scene.other.lock(&name).acquire().await.unwrap();
    let request = scene.locks.lock(&name).wait_at_most(LONG);
    let before = tokio::spawn(async move { request.acquire().await.unwrap() });
    eventually("a place in the queue", SOON, async || {
        match scene.other.lock(&name).inspect().await {
            Ok(state) if !state.waiters.is_empty() => Ok(()),
            other => Err(other.map(drop)),
        }
    })
    .await;
    // From another instance, so that it asks the server itself.
    let apart = Locktopus::builder_dyn(Arc::clone(&scene.backend)).build();
    let apart = apart.unwrap();
    scene.proxy.next(Fate::Late(after));
    let request = apart
        .lock(&name)
        .fixed_lease(GHOST_LEASE)
        .wait_at_most(LONG);
    let gives_up = tokio::spawn(async move { request.acquire().await.map(drop) });
    timeout(SOON, scene.proxy.shared.caught.notified())
        .await
        .unwrap();
    gives_up.abort();
    sleep(after + Duration::from_millis(50)).await;
    holder.release().await.unwrap();
    before.await.unwrap().release().await.unwrap();
    let what = format!("in the queue, delivered after {after:?}");
    scene.ends_free(&name, &what).await;
    what
}

pub(crate) async fn attempts(at: At) -> String {
    let at = || (Arc::clone(&at.0), at.1);
    let delays = DELIVERED_AFTER.map(Duration::from_millis);
    let once = delays
        .iter()
        .flat_map(|after| [true, false].map(|first| asked_once(at(), first, *after).boxed_local()));
    let queued = delays
        .iter()
        .map(|after| waited(at(), *after).boxed_local());
    let count = join_all(once.chain(queued)).await.len();
    format!("{count} late attempts, and each lock was free again within seconds")
}
