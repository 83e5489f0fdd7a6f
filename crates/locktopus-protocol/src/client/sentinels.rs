//! Finds the primary through the sentinels: the newest of all their answers, and news of the next
//! failover.
//!
//! After a failover the old primary carries on until a sentinel tells it (about ten seconds if it
//! was alive throughout). A sentinel that did not take part names the old primary until it hears of
//! the change. Clients that believe the first sentinel to answer, or stay where they are while that
//! works, then hold locks on both servers. So:
//!
//! * **The client asks all sentinels at once** and uses the answer with the highest configuration
//!   epoch, which grows with every failover. A silent sentinel costs only a [short grace](GRACE), a
//!   dead one costs nothing.
//! * **The client remembers the newest answer.** Less than a majority cannot lead it back to a
//!   primary that was replaced.
//! * **Connected clients keep listening.** They ask each sentinel again when it announces a change,
//!   and [periodically](INTERVAL). A connection to a primary that was replaced is [given
//!   up](Sentinels::replaced).
//!
//! A gap remains: sentinels take moments to agree, and a client that reaches only sentinels without
//! the news cannot know better.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::client::backoff::Redial;
use crate::client::budget::Budget;
use crate::client::options::HostPort;
use crate::client::{ClientError, Deployment, Reply};

/// How much longer to wait for other sentinels once one has answered: as long as that answer took,
/// and at least this.
pub const GRACE: Duration = Duration::from_millis(50);

/// How often to ask a sentinel that announces nothing.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// Sentinels announce these when another server is the primary. The one that led the failover does
/// so as soon as the server confirms it, the others when they hear of it.
pub const ANNOUNCEMENTS: [&str; 2] = ["+switch-master", "+promoted-slave"];

/// Opens connections to sentinels: what this module needs from a client library.
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

    /// Resolves when a message has arrived since the last call, or the connection is gone. Without
    /// subscriptions it never resolves.
    async fn message(&self);
}

/// A primary as a sentinel names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPrimary {
    server: HostPort,
    /// `None` if the sentinel does not tell, because the user may not ask.
    epoch: Option<u64>,
}

impl NamedPrimary {
    /// Its address.
    #[must_use]
    pub fn server(&self) -> &HostPort {
        &self.server
    }

    fn is_newer_than(&self, other: &Self) -> bool {
        self.epoch > other.epoch
    }
}

/// The server that a connection leads to.
#[derive(Debug, Clone)]
pub enum Target {
    /// Always this server.
    Server(HostPort),
    /// The server that the sentinels call the primary at the time of connecting.
    Primary(Arc<Sentinels>),
}

impl Target {
    /// The sentinels, if there are any.
    #[must_use]
    pub fn sentinels(&self) -> Option<&Arc<Sentinels>> {
        match self {
            Self::Server(_) => None,
            Self::Primary(sentinels) => Some(sentinels),
        }
    }

    /// The kind of deployment with this one primary.
    #[must_use]
    pub fn deployment(&self) -> Deployment {
        match self {
            Self::Server(_) => Deployment::Standalone,
            Self::Primary(_) => Deployment::Sentinel,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(server) => server.fmt(f),
            Self::Primary(_) => f.write_str("the primary named by the sentinels"),
        }
    }
}

/// The sentinels of one primary, and their newest answer.
pub struct Sentinels {
    sentinels: Vec<HostPort>,
    master_name: String,
    budget: Budget,
    dialer: Box<dyn SentinelDialer>,
    /// The newest primary that any sentinel named.
    newest: watch::Sender<Option<NamedPrimary>>,
}

impl Sentinels {
    /// Starts without an answer.
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

    /// The primary that the newest timely answer names.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotSent`] if no sentinel answers with an address within a connection and an
    /// answer of the [`Budget`]; or if fewer than a majority answer, and all name a primary known
    /// to have been replaced.
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

    /// The newest answer, and of several the most frequent one. `None` if there are no answers.
    fn choose(&self, answers: &[NamedPrimary]) -> Option<Result<NamedPrimary, ClientError>> {
        let votes = |named: &NamedPrimary| answers.iter().filter(|other| *other == named).count();
        // The first of equals.
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

    /// The highest epoch seen so far, for
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

    /// Listens to every sentinel for as long as it is polled.
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

    /// Asks repeatedly until that fails.
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
            // A refusal may have cost the connection, so this does not ask again.
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

    /// Notes an unprompted answer of a sentinel. Only a certainly newer one counts, because the
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

    /// Uses a fresh connection: this is needed only when something is wrong, and then a fresh one
    /// tells more.
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

fn parse_address(answer: &Reply) -> Option<HostPort> {
    let [host, port] = answer.items()? else {
        return None;
    };
    Some(HostPort {
        host: host.text()?.to_owned(),
        port: port.text()?.parse().ok()?,
    })
}

fn parse_epoch(record: &Reply) -> Option<u64> {
    record.field("config-epoch")?.text()?.parse().ok()
}

#[cfg(test)]
mod tests;
