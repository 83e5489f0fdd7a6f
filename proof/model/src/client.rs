//! A client of a modelled server, to run a whole backend on one.

mod store;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_protocol::{
    Channel, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient,
    Reply as Answer, Route,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::lua::Interpreter;
use super::redis::{Reply, Role, Server, Unsupported};
use store::{Store, lock};

/// A client of one modelled server, which other clients may share.
#[derive(Debug)]
pub struct ModelClient {
    store: Arc<Store>,
    number: usize,
    events: Mutex<Option<UnboundedReceiver<PushEvent>>>,
    replicas: usize,
    passes: Mutex<VecDeque<Pass>>,
    epoch: Mutex<Option<u64>>,
    /// The error with which the server refuses subscriptions, if it does.
    pub refused: Mutex<Option<ClientError>>,
}

/// How long a reply takes if time passes: the resolution of tokio's timers.
const TRAVEL: Duration = Duration::from_millis(1);

/// The outcome of one pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pass {
    /// It runs.
    Fine,
    /// The command at this place, counted from 0, gets this error line; the others run.
    Refused(usize, String),
    /// It never leaves the process.
    NotSent,
    /// So many commands run, and the connection breaks before any reply arrives.
    Cut(usize),
}

const NODE: &str = "model:1";

thread_local! {
    /// It keeps only compiled scripts between calls.
    static LUA: Interpreter = Interpreter::new().expect("an embedded Lua starts");
}

/// The command that marks the server with this replication id as having run without interruption,
/// so quarantine holds nothing back there.
#[must_use]
pub fn was_here(replid: &str) -> Vec<Vec<u8>> {
    let words = ["HSET", "locktopus_history", "history", replid, "until", "1"];
    words.map(|word| word.as_bytes().to_vec()).to_vec()
}

impl Default for ModelClient {
    fn default() -> Self {
        Self::of(Arc::default(), 0)
    }
}

impl Drop for ModelClient {
    fn drop(&mut self) {
        self.store.leave(self.number);
    }
}

impl ModelClient {
    fn of(store: Arc<Store>, replicas: usize) -> Self {
        let (sender, receiver) = unbounded_channel();
        Self {
            number: store.join(sender),
            store,
            events: Mutex::new(Some(receiver)),
            replicas,
            passes: Mutex::default(),
            epoch: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// A client of a fresh server with this many replicas, which confirm everything at once.
    #[must_use]
    pub fn with_replicas(replicas: usize) -> Self {
        Self::of(Arc::default(), replicas)
    }

    /// A client of a fresh server whose clock follows that of tokio, which may be paused. Replies
    /// take a millisecond.
    #[must_use]
    pub fn timed() -> Self {
        Self::of(Arc::new(Store::timed()), 0)
    }

    /// Another client of the same server.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::of(Arc::clone(&self.store), self.replicas)
    }

    /// The server, to inspect it or to change it without a client.
    pub fn server(&self) -> MutexGuard<'_, Server> {
        self.store.server()
    }

    async fn travel(&self) {
        if self.store.is_timed() {
            tokio::time::sleep(TRAVEL).await;
        }
    }

    /// Sets the outcomes of the next pipelines. All later ones run normally.
    pub fn plan(&self, passes: impl IntoIterator<Item = Pass>) {
        *lock(&self.passes) = passes.into_iter().collect();
    }

    /// Sets the epoch that sentinels reported last.
    pub fn hear_epoch(&self, epoch: Option<u64>) {
        *lock(&self.epoch) = epoch;
    }

    /// How many commands each script of any client ran since the last call.
    #[must_use]
    pub fn take_runs(&self) -> Vec<usize> {
        std::mem::take(&mut lock(&self.store.runs))
    }

    fn run(&self, args: &[&[u8]]) -> Result<Answer, ClientError> {
        let words: Vec<Vec<u8>> = args.iter().map(|arg| arg.to_vec()).collect();
        let answer = match args[0] {
            b"EVALSHA" => Ok(Reply::Error("NOSCRIPT No matching script.".to_owned())),
            b"EVAL" => self.eval(&words),
            b"WAIT" => Ok(Reply::count(self.confirm(&words))),
            b"ROLE" => Ok(self.role()),
            _ => self.server().command(&words),
        };
        self.store.deliver();
        match answer {
            Ok(Reply::Error(line)) => Err(ClientError::rejected(&line)),
            Ok(reply) => Ok(as_answer(reply)),
            Err(lacking) => panic!("{lacking}"),
        }
    }

    fn eval(&self, words: &[Vec<u8>]) -> Result<Reply, Unsupported> {
        let count = std::str::from_utf8(&words[2]).ok();
        let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or(0);
        let (keys, arguments) = words[3..].split_at(count);
        let source = String::from_utf8_lossy(&words[1]);
        let evaluation = LUA.with(|lua| {
            let program = lua.load(&source)?;
            lua.eval(&mut self.server(), &program, keys, arguments)
        })?;
        lock(&self.store.runs).push(evaluation.commands);
        Ok(evaluation.reply)
    }

    /// A server waits for no more replicas than the request names.
    fn confirm(&self, words: &[Vec<u8>]) -> usize {
        let asked = std::str::from_utf8(&words[1]).ok();
        let asked = asked.and_then(|asked| asked.parse().ok()).unwrap_or(0);
        self.replicas.min(asked)
    }

    fn role(&self) -> Reply {
        let replicas = vec![Reply::Array(Vec::new()); self.replicas];
        match self.server().role {
            Role::Primary => Reply::Array(vec![
                Reply::bulk("master"),
                Reply::Int(1),
                Reply::Array(replicas),
            ]),
            Role::Replica => Reply::Array(vec![Reply::bulk("slave")]),
        }
    }
}

#[async_trait]
impl RedisClient for ModelClient {
    fn name(&self) -> &'static str {
        "model"
    }

    fn deployment(&self) -> Deployment {
        Deployment::Standalone
    }

    async fn configuration_epoch(&self) -> Option<u64> {
        *lock(&self.epoch)
    }

    async fn command(&self, _route: Route, args: &[&[u8]]) -> Result<Answer, ClientError> {
        self.travel().await;
        self.run(args)
    }

    async fn pipeline(
        &self,
        _route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        self.travel().await;
        let pass = lock(&self.passes).pop_front().unwrap_or(Pass::Fine);
        let refusal = |at: usize| match &pass {
            Pass::Refused(place, line) if *place == at => Some(ClientError::rejected(line)),
            _ => None,
        };
        let last = match pass {
            Pass::NotSent => return Err(ClientError::NotSent("no connection".to_owned())),
            Pass::Cut(last) => last,
            Pass::Fine | Pass::Refused(..) => commands.len(),
        };
        let commands = commands.iter().take(last).enumerate();
        let replies: Vec<_> = commands
            .map(|(at, args)| refusal(at).map_or_else(|| self.run(args), Err))
            .collect();
        if let Pass::Cut(_) = pass {
            return Err(ClientError::MaybeExecuted(
                "the connection broke".to_owned(),
            ));
        }
        Ok(Pipelined {
            node: NODE.to_owned(),
            replies,
        })
    }

    async fn command_on_primaries(&self, args: &[&[u8]]) -> Result<Vec<NodeReply>, ClientError> {
        self.travel().await;
        let (node, reply) = (NODE.to_owned(), self.run(args));
        Ok(vec![NodeReply { node, reply }])
    }

    async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        self.travel().await;
        lock(&self.refused).clone().map_or(Ok(()), Err)?;
        self.store.subscribe(self.number, channels);
        Ok(())
    }

    async fn unsubscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        self.store.unsubscribe(self.number, channels);
        Ok(())
    }

    fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>> {
        lock(&self.events).take()
    }

    fn timed_out(&self, _route: Route) {}

    fn generation(&self) -> u64 {
        0
    }

    async fn close(&self) {
        self.store.leave(self.number);
    }
}

fn as_answer(reply: Reply) -> Answer {
    match reply {
        Reply::Nil => Answer::Nil,
        Reply::Int(number) => Answer::Int(number),
        Reply::Bulk(bytes) => Answer::Bytes(bytes.into()),
        Reply::Status(text) | Reply::Error(text) => Answer::Bytes(text.into()),
        Reply::Array(items) => Answer::Array(items.into_iter().map(as_answer).collect()),
    }
}
