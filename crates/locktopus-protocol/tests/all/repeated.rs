//! Releases are sent again when another server, which may not know of them, may answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{
    Linger, LockBackend as _, LockKind, LockName, LockTarget, OwnerId, ReleaseRequest, WakeUps as _,
};
use locktopus_protocol::{
    BackendOptions, Channel, ClientError, PushEvent, RedisBackend, Reply, Route,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::stub::{self, Stub};

const SECOND: Duration = Duration::from_secs(1);

/// Answers every script with 0 or 1, and notes the owner.
#[derive(Debug)]
struct Server {
    /// Owners, and the other arguments that are short.
    seen: Mutex<Vec<(Vec<u8>, Vec<String>)>>,
    changes: watch::Sender<u64>,
    /// The number of scripts that get no answer.
    silent: AtomicUsize,
    /// The delay of an answer.
    slow: Duration,
    events: Mutex<Option<UnboundedReceiver<PushEvent>>>,
    pushes: UnboundedSender<PushEvent>,
    subscribed: Mutex<Vec<Channel>>,
}

#[async_trait]
impl Stub for Server {
    async fn command(&self, _: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        if args[0] != b"EVALSHA" {
            return Ok(Reply::Array(vec![Reply::Int(1_700_000_000), Reply::Int(0)]));
        }
        let keys: usize = std::str::from_utf8(args[2]).unwrap().parse().unwrap();
        let words = args[3 + keys..].iter();
        let words = words.map(|word| String::from_utf8_lossy(word).into_owned());
        let words: Vec<_> = words.collect();
        let owner = args[3 + keys].to_vec();
        self.seen.lock().unwrap().push((owner, words));
        sleep(self.slow).await;
        let silent = |left: usize| left.checked_sub(1);
        let order = Ordering::SeqCst;
        match self.silent.fetch_update(order, order, silent) {
            Ok(_) => Err(ClientError::MaybeExecuted("it was lost".to_owned())),
            Err(_) => Ok(Reply::Int(1)),
        }
    }
    async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        self.subscribed.lock().unwrap().extend_from_slice(channels);
        Ok(())
    }
    fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>> {
        self.events.lock().unwrap().take()
    }
    fn server_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Server {
    async fn start(slow: Duration) -> (Arc<Self>, RedisBackend) {
        let (pushes, events) = unbounded_channel();
        let server = Arc::new(Self {
            seen: Mutex::default(),
            changes: watch::Sender::new(0),
            silent: AtomicUsize::new(0),
            slow,
            events: Mutex::new(Some(events)),
            pushes,
            subscribed: Mutex::default(),
        });
        let client = stub::client(&server);
        let backend = RedisBackend::new(client, BackendOptions::default()).await;
        (server, backend.unwrap())
    }

    fn change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// The owners of the scripts since the last call.
    fn owners(&self) -> Vec<Vec<u8>> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.into_iter().map(|(owner, _)| owner).collect()
    }
}

fn target() -> LockTarget {
    LockTarget::new(LockName::new("a").unwrap(), LockKind::Reentrant)
}

fn release_of(owner: &'static str, last: bool) -> ReleaseRequest {
    let owner = OwnerId::from_bytes(owner.as_bytes());
    let mut request = ReleaseRequest::new(target(), owner, Instant::now() + SECOND);
    request.last = last;
    request
}

async fn release(backend: &RedisBackend, owner: &'static str) {
    let released = backend.release(&release_of(owner, true)).await;
    let _found = released.unwrap();
}

#[tokio::test(start_paused = true)]
async fn those_of_the_last_seconds_are_repeated_and_no_others() {
    let (server, backend) = Server::start(Duration::ZERO).await;
    release(&backend, "long-ago").await;
    sleep(SECOND * 6).await;
    release(&backend, "first").await;
    let again = backend.release(&release_of("may-come-again", false)).await;
    let _found = again.unwrap();
    release(&backend, "second").await;
    server.owners();
    sleep(SECOND).await;
    assert_eq!(server.owners(), [b""; 0], "nothing has changed");
    server.change();
    sleep(SECOND / 10).await;
    assert_eq!(server.owners(), [b"second".as_slice(), b"first"]);
}

/// The server may be replaced while the answer is on its way.
#[tokio::test(start_paused = true)]
async fn an_answer_of_the_one_before_counts_for_nothing() {
    let (server, backend) = Server::start(SECOND / 2).await;
    let change = async {
        sleep(SECOND / 4).await;
        server.change();
    };
    tokio::join!(release(&backend, "under-way"), change);
    sleep(SECOND).await;
    assert_eq!(server.owners(), [b"under-way", b"under-way"]);
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_tried_again() {
    let (server, backend) = Server::start(Duration::ZERO).await;
    for owner in ["first", "second", "third"] {
        release(&backend, owner).await;
    }
    server.owners();
    server.silent.store(30, Ordering::SeqCst);
    server.change();
    sleep(SECOND * 5).await;
    assert_eq!(server.silent.load(Ordering::SeqCst), 0);
    let owners = server.owners();
    assert_eq!(owners.len(), 33);
    sleep(SECOND * 5).await;
    assert_eq!(server.owners(), [b""; 0], "each was answered");
}

/// Slots of a cluster may move one after the other for minutes.
#[tokio::test(start_paused = true)]
async fn many_changes_cost_little() {
    let (server, backend) = Server::start(Duration::ZERO).await;
    release(&backend, "it").await;
    server.owners();
    for _ in 0..100 {
        server.change();
        sleep(SECOND / 50).await;
    }
    sleep(SECOND).await;
    let repeated = server.owners().len();
    assert!((2..=4).contains(&repeated), "{repeated} times");
}

/// A repetition does not extend a lingering hold.
#[tokio::test(start_paused = true)]
async fn what_lingers_does_not_linger_longer() {
    let (server, backend) = Server::start(Duration::ZERO).await;
    let mut request = release_of("owner", true);
    let heir = OwnerId::from_bytes(b"heir".as_slice());
    request.linger = Some(Linger {
        heir,
        time: SECOND * 3,
    });
    for (later, time) in [(SECOND, Some("2000")), (SECOND * 4, None)] {
        let (_, before) = (backend.release(&request).await.unwrap(), server.owners());
        assert_eq!(before.len(), 1);
        sleep(later).await;
        server.change();
        sleep(SECOND / 10).await;
        let seen = std::mem::take(&mut *server.seen.lock().unwrap());
        let (_, words) = seen.first().unwrap();
        let lingers = words.get(1).is_some_and(|heir| heir == "heir");
        assert_eq!(lingers.then(|| words[2].as_str()), time, "{words:?}");
    }
}

/// The process releases a grant to an owner that is gone. Otherwise its lease would have to expire.
#[tokio::test(start_paused = true)]
async fn a_grant_that_nobody_awaits_is_given_back() {
    let (server, backend) = Server::start(Duration::ZERO).await;
    let deadline = Instant::now() + SECOND;
    let waits = backend.subscribe(&target(), deadline).await.unwrap();
    waits.claim(&OwnerId::from_bytes(b"waits".as_slice()));
    let inbox = {
        let subscribed = server.subscribed.lock().unwrap();
        let mut names = subscribed.iter().map(|channel| channel.name.clone());
        let found = names.find(|name| name.starts_with(b"locktopus_inbox"));
        found.unwrap_or_else(|| panic!("{subscribed:?}"))
    };
    let hear = |owner: &str| {
        let (channel, payload) = (inbox.clone(), format!("17 {owner}").into());
        let message = PushEvent::Message { channel, payload };
        server.pushes.send(message).unwrap();
    };
    release(&backend, "gone").await;
    server.owners();
    for owner in ["waits", "stranger", "gone"] {
        hear(owner);
    }
    sleep(SECOND / 10).await;
    assert_eq!(server.owners(), [b"gone"], "only whom nobody awaits");
    // The last waiter leaves, and a message arrives before the channel is unsubscribed.
    drop(waits);
    sleep(SECOND * 10).await;
    hear("gone");
    sleep(SECOND / 10).await;
    assert_eq!(server.owners(), [b"gone"]);
}
