//! The process of the first waiter dies, or stops, without notice.

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use locktopus_servers::topology::Deployment;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::common::{
    HANDED, HANDED_LEASE, SOON, close, close_both, connect, eventually, locks, unique, url_for,
};
use crate::wakeups::{At, waiting};

/// Its heartbeats are frequent, so that its place expires soon: see `frozen`.
const SHORT_LEASE: Duration = Duration::from_secs(4);

/// Its inbox has no listener, so the lock goes to the next waiter at once although the place
/// remains.
pub(crate) async fn dead(at: At) -> String {
    let (place, client) = &at;
    let (holders, others) = (locks(place, client).await, locks(place, client).await);
    let name = unique("dead");
    let guard = holders.lock(&name).acquire().await.unwrap();
    let head = Process::start(url_for(place, client), name.clone(), HANDED_LEASE);
    waiting(&holders, &name, 1).await;
    let request = others
        .lock(&name)
        .strategy(HANDED)
        .fixed_lease(HANDED_LEASE);
    let next = tokio::spawn(request.acquire());
    waiting(&holders, &name, 2).await;

    head.die();
    // The place was not given up.
    waiting(&holders, &name, 2).await;
    one_inbox_left(place, &name).await;

    let released = Instant::now();
    guard.release().await.unwrap();
    let guard = timeout(SOON, next).await.expect("the second is served");
    let guard = guard.unwrap().unwrap();
    let took = released.elapsed();
    let state = holders.lock(&name).inspect().await.unwrap();
    assert_eq!(state.waiters.len(), 1, "the first keeps its place");
    guard.release().await.unwrap();
    // The place blocks no one.
    let once = holders.lock(&name).try_acquire().await.unwrap();
    once.expect("free").release().await.unwrap();
    close_both(holders, others).await;
    format!("the second was served after {took:.2?}")
}

/// The server may notice a little later than we that a connection is gone.
async fn one_inbox_left(place: &Deployment, name: &str) {
    let node = place.primary_for(name).await.unwrap();
    let inbox = format!("locktopus_inbox:{{{name}}}:*");
    let sharded = place.nodes().len() > 1;
    let listed = if sharded { "SHARDCHANNELS" } else { "CHANNELS" };
    eventually("one inbox left", SOON, async || {
        let inboxes = node.command(&["PUBSUB", listed, &inbox]).await.unwrap();
        (inboxes.items().len() == 1).then_some(()).ok_or(inboxes)
    })
    .await;
}

/// How many wait in the process that dies: more than one batch of a script.
const CROWD: usize = 150;

/// A process dies with a crowd of waiters, and the release serves the next one behind them.
pub(crate) async fn with_a_crowd(at: At) -> String {
    let (place, client) = &at;
    let (holders, others) = (locks(place, client).await, locks(place, client).await);
    let name = unique("crowd");
    let guard = holders.fair_lock(&name).acquire().await.unwrap();
    let (url, dying) = (url_for(place, client), name.clone());
    let (stop, stopped) = oneshot::channel::<()>();
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let locks = connect(&url).await;
            for _ in 0..CROWD {
                let request = locks.fair_lock(&dying).strategy(HANDED);
                tokio::spawn(request.fixed_lease(HANDED_LEASE).acquire());
            }
            stopped.await.unwrap();
        });
        runtime.shutdown_background();
    });
    let in_line = async |many: usize| {
        eventually("a line", SOON, async || {
            let state = holders.fair_lock(&name).inspect().await.unwrap();
            let waiters = state.waiters.len();
            (waiters == many).then_some(()).ok_or(waiters)
        })
        .await;
    };
    in_line(CROWD).await;
    let request = others.fair_lock(&name).strategy(HANDED);
    let next = tokio::spawn(request.fixed_lease(HANDED_LEASE).acquire());
    in_line(CROWD + 1).await;
    stop.send(()).unwrap();
    process.join().unwrap();
    one_inbox_left(place, &name).await;
    let released = Instant::now();
    guard.release().await.unwrap();
    let guard = timeout(SOON, next).await.expect("the next is served");
    let took = released.elapsed();
    guard.unwrap().unwrap().release().await.unwrap();
    let once = holders.fair_lock(&name).try_acquire().await.unwrap();
    once.expect("free").release().await.unwrap();
    close_both(holders, others).await;
    format!("served after {took:.2?} behind {CROWD} dead")
}

/// Its connections stay, so it could be handed the lock and never use it; but it sends no
/// heartbeats any more.
pub(crate) async fn frozen(at: At) -> String {
    let (place, client) = &at;
    let (holders, others) = (locks(place, client).await, locks(place, client).await);
    let name = unique("frozen");
    let guard = holders.lock(&name).acquire().await.unwrap();
    let head = Process::start(url_for(place, client), name.clone(), SHORT_LEASE);
    waiting(&holders, &name, 1).await;
    let request = others
        .lock(&name)
        .strategy(HANDED)
        .fixed_lease(HANDED_LEASE);
    let next = tokio::spawn(request.acquire());
    waiting(&holders, &name, 2).await;

    let head = head.freeze();
    let frozen = Instant::now();
    waiting(&holders, &name, 1).await;
    let left = frozen.elapsed();
    // The rest of a place is reported in whole milliseconds, so part of the last one may be left.
    tokio::time::sleep(Duration::from_millis(2)).await;
    let released = Instant::now();
    guard.release().await.unwrap();
    let Ok(guard) = timeout(SOON, next).await else {
        let state = holders.lock(&name).inspect().await;
        panic!("the second is not served: {state:?}");
    };
    let guard = guard.unwrap().unwrap();
    let took = released.elapsed();

    // It comes back and waits again; missed messages do not make it believe that it has the lock.
    let (served, thread) = head.thaw();
    waiting(&holders, &name, 1).await;
    let held_until = Instant::now();
    guard.release().await.unwrap();
    let served = timeout(SOON, served).await.expect("the first is served");
    assert!(served.unwrap() >= held_until, "two at once");
    thread.join().unwrap();
    close_both(holders, others).await;
    format!("its place was lost after {left:.2?}; the second was served after {took:.2?}")
}

/// A waiter with its own runtime, on one thread.
struct Process {
    orders: mpsc::Sender<Order>,
    /// When it acquired the lock.
    served: oneshot::Receiver<Instant>,
    stop: oneshot::Sender<Order>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Die,
    Freeze,
    Thaw,
}

/// Stands still until it is thawed.
struct Frozen {
    orders: mpsc::Sender<Order>,
    served: oneshot::Receiver<Instant>,
    thread: JoinHandle<()>,
}

impl Process {
    fn start(url: String, name: String, lease: Duration) -> Self {
        let (orders, received) = mpsc::channel();
        let (stop, mut stopped) = oneshot::channel();
        let (serve, served) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let wait = async {
                let locks = connect(&url).await;
                let request = locks.lock(name).strategy(HANDED).fixed_lease(lease);
                let mut waiter = std::pin::pin!(request.acquire());
                tokio::select! {
                    _ = &mut waiter => panic!("served too early"),
                    order = &mut stopped => {
                        if order.unwrap() == Order::Die {
                            // No task is left that could clean up.
                            return;
                        }
                    }
                }
                assert_eq!(received.recv().unwrap(), Order::Thaw);
                let guard = waiter.await.unwrap();
                let served = Instant::now();
                guard.release().await.unwrap();
                close(locks).await;
                serve.send(served).unwrap();
            };
            runtime.block_on(wait);
            runtime.shutdown_background();
        });
        Self {
            orders,
            served,
            stop,
            thread,
        }
    }

    /// Ends all of it, connections included, without notice to the servers.
    fn die(self) {
        self.stop.send(Order::Die).unwrap();
        self.thread.join().unwrap();
    }

    /// Stops all of it; its connections stay.
    fn freeze(self) -> Frozen {
        self.stop.send(Order::Freeze).unwrap();
        Frozen {
            orders: self.orders,
            served: self.served,
            thread: self.thread,
        }
    }
}

impl Frozen {
    fn thaw(self) -> (oneshot::Receiver<Instant>, JoinHandle<()>) {
        self.orders.send(Order::Thaw).unwrap();
        (self.served, self.thread)
    }
}
