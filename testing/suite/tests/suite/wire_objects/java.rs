//! A simulated client of Redisson, with raw commands: each script does what Redisson's does, in our
//! own words.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::common::raw::{Raw, Value};
use crate::wire_objects::At;

use locktopus_servers::peers::redisson_scripts::{
    LOCK, PERMITS_ACQUIRE, PERMITS_RELEASE, SEMAPHORE_ACQUIRE, SEMAPHORE_RELEASE, SEMAPHORE_SET,
    UNLOCK, WRITE_LOCK, WRITE_UNLOCK, fair_lock, fair_unlock,
};

/// Redisson's wait limit for a waiter without one, in ms.
const FAIR_WAIT: &str = "300000";
const FOR_EVER: &str = "922337203685477";

/// One thread of a Java service that uses one name.
pub(crate) struct Java {
    raw: Raw,
    name: String,
    /// `<uuid>:<thread>`.
    pub(crate) owner: String,
    publish: &'static str,
    /// How far this machine's clock is ahead, in ms.
    pub(crate) clock_ahead: i64,
}

impl Java {
    /// Two threads with one number are the same one.
    pub(crate) async fn on(at: &At, name: &str, thread: i64) -> Self {
        let node = at.place.primary_for(name).await.unwrap();
        Self {
            raw: Raw::to(node).await,
            name: name.to_owned(),
            owner: format!("71b96ce8-2746-4c1a-9b6e-0d2c1f0a9d11:{thread}"),
            publish: if at.is_sharded() {
                "SPUBLISH"
            } else {
                "PUBLISH"
            },
            clock_ahead: 0,
        }
    }

    pub(crate) fn raw(&mut self) -> &mut Raw {
        &mut self.raw
    }

    /// A key or channel beside the name.
    pub(crate) fn side(&self, prefix: &str) -> String {
        format!("{prefix}:{{{}}}", self.name)
    }

    pub(crate) fn channel(&self) -> String {
        self.side("redisson_lock__channel")
    }

    /// The channel that a fair lock uses to call this thread.
    pub(crate) fn own_channel(&self) -> String {
        format!("{}:{}", self.channel(), self.owner)
    }

    pub(crate) fn now(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(now.as_millis()).unwrap() + self.clock_ahead
    }

    async fn eval(&mut self, script: &str, keys: &[&str], args: &[&str]) -> Value {
        let count = keys.len().to_string();
        let words = [&["EVAL", script, &count][..], keys, args].concat();
        let answer = self.raw.say(&words).await;
        assert!(!matches!(answer, Value::Error(_)), "{answer:?}: {script}");
        answer
    }

    /// `None`: acquired. Otherwise the rest of the blocking lease.
    pub(crate) async fn lock(&mut self, lease: i64) -> Option<i64> {
        let (name, owner, lease) = (self.name.clone(), self.owner.clone(), lease.to_string());
        optional(&self.eval(LOCK, &[&name], &[&lease, &owner]).await)
    }

    /// `None`: not held. 0: still held. 1: free.
    pub(crate) async fn unlock(&mut self) -> Option<i64> {
        let (name, owner, channel) = (self.name.clone(), self.owner.clone(), self.channel());
        let args = ["0", "30000", &owner, self.publish];
        optional(&self.eval(UNLOCK, &[&name, &channel], &args).await)
    }

    fn fair_keys(&self) -> [String; 3] {
        [
            self.name.clone(),
            self.side("redisson_lock_queue"),
            self.side("redisson_lock_timeout"),
        ]
    }

    /// `None`: acquired. Otherwise it is queued.
    pub(crate) async fn fair_lock(&mut self, lease: i64) -> Option<i64> {
        let [name, queue, deadlines] = self.fair_keys();
        let (owner, lease, now) = (
            self.owner.clone(),
            lease.to_string(),
            self.now().to_string(),
        );
        let script = fair_lock();
        let args = [&*lease, &owner, FAIR_WAIT, &now];
        optional(
            &self
                .eval(&script, &[&name, &queue, &deadlines], &args)
                .await,
        )
    }

    pub(crate) async fn fair_unlock(&mut self) -> Option<i64> {
        let [name, queue, deadlines] = self.fair_keys();
        let (owner, channel, now) = (self.owner.clone(), self.channel(), self.now().to_string());
        let script = fair_unlock();
        let args = ["0", "30000", &owner, self.publish, &now];
        optional(
            &self
                .eval(&script, &[&name, &queue, &deadlines, &channel], &args)
                .await,
        )
    }

    pub(crate) async fn write_lock(&mut self, lease: i64) -> Option<i64> {
        let (name, writer) = (self.name.clone(), format!("{}:write", self.owner));
        let lease = lease.to_string();
        optional(&self.eval(WRITE_LOCK, &[&name], &[&lease, &writer]).await)
    }

    pub(crate) async fn write_unlock(&mut self) -> Option<i64> {
        let (name, channel) = (self.name.clone(), self.side("redisson_rwlock"));
        let writer = format!("{}:write", self.owner);
        let args = ["1", "30000", &writer, self.publish];
        optional(&self.eval(WRITE_UNLOCK, &[&name, &channel], &args).await)
    }

    fn semaphore_keys(&self) -> [String; 2] {
        [self.name.clone(), self.side("redisson_sc")]
    }

    pub(crate) async fn set_permits(&mut self, permits: i64) -> bool {
        let [name, channel] = self.semaphore_keys();
        let (permits, publish) = (permits.to_string(), self.publish);
        let args = [&*permits, publish];
        self.eval(SEMAPHORE_SET, &[&name, &channel], &args)
            .await
            .int()
            == 1
    }

    pub(crate) async fn take_permits(&mut self, permits: i64) -> bool {
        let [name, _] = self.semaphore_keys();
        let permits = permits.to_string();
        self.eval(SEMAPHORE_ACQUIRE, &[&name], &[&permits])
            .await
            .int()
            == 1
    }

    pub(crate) async fn give_permits(&mut self, permits: i64) -> i64 {
        let [name, channel] = self.semaphore_keys();
        let (permits, publish) = (permits.to_string(), self.publish);
        let args = [&*permits, publish];
        self.eval(SEMAPHORE_RELEASE, &[&name, &channel], &args)
            .await
            .int()
    }

    /// Acquires a permit with an id until the lease ends, or returns the script's refusal.
    pub(crate) async fn take_permit(&mut self, id: [u8; 16], lease: i64) -> Result<(), Value> {
        let [name, channel] = self.semaphore_keys();
        let held = format!("{{{name}}}:timeout");
        let now = self.now();
        let (ends, now) = ((now + lease).to_string(), now.to_string());
        let words: [&[u8]; 12] = [
            b"EVAL",
            PERMITS_ACQUIRE.as_bytes(),
            b"3",
            name.as_bytes(),
            held.as_bytes(),
            channel.as_bytes(),
            b"1",
            ends.as_bytes(),
            now.as_bytes(),
            FOR_EVER.as_bytes(),
            self.publish.as_bytes(),
            &id,
        ];
        match self.raw.ask(&words).await {
            Value::Bytes(answer) if answer == b"OK" => Ok(()),
            other => Err(other),
        }
    }

    pub(crate) async fn give_permit(&mut self, id: [u8; 16]) -> bool {
        let [name, channel] = self.semaphore_keys();
        let (held, now) = (format!("{{{name}}}:timeout"), self.now().to_string());
        let words: [&[u8]; 10] = [
            b"EVAL",
            PERMITS_RELEASE.as_bytes(),
            b"3",
            name.as_bytes(),
            channel.as_bytes(),
            held.as_bytes(),
            &id,
            b"1",
            now.as_bytes(),
            self.publish.as_bytes(),
        ];
        self.raw.ask(&words).await.int() == 1
    }
}

fn optional(answer: &Value) -> Option<i64> {
    match answer {
        Value::Nil => None,
        other => Some(other.int()),
    }
}
