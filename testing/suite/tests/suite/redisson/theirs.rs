//! One of Redisson's objects, used by one Java thread.

use std::sync::Arc;

use locktopus_servers::peers::redisson::{JavaThread, Redisson, Reply};
use tokio::time::timeout;

use crate::common::{PATIENT, eventually, unique};
use crate::redisson_topology::{At, ask, waits_for_message};

/// Longer than any test, so that the end of a lease cannot be what frees the lock.
pub(crate) const LONG_LEASE: &str = "600000";

/// Runs a request with a wait limit that must fail. Redisson subscribes within the same limit
/// before it waits; if that takes longer, it says so, and says nothing about the lock.
pub(crate) async fn gives_up(thread: &mut JavaThread, command: &[&str]) {
    eventually("a wait that ends", PATIENT, async || {
        match ask(thread, command).await {
            Reply::No => Ok(()),
            Reply::Threw { class, message } if class == "RedisTimeoutException" => Err(message),
            other => panic!("{command:?}: {other:?}"),
        }
    })
    .await;
}

pub(crate) struct Theirs {
    java: Arc<Redisson>,
    thread: JavaThread,
    object: &'static str,
    pub(crate) name: String,
}

impl Theirs {
    /// Under a name of its own.
    pub(crate) fn new(at: &At, object: &'static str) -> Self {
        Self::named(at, object, &unique(object))
    }

    pub(crate) fn named(at: &At, object: &'static str, name: &str) -> Self {
        Self {
            java: Arc::clone(&at.java),
            thread: at.java.thread(),
            object,
            name: name.to_owned(),
        }
    }

    /// Another thread with the same object.
    pub(crate) fn another(&self) -> Self {
        Self {
            java: Arc::clone(&self.java),
            thread: self.java.thread(),
            object: self.object,
            name: self.name.clone(),
        }
    }

    async fn tell(&mut self, verb: &str, more: &[&str]) {
        let command = [&[self.object, verb, &self.name][..], more].concat();
        self.thread.tell(&command).await.unwrap();
    }

    pub(crate) async fn ask(&mut self, verb: &str, more: &[&str]) -> Reply {
        self.tell(verb, more).await;
        let reply = self.thread.reply().await;
        reply.unwrap_or_else(|error| panic!("{} {verb}: {error}", self.object))
    }

    /// Sends a request that must succeed, and returns the result.
    pub(crate) async fn does(&mut self, verb: &str, more: &[&str]) -> String {
        match self.ask(verb, more).await {
            Reply::Done => String::new(),
            Reply::Value(value) => value,
            other => panic!("{} {verb} {more:?}: {other:?}", self.object),
        }
    }

    /// The same of another object of this name, by the same thread.
    pub(crate) async fn also(&mut self, object: &'static str, verb: &str, more: &[&str]) -> String {
        let own = std::mem::replace(&mut self.object, object);
        let done = self.does(verb, more).await;
        self.object = own;
        done
    }

    pub(crate) async fn number(&mut self, verb: &str) -> i64 {
        self.does(verb, &[]).await.parse().unwrap()
    }

    /// Sends a request that must fail.
    pub(crate) async fn cannot(&mut self, verb: &str, more: &[&str]) {
        let reply = self.ask(verb, more).await;
        assert_eq!(reply, Reply::No, "{} {verb} {more:?}", self.object);
    }

    /// Sends a request with a wait limit that must fail.
    pub(crate) async fn gives_up(&mut self, verb: &str, more: &[&str]) {
        let command = [&[self.object, verb, &self.name][..], more].concat();
        gives_up(&mut self.thread, &command).await;
    }

    /// Unlocks what this thread does not hold, which Redisson refuses.
    pub(crate) async fn cannot_unlock(&mut self) {
        let reply = self.ask("unlock", &[]).await;
        assert!(
            matches!(&reply, Reply::Threw { class, .. } if class == "IllegalMonitorStateException"),
            "{}: {reply:?}",
            self.object
        );
    }

    /// Starts a request that waits until another client releases something.
    pub(crate) async fn begins(&mut self, verb: &str, more: &[&str]) {
        self.tell(verb, more).await;
    }

    /// As [`begins`](Self::begins), and returns once only a message or the end of a lease can end
    /// the wait.
    pub(crate) async fn waits(&mut self, verb: &str, more: &[&str]) {
        self.begins(verb, more).await;
        self.still_waits().await;
    }

    pub(crate) async fn still_waits(&self) {
        waits_for_message(&self.java, &self.thread).await;
    }

    /// The result of the started request, which must come soon.
    pub(crate) async fn served(&mut self) -> String {
        let reply = timeout(PATIENT, self.thread.reply()).await;
        match reply.unwrap_or_else(|_| panic!("{}: still waits", self.object)) {
            Ok(Reply::Done) => String::new(),
            Ok(Reply::Value(value)) => value,
            other => panic!("{}: {other:?}", self.object),
        }
    }
}
