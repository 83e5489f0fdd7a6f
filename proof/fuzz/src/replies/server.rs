//! A client of a server whose answers come from the bytes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use locktopus::lock;
use locktopus_protocol::client::{
    Channel, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient, Reply, Route,
};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::input::{Input, text};

/// Deeper than any answer of a script.
const DEPTH: u8 = 6;

/// The answers, encoded in the bytes: an integer, a text, nothing, a list, or an error.
pub(super) struct Server {
    answers: Mutex<VecDeque<Result<Reply, String>>>,
    given: Mutex<Vec<Reply>>,
}

impl Server {
    pub(super) fn new(mut input: Input<'_>) -> Self {
        let mut answers = VecDeque::new();
        while !input.is_empty() {
            answers.push_back(answer(&mut input));
        }
        Self {
            answers: Mutex::new(answers),
            given: Mutex::default(),
        }
    }

    /// The last answer that was not an error.
    pub(super) fn last(&self) -> Option<Reply> {
        lock(&self.given).last().cloned()
    }

    /// Whether that answer says that something was granted.
    pub(super) fn granted(&self) -> bool {
        match self.last() {
            Some(Reply::Int(micros)) => micros > 0,
            Some(Reply::Array(items)) => items.first() == Some(&Reply::Int(1)),
            _ => false,
        }
    }

    /// The next answer as a text, if it is one.
    pub(super) fn text(&self) -> Option<String> {
        match lock(&self.answers).pop_front()?.ok()? {
            Reply::Bytes(bytes) => Some(text(&bytes).into_owned()),
            _ => None,
        }
    }

    fn next(&self) -> Result<Reply, ClientError> {
        let answer = lock(&self.answers).pop_front().unwrap_or(Ok(Reply::Nil));
        match answer {
            Ok(reply) => {
                lock(&self.given).push(reply.clone());
                Ok(reply)
            }
            Err(line) => Err(ClientError::rejected(&line)),
        }
    }
}

fn answer(input: &mut Input<'_>) -> Result<Reply, String> {
    // An error is only valid as a whole answer.
    const ERRORS: [&str; 8] = [
        "",
        "NOSCRIPT ",
        "WRONGKIND ",
        "TOOFEW ",
        "OOM ",
        "BUSY ",
        "MOVED ",
        "NOREPLICAS ",
    ];
    if input.byte() % 16 == 15 {
        let code = *input.one_of(&ERRORS);
        let length = usize::from(input.byte());
        return Err(format!("{code}{}", text(input.take(length))));
    }
    Ok(reply(input, DEPTH))
}

fn reply(input: &mut Input<'_>, depth: u8) -> Reply {
    match input.byte() % 8 {
        0 => Reply::Nil,
        1 => Reply::Int(input.number()),
        2 | 3 => Reply::Int(i64::from(input.byte()) - 2),
        4 => {
            let length = usize::from(input.byte());
            Reply::Bytes(Bytes::copy_from_slice(input.take(length)))
        }
        5 => Reply::Bytes(Bytes::from(input.number().to_string())),
        _ if depth == 0 => Reply::Array(Vec::new()),
        _ => {
            let length = input.byte() % 16;
            Reply::Array((0..length).map(|_| reply(input, depth - 1)).collect())
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

#[async_trait]
impl RedisClient for Server {
    fn name(&self) -> &'static str {
        "fuzz"
    }

    fn deployment(&self) -> Deployment {
        Deployment::Standalone
    }

    async fn command(&self, _: Route, _: &[&[u8]]) -> Result<Reply, ClientError> {
        // Lets time pass, or a caller that retries would never stop.
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.next()
    }

    async fn pipeline(&self, _: Route, commands: &[&[&[u8]]]) -> Result<Pipelined, ClientError> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let replies = commands.iter().map(|_| self.next()).collect();
        Ok(Pipelined {
            node: "fuzz:1".to_owned(),
            replies,
        })
    }

    async fn command_on_primaries(&self, _: &[&[u8]]) -> Result<Vec<NodeReply>, ClientError> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(vec![NodeReply {
            node: "fuzz:1".to_owned(),
            reply: self.next(),
        }])
    }

    async fn subscribe(&self, _: &[Channel]) -> Result<(), ClientError> {
        Ok(())
    }

    async fn unsubscribe(&self, _: &[Channel]) -> Result<(), ClientError> {
        Ok(())
    }

    fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>> {
        None
    }

    fn timed_out(&self, _: Route) {}

    fn generation(&self) -> u64 {
        0
    }

    async fn close(&self) {}
}
