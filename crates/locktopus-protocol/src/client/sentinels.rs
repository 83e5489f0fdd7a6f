//! Who the primary is, by the sentinels: the newest answer of all of them, and news of the next
//! one.
//!
//! After a failover the old primary goes on for a while, because nobody has told it yet (about ten
//! seconds where it was alive all the time), and a sentinel that did not take part names it until
//! it hears of the change. Clients that believe the first sentinel that answers, or stay where they
//! are as long as that works, then hold locks on both. So:
//!
//! * **All are asked at once**, and of their answers the one with the highest configuration epoch
//!   counts, which grows with every failover. One that is silent costs no more than a [short
//!   grace](GRACE), one that is down nothing.
//! * **What was heard is remembered.** Less than a majority cannot lead back to a primary that was
//!   replaced.
//! * **Connected clients listen on.** Each sentinel is asked again when it announces a change, and
//!   [now and then](INTERVAL); a connection to a primary that was replaced is [given
//!   up](Sentinels::replaced).
//!
//! What is left: sentinels take moments to agree, and a client that reaches only some that have not
//! heard yet cannot know better.

use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::client::backoff::Redial;
use crate::client::budget::Budget;
use crate::client::options::HostPort;
use crate::client::{ClientError, Reply};

/// How much longer other sentinels have once one has answered: as long again as that took, and at
/// least this.
pub const GRACE: Duration = Duration::from_millis(50);

/// How often a sentinel is asked that announces nothing.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// What sentinels announce when another server is the primary: the one that led the failover as
/// soon as the server confirms it, and the others when they hear of it.
pub const ANNOUNCEMENTS: [&str; 2] = ["+switch-master", "+promoted-slave"];

/// Makes connections to sentinels: what this module needs of a client library.
#[async_trait]
pub trait SentinelDialer: fmt::Debug + Send + Sync + 'static {
    /// Connects and logs in, within [`Budget::connection`].
    async fn dial(&self, sentinel: &HostPort) -> Result<Box<dyn SentinelLine>, ClientError>;
}

/// One connection to one sentinel. Dropping it closes it.
#[async_trait]
pub trait SentinelLine: Send + Sync {
    /// Sends commands in one write. `Err` if an answer is missing.
    async fn ask(
        &self,
        commands: &[&[&[u8]]],
    ) -> Result<Vec<Result<Reply, ClientError>>, ClientError>;

    /// Subscribes to the channels. The sentinel may refuse.
    async fn subscribe(&self, channels: &[&'static str]) -> Result<(), ClientError>;

    /// Resolves when a message has arrived since the last call, or the connection is gone. Never
    /// without subscriptions.
    async fn message(&self);
}

/// A primary as a sentinel names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPrimary {
    server: HostPort,
    /// `None` if the sentinel does not say, because the user may not ask.
    epoch: Option<u64>,
}

impl NamedPrimary {
    /// Where it is.
    #[must_use]
    pub fn server(&self) -> &HostPort {
        &self.server
    }

    fn is_newer_than(&self, other: &Self) -> bool {
        self.epoch > other.epoch
    }
}

/// The sentinels of one primary, and what they said so far.
pub struct Sentinels {
    sentinels: Vec<HostPort>,
    master_name: String,
    budget: Budget,
    dialer: Box<dyn SentinelDialer>,
    /// The newest primary that was heard of.
    newest: watch::Sender<Option<NamedPrimary>>,
}

impl Sentinels {
    /// Sentinels that were not asked yet.
    #[must_use]
    pub fn new(
        sentinels: &[HostPort],
        master_name: &str,
        budget: Budget,
        dialer: impl SentinelDialer,
    ) -> Self {
        Self {
            sentinels: sentinels.to_vec(),
            master_name: master_name.to_owned(),
            budget,
            dialer: Box::new(dialer),
            newest: watch::Sender::new(None),
        }
    }

    /// The primary, by the newest answer of those who answer in time.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotSent`] if no sentinel answers with an address within a connection and an answer of the [`Budget`],
    /// or if fewer than a majority answer and all name a primary that is known to have been
    /// replaced.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn primary(&self) -> Result<NamedPrimary, ClientError> {
        let mut asked: FuturesUnordered<_> = self
            .sentinels
            .iter()
            .map(|one| self.ask_once(one))
            .collect();
        let begun = Instant::now();
        let mut end = None;
        let mut answers = Vec::new();
        let mut problem = ClientError::NotSent("no sentinel is known".to_owned());
        loop {
            let grace = async {
                match end {
                    Some(end) => sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                answer = asked.next() => match answer {
                    Some(Ok(named)) => {
                        end = end.or_else(|| Some(Instant::now() + begun.elapsed().max(GRACE)));
                        answers.push(named);
                    }
                    Some(Err(error)) => {
                        tracing::debug!(%error, "no primary from this sentinel");
                        problem = error;
                    }
                    None => break,
                },
                () = grace => break,
            }
        }
        self.choose(&answers).unwrap_or(Err(problem))
    }

    /// The newest of the answers, of those the most frequent one. `None` if there is none.
    fn choose(&self, answers: &[NamedPrimary]) -> Option<Result<NamedPrimary, ClientError>> {
        let votes = |named: &NamedPrimary| answers.iter().filter(|other| *other == named).count();
        // Of equals the first.
        let chosen = answers
            .iter()
            .min_by_key(|named| Reverse((named.epoch, votes(named))))?;
        let majority = self.sentinels.len() / 2 + 1;
        let mut outcome = Ok(chosen.clone());
        self.newest.send_if_modified(|newest| {
            let known = newest.replace(chosen.clone());
            match known {
                Some(known) if known.is_newer_than(chosen) && answers.len() < majority => {
                    outcome = Err(ClientError::NotSent(format!(
                        "{} of {} sentinels answer, and name {}, which {} has replaced",
                        answers.len(),
                        self.sentinels.len(),
                        chosen.server,
                        known.server
                    )));
                    *newest = Some(known);
                    false
                }
                Some(known) => known != *chosen,
                None => true,
            }
        });
        Some(outcome)
    }

    /// The highest epoch that was heard, of
    /// [`RedisClient::configuration_epoch`](crate::RedisClient::configuration_epoch).
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.newest.borrow().as_ref()?.epoch
    }

    /// Resolves when a sentinel has named a newer primary than this one, at another address.
    pub async fn replaced(&self, primary: &NamedPrimary) {
        let is_elsewhere = |newest: &Option<NamedPrimary>| {
            newest.as_ref().is_some_and(|newest| {
                newest.is_newer_than(primary) && newest.server != primary.server
            })
        };
        let mut newest = self.newest.subscribe();
        // The sender is in `self`.
        let _found = newest.wait_for(is_elsewhere).await;
    }

    /// Listens to every sentinel, for as long as this is polled.
    pub async fn watch(&self) {
        join_all(self.sentinels.iter().map(|one| self.watch_one(one))).await;
    }

    async fn watch_one(&self, sentinel: &HostPort) {
        let mut redial = Redial::new("sentinel");
        let mut may_subscribe = true;
        loop {
            if let Ok(line) = self.dialer.dial(sentinel).await {
                redial.connected(Instant::now());
                let error = self.listen(sentinel, &*line, &mut may_subscribe).await;
                tracing::debug!(%error, "a sentinel is not listened to any more");
                redial.lost(Instant::now());
            } else {
                redial.failed(Instant::now());
            }
            if let Some(pause) = redial.wait(Instant::now()) {
                sleep(pause).await;
            }
        }
    }

    /// Asks again and again, until that fails.
    async fn listen(
        &self,
        sentinel: &HostPort,
        line: &dyn SentinelLine,
        may_subscribe: &mut bool,
    ) -> ClientError {
        let mut hears = false;
        if *may_subscribe {
            let subscribed = timeout(self.budget.answer(), line.subscribe(&ANNOUNCEMENTS)).await;
            hears = matches!(subscribed, Ok(Ok(())));
            // A refusal may have cost the connection, so it is not asked for again.
            *may_subscribe = !matches!(subscribed, Ok(Err(ClientError::Rejected { .. })));
        }
        loop {
            match self.ask(sentinel, line).await {
                Ok(named) => self.hear(named),
                Err(error) => return error,
            }
            tokio::select! {
                () = line.message(), if hears => {}
                () = sleep(INTERVAL) => {}
            }
        }
    }

    /// Takes note of what a sentinel says by the way. Only what is certainly newer counts: the
    /// others were not asked.
    fn hear(&self, named: NamedPrimary) {
        self.newest.send_if_modified(|newest| {
            let is_news = newest
                .as_ref()
                .is_some_and(|newest| named.is_newer_than(newest));
            if is_news {
                tracing::debug!(server = %named.server, epoch = named.epoch, "another primary");
                *newest = Some(named);
            }
            is_news
        });
    }

    /// Over a connection of its own: this is needed only when something is wrong, and then a fresh
    /// one tells more.
    async fn ask_once(&self, sentinel: &HostPort) -> Result<NamedPrimary, ClientError> {
        let line = self.dialer.dial(sentinel).await?;
        self.ask(sentinel, &*line).await
    }

    async fn ask(
        &self,
        sentinel: &HostPort,
        line: &dyn SentinelLine,
    ) -> Result<NamedPrimary, ClientError> {
        let name = self.master_name.as_bytes();
        // The sentinel that leads a failover gives the new address before the record of the old
        // primary changes.
        let address: [&[u8]; 3] = [b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", name];
        let record: [&[u8]; 3] = [b"SENTINEL", b"MASTER", name];
        let unhelpful = |error: &dyn fmt::Display| {
            ClientError::NotSent(format!("sentinel {sentinel} does not help: {error}"))
        };
        let limit = self.budget.answer();
        let answers = match timeout(limit, line.ask(&[&record, &address])).await {
            Ok(answers) => answers.map_err(|error| unhelpful(&error))?,
            Err(_) => return Err(unhelpful(&format_args!("nothing heard in {limit:?}"))),
        };
        let [record, address] = answers.as_slice() else {
            return Err(unhelpful(&"an answer is missing"));
        };
        let address = address.as_ref().map_err(|error| unhelpful(&error))?;
        let server = parse_address(address).ok_or_else(|| {
            ClientError::NotSent(format!(
                "sentinel {sentinel} knows no primary named {:?}: check the name in the sentinel's configuration",
                self.master_name
            ))
        })?;
        let epoch = record.as_ref().ok().and_then(parse_epoch);
        Ok(NamedPrimary { server, epoch })
    }
}

impl fmt::Debug for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sentinels")
            .field("sentinels", &self.sentinels)
            .field("master_name", &self.master_name)
            .field("newest", &*self.newest.borrow())
            .finish_non_exhaustive()
    }
}

fn is(reply: &Reply, word: &[u8]) -> bool {
    matches!(reply, Reply::Bytes(bytes) if bytes == word)
}

fn text(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        Reply::Nil | Reply::Int(_) | Reply::Array(_) => None,
    }
}

fn parse_address(answer: &Reply) -> Option<HostPort> {
    let Reply::Array(parts) = answer else {
        return None;
    };
    let [host, port] = parts.as_slice() else {
        return None;
    };
    Some(HostPort {
        host: text(host)?.to_owned(),
        port: text(port)?.parse().ok()?,
    })
}

fn parse_epoch(record: &Reply) -> Option<u64> {
    let Reply::Array(fields) = record else {
        return None;
    };
    let mut fields = fields.chunks_exact(2);
    let field = fields.find(|field| is(&field[0], b"config-epoch"))?;
    text(&field[1])?.parse().ok()
}

#[cfg(test)]
mod tests;
