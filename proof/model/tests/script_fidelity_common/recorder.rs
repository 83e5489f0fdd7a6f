//! Clients of the modelled server that record each call. The shipped backend calls scripts through
//! them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use locktopus_model::redis::Reply;
use locktopus_protocol::{
    Channel, ChannelFlavour, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient,
    Reply as Answer, Route,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::sides::{Kept, Modelled};
use super::steps::{Listening, Shipped, Step};

/// The number of replicas that the modelled server reports.
const REPLICAS: usize = 2;
const NODE: &str = "model:1";

/// A step with the model's reply and, sometimes, a dump.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) step: Step,
    pub(crate) reply: Reply,
    pub(crate) dump: Option<Vec<Kept>>,
}

/// The modelled server and its recorded steps.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) modelled: Modelled,
    pub(crate) listening: Vec<Listening>,
    pub(crate) done: Vec<Done>,
    /// A dump follows every this many steps.
    pub(crate) dumped_every: usize,
    clock: i64,
    scripts: BTreeMap<&'static str, usize>,
    /// How far the clock advances between two calls, in µs: each of these in turn.
    paces: Vec<i64>,
}

impl Recorder {
    pub(crate) fn new(texts: &[Shipped], replid: &str) -> Arc<Mutex<Self>> {
        let scripts = texts.iter().enumerate();
        let scripts = scripts.flat_map(|(at, text)| [(text.digest, at), (text.source, at)]);
        Arc::new(Mutex::new(Self {
            modelled: Modelled::new(texts, replid),
            listening: Vec::new(),
            done: Vec::new(),
            dumped_every: 1,
            clock: 1_760_000_000_000_000,
            scripts: scripts.collect(),
            paces: vec![1],
        }))
    }

    /// The next script sees a later time than this, in µs.
    pub(crate) fn clock(&self) -> i64 {
        self.clock
    }

    pub(crate) fn set_paces(&mut self, paces: Vec<i64>) {
        self.paces = paces;
    }

    /// Runs a step on the modelled server, and records it.
    pub(crate) fn run(&mut self, step: Step) -> Reply {
        if let Step::Lapse(millis) = step {
            self.clock += millis * 1_000;
        }
        let reply = self.modelled.run(&step);
        let dumped = (self.done.len() + 1).is_multiple_of(self.dumped_every);
        let dump = dumped.then(|| self.modelled.dump());
        self.done.push(Done {
            step,
            reply: reply.clone(),
            dump,
        });
        reply
    }

    fn call(&mut self, args: &[&[u8]]) -> Reply {
        // Found by its digest or its text.
        let script = self.scripts[std::str::from_utf8(args[1]).unwrap()];
        let count: usize = std::str::from_utf8(args[2]).unwrap().parse().unwrap();
        let words: Vec<_> = args[3..].iter().map(|word| word.to_vec()).collect();
        let (keys, arguments) = words.split_at(count);
        let turn = self.done.len() % self.paces.len();
        self.clock += self.paces[turn];
        let reply = self.run(Step::Call {
            script,
            keys: keys.to_vec(),
            arguments: arguments.to_vec(),
            clock: self.clock,
        });
        match reply {
            // The messages and the reply, which is missing if it is nil.
            Reply::Array(mut both) => both.drain(..).nth(1).unwrap_or(Reply::Nil),
            other => other,
        }
    }
}

/// One process's client of the modelled server.
#[derive(Debug)]
pub(crate) struct Recording {
    recorder: Arc<Mutex<Recorder>>,
    number: usize,
    deployment: Deployment,
    events: Mutex<Option<UnboundedReceiver<PushEvent>>>,
    /// Sends nothing, but if it were dropped, the stream would end like a lost connection.
    _silence: UnboundedSender<PushEvent>,
}

impl Recording {
    pub(crate) fn new(
        recorder: &Arc<Mutex<Recorder>>,
        number: usize,
        deployment: Deployment,
    ) -> Self {
        let (sender, receiver) = unbounded_channel();
        Self {
            recorder: Arc::clone(recorder),
            number,
            deployment,
            events: Mutex::new(Some(receiver)),
            _silence: sender,
        }
    }

    fn run(&self, args: &[&[u8]]) -> Result<Answer, ClientError> {
        let mut recorder = locked(&self.recorder);
        let words = || args.iter().map(|arg| arg.to_vec()).collect::<Vec<_>>();
        let reply = match args[0] {
            b"EVALSHA" | b"EVAL" => recorder.call(args),
            b"WAIT" => Reply::Int(std::str::from_utf8(args[1]).unwrap().parse().unwrap()),
            b"ROLE" => Reply::Array(vec![
                Reply::Bulk(b"master".to_vec()),
                Reply::Int(1),
                Reply::Array(vec![Reply::Array(Vec::new()); REPLICAS]),
            ]),
            // The time that scripts see, not that of a server.
            b"TIME" => {
                let now = [recorder.clock / 1_000_000, recorder.clock % 1_000_000];
                Reply::Array(
                    now.map(|part| Reply::Bulk(part.to_string().into_bytes()))
                        .to_vec(),
                )
            }
            // Not recorded, since other servers reply differently.
            b"INFO" | b"SCAN" | b"PUBSUB" => recorder.modelled.server.command(&words()).unwrap(),
            b"CLUSTER" => Reply::Error("ERR This instance has cluster support disabled".to_owned()),
            _ => recorder.run(Step::Command(words())),
        };
        match reply {
            Reply::Error(line) => Err(ClientError::rejected(&line)),
            reply => Ok(as_answer(reply)),
        }
    }
}

#[async_trait]
impl RedisClient for Recording {
    fn name(&self) -> &'static str {
        "model"
    }

    fn deployment(&self) -> Deployment {
        self.deployment
    }

    async fn command(&self, _route: Route, args: &[&[u8]]) -> Result<Answer, ClientError> {
        // Lets other calls gather meanwhile.
        tokio::task::yield_now().await;
        self.run(args)
    }

    async fn pipeline(
        &self,
        _route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        Ok(Pipelined {
            node: NODE.to_owned(),
            replies: commands.iter().map(|args| self.run(args)).collect(),
        })
    }

    async fn command_on_primaries(&self, args: &[&[u8]]) -> Result<Vec<NodeReply>, ClientError> {
        Ok(vec![NodeReply {
            node: NODE.to_owned(),
            reply: self.run(args),
        }])
    }

    async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        let mut recorder = locked(&self.recorder);
        for channel in channels {
            let listening = Listening {
                client: self.number,
                sharded: channel.flavour == ChannelFlavour::Sharded,
                channel: channel.name.to_vec(),
            };
            if !recorder.listening.contains(&listening) {
                recorder.modelled.listen(&listening);
                recorder.listening.push(listening);
            }
        }
        Ok(())
    }

    async fn unsubscribe(&self, _channels: &[Channel]) -> Result<(), ClientError> {
        panic!("who listens does so during all of it");
    }

    fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>> {
        locked(&self.events).take()
    }

    fn timed_out(&self, _route: Route) {}

    fn generation(&self) -> u64 {
        0
    }

    async fn close(&self) {}
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

/// A panic of a test leaves the data whole, so poison is ignored.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
