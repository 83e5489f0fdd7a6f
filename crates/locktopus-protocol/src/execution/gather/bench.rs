//! The server of these tests, and those who call it.

use async_trait::async_trait;
use locktopus_contract::BackendError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::Instant;

use super::*;
use crate::client::stub::{self, Stub};
use crate::execution::call::Effect;
use crate::execution::executor::{Executor, Way};
use crate::scripts::LOCK;

pub(super) type Answer = Result<Reply, ClientError>;

/// A request that arrived at the server.
pub(super) struct Request {
    pub(super) words: Vec<String>,
    answer: oneshot::Sender<Answer>,
}

#[derive(Debug)]
struct Wire {
    requests: UnboundedSender<Request>,
    connected: watch::Receiver<bool>,
}

#[async_trait]
impl Stub for Wire {
    async fn ready(&self) -> Result<(), ClientError> {
        let mut connected = self.connected.clone();
        let up = connected.wait_for(|up| *up).await;
        up.map(drop)
            .map_err(|_| ClientError::NotSent("closed".to_owned()))
    }
    async fn command(&self, _: Route, args: &[&[u8]]) -> Answer {
        self.ready().await?;
        let words = args.iter().map(|it| String::from_utf8_lossy(it).into());
        let (answer, answered) = oneshot::channel();
        let words = words.collect();
        let _ = self.requests.send(Request { words, answer });
        let lost = || Err(ClientError::MaybeExecuted("lost".to_owned()));
        answered.await.unwrap_or_else(|_| lost())
    }
}

/// Callers and their server.
pub(super) struct Bench {
    executor: Executor,
    pub(super) gather: Arc<Gather>,
    pub(super) requests: UnboundedReceiver<Request>,
    pub(super) connected: watch::Sender<bool>,
}

pub(super) type Caller = JoinHandle<Result<Reply, BackendError>>;

impl Bench {
    pub(super) fn new() -> Self {
        let (sender, requests) = unbounded_channel();
        let connected = watch::Sender::new(true);
        let client = stub::client(&Arc::new(Wire {
            requests: sender,
            connected: connected.subscribe(),
        }));
        Self {
            executor: Executor::new(Arc::clone(&client)),
            gather: Gather::new(&client, Arc::default()),
            requests,
            connected,
        }
    }

    /// Starts a task that calls a script with one key and these arguments.
    pub(super) async fn call(&self, script: &'static Script, key: &str, args: &str) -> Caller {
        let (executor, gather) = (self.executor.clone(), Arc::clone(&self.gather));
        let (key, args) = (key.to_owned(), args.to_owned());
        let caller = tokio::spawn(async move {
            let args: Vec<&[u8]> = args.split(' ').map(str::as_bytes).collect();
            let (keys, deadline) = ([key.as_bytes()], Instant::now() + Duration::from_secs(1));
            let call = Call::new(Effect::Grant, script, &keys, &args, 0, deadline);
            executor.run(Way::Together(&gather), &call).await
        });
        yield_now().await;
        caller
    }

    /// With as many unanswered requests as are sent before calls gather.
    pub(super) async fn busy() -> (Self, Vec<Request>) {
        Self::new().with_calls().await
    }

    pub(super) async fn with_calls(mut self) -> (Self, Vec<Request>) {
        let mut under_way = Vec::new();
        for _ in 0..UNDER_WAY {
            drop(self.call(&LOCK.acquire, "busy", "me").await);
            let request = self.sent().await;
            assert_eq!(request.words[2..], ["1", "busy", "me"]);
            under_way.push(request);
        }
        (self, under_way)
    }

    /// The next request.
    pub(super) async fn sent(&mut self) -> Request {
        self.requests.recv().await.unwrap()
    }

    pub(super) fn is_silent(&self) -> bool {
        self.requests.is_empty()
    }
}

impl Request {
    pub(super) fn answer(self, answer: Answer) {
        self.answer.send(answer).unwrap();
    }
}
