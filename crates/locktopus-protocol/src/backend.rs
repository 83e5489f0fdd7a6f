//! `LockBackend` over any [`RedisClient`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo, Diagnosis,
    Executed, ExtendOutcome, ExtendRequest, LockBackend, LockKind, LockState, LockTarget,
    NameError, ReleaseOutcome, ReleaseRequest, WakeStream,
};
use tokio::time::Instant;

use crate::client::{ChannelFlavour, ClientError, Deployment, RedisClient, Route};
use crate::executor::Executor;
use crate::hub::Hub;
use crate::keys::Keys;
use crate::reply::{Acquired, Decoder};
use crate::scripts::{self, Script};
use crate::server_clock::{self, ServerClock};
use crate::{diagnose, slot};

/// Locks on Redis or Valkey, through any client library.
#[derive(Debug)]
pub struct RedisBackend {
    executor: Executor,
    hub: Hub,
    clock: ServerClock,
    options: BackendOptions,
    flavour: ChannelFlavour,
    info: BackendInfo,
}

/// What can be chosen about a [`RedisBackend`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendOptions {
    /// How long to wait for one answer. Default 1 s.
    pub call_timeout: Duration,
    /// How long a lock's token key stays after its last grant; `None` keeps it for ever. Default 7 days.
    ///
    /// Tokens keep growing either way, because the server's clock is their floor. Choose `None` if Java
    /// services use `RFencedLock` on the same names: they count from 1 when the key is gone.
    pub token_retention: Option<Duration>,
    /// Which flavour of pub/sub to use. Must be the same for all who share locks.
    pub pubsub: PubSubMode,
    /// What the connect-time probe puts in front of its lock's name, `locktopus:probe`: the namespace, so that a user who may
    /// only touch keys with that prefix passes. Default: nothing.
    pub probe_prefix: String,
}

impl Default for BackendOptions {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(1),
            token_retention: Some(Duration::from_secs(7 * 24 * 60 * 60)),
            pubsub: PubSubMode::Auto,
            probe_prefix: String::new(),
        }
    }
}

/// Which flavour of pub/sub announces releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PubSubMode {
    /// Redisson's rule: sharded in a cluster whose servers have it, else plain.
    #[default]
    Auto,
    /// `PUBLISH` and `SUBSCRIBE`.
    Plain,
    /// `SPUBLISH` and `SSUBSCRIBE`; clusters only.
    Sharded,
}

/// Bound for the call timeout: an hour.
const LONGEST_CALL: Duration = Duration::from_secs(60 * 60);
/// Token keys are kept for ever rather than longer than a hundred years.
const LONGEST_RETENTION: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl RedisBackend {
    /// Puts locks on top of a connected client. Must be called on a tokio runtime.
    ///
    /// # Errors
    ///
    /// If the flavour of pub/sub has to be found out and the server cannot be asked, or if sharded pub/sub
    /// was asked for outside a cluster.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; nothing was written.
    pub async fn new(
        client: Arc<dyn RedisClient>,
        options: BackendOptions,
    ) -> Result<Self, BackendError> {
        let mut options = options;
        // What no server can count is as good as for ever.
        options.call_timeout = options.call_timeout.min(LONGEST_CALL);
        options.token_retention = options
            .token_retention
            .filter(|keep| *keep < LONGEST_RETENTION);
        let executor = Executor::new(Arc::clone(&client));
        let flavour = flavour(&executor, &options).await?;
        let name = client.name();
        let info = BackendInfo::new(
            name,
            format!("{name} ({})", client.deployment()),
            true,
            options.call_timeout,
        );
        let hub = Hub::start(client, flavour, options.call_timeout);
        Ok(Self {
            executor,
            hub,
            clock: ServerClock::new(),
            options,
            flavour,
            info,
        })
    }

    /// The flavour of pub/sub in use.
    #[must_use]
    pub fn channel_flavour(&self) -> ChannelFlavour {
        self.flavour
    }

    pub(crate) fn probe_prefix(&self) -> &str {
        &self.options.probe_prefix
    }

    fn publish_command(&self) -> &'static [u8] {
        match self.flavour {
            ChannelFlavour::Plain => b"PUBLISH",
            ChannelFlavour::Sharded => b"SPUBLISH",
        }
    }

    fn decoder(&self, script: &Script) -> Decoder {
        Decoder {
            backend: self.info.name,
            script: script.name,
        }
    }

    /// One execution of the acquire script.
    async fn try_once(
        &self,
        attempt: &AcquireAttempt,
        keys: &Keys,
    ) -> Result<Acquired, BackendError> {
        let slot = keys.slot();
        let (script, has_token) = match attempt.target.kind() {
            LockKind::Mutex(_) => (&scripts::MUTEX_ACQUIRE, keys.token.is_some()),
            _ => (&scripts::LOCK_ACQUIRE, true),
        };
        let lease = millis(attempt.lease);
        let retention = self
            .options
            .token_retention
            .map_or(0, |keep| keep.max(attempt.lease * 2).as_millis());
        let retention = retention.to_string();
        let time_left = attempt.deadline.saturating_duration_since(Instant::now());
        let not_after = self.clock.not_after(slot, time_left).to_string();
        let sent = server_clock::stamp();
        let reply = {
            let key_names: Vec<&[u8]> = std::iter::once(keys.main.as_bytes())
                .chain(keys.token.as_deref().map(str::as_bytes))
                .collect();
            let args = [
                attempt.owner.expose(),
                lease.as_bytes(),
                retention.as_bytes(),
                not_after.as_bytes(),
            ];
            self.executor
                .run(script, slot, &key_names, &args, attempt.deadline)
                .await?
        };
        let acquired = self.decoder(script).acquired(&reply, has_token)?;
        let (Acquired::Granted { server_micros, .. }
        | Acquired::Held { server_micros, .. }
        | Acquired::Late { server_micros }) = acquired;
        self.clock.observe(slot, sent, server_micros);
        Ok(acquired)
    }
}

#[async_trait]
impl LockBackend for RedisBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        match target.kind() {
            LockKind::Reentrant | LockKind::Mutex(_) => {}
            // A kind that the core learned and the scripts did not.
            other => {
                return Err(NameError::Refused {
                    name: target.name().to_string(),
                    backend: self.info.name,
                    rule: format!("it has no locks of kind {}", other.as_str()),
                });
            }
        }
        if self.executor.client().deployment() == Deployment::Cluster {
            Keys::of(target).check_one_slot("a Redis cluster")?;
        }
        Ok(())
    }

    /// The slot in a cluster, shifted left so that kinds (which have scripts of their own) are apart.
    fn shard(&self, target: &LockTarget) -> u32 {
        let kind = u32::from(matches!(target.kind(), LockKind::Mutex(_)));
        let slot = match self.executor.client().deployment() {
            Deployment::Cluster => u32::from(Keys::of(target).slot()),
            Deployment::Standalone | Deployment::Sentinel => 0,
        };
        slot << 1 | kind
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let keys = Keys::of(&attempt.target);
        loop {
            match self.try_once(attempt, &keys).await? {
                Acquired::Granted { token, .. } => return Ok(AttemptOutcome::Granted { token }),
                Acquired::Held { remaining, .. } => return Ok(AttemptOutcome::Held { remaining }),
                // The guess of the server's clock was wrong and is now corrected.
                Acquired::Late { .. } if Instant::now() < attempt.deadline => {}
                Acquired::Late { .. } => {
                    let message =
                        "the attempt reached the server after its deadline, which refused it";
                    return Err(self.executor.error(
                        BackendErrorKind::Timeout,
                        Executed::No,
                        message,
                    ));
                }
            }
        }
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let (outcome, _told) = self.release_and_tell(request).await?;
        Ok(outcome)
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let Some(first) = batch.first() else {
            return Vec::new();
        };
        let shard = self.shard(&first.target);
        let uniform = batch
            .iter()
            .all(|request| request.lease == first.lease && self.shard(&request.target) == shard);
        if uniform {
            return self.extend_uniform(batch, deadline).await;
        }
        // The contract says one shard, but leases may differ: one script for each.
        let mut answers = Vec::with_capacity(batch.len());
        for request in batch {
            answers.extend(
                self.extend_uniform(std::slice::from_ref(request), deadline)
                    .await,
            );
        }
        answers
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let keys = Keys::of(target);
        let script = match target.kind() {
            LockKind::Mutex(_) => &scripts::MUTEX_INSPECT,
            _ => &scripts::LOCK_INSPECT,
        };
        let key_names: Vec<&[u8]> = std::iter::once(keys.main.as_bytes())
            .chain(keys.token.as_deref().map(str::as_bytes))
            .collect();
        let reply = self
            .executor
            .run(script, keys.slot(), &key_names, &[], deadline)
            .await?;
        self.decoder(script).state(&reply)
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        self.executor.check_open()?;
        let Some(channel) = Keys::of(target).channel else {
            let message = "a single-key mutex has no channel to listen on";
            return Err(self
                .executor
                .error(BackendErrorKind::Unsupported, Executed::No, message));
        };
        self.hub
            .join(&channel, deadline)
            .await
            .map_err(|error| self.executor.read_error(error))
    }

    async fn diagnose(&self, deadline: Instant) -> Result<Diagnosis, BackendError> {
        self.executor.check_open()?;
        diagnose::run(self, &self.executor, deadline).await
    }

    async fn close(&self) {
        self.hub.stop();
        self.executor.close().await;
    }
}

impl RedisBackend {
    /// Releases, and says whether waiters could be told.
    pub(crate) async fn release_and_tell(
        &self,
        request: &ReleaseRequest,
    ) -> Result<(ReleaseOutcome, bool), BackendError> {
        let keys = Keys::of(&request.target);
        let script = match request.target.kind() {
            LockKind::Mutex(_) => &scripts::MUTEX_RELEASE,
            _ => &scripts::LOCK_RELEASE,
        };
        let publish: &[u8] = if keys.channel.is_some() {
            self.publish_command()
        } else {
            b""
        };
        let args = [
            request.owner.expose(),
            publish,
            keys.channel.as_deref().unwrap_or_default(),
        ];
        let reply = self
            .executor
            .run(
                script,
                keys.slot(),
                &[keys.main.as_bytes()],
                &args,
                request.deadline,
            )
            .await?;
        self.decoder(script).released(&reply)
    }

    /// Extends locks of one shard and one lease with one script.
    async fn extend_uniform(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let Some(first) = batch.first() else {
            return Vec::new();
        };
        let script = match first.target.kind() {
            LockKind::Mutex(_) => &scripts::MUTEX_EXTEND,
            _ => &scripts::LOCK_EXTEND,
        };
        let lease = millis(first.lease);
        let names: Vec<String> = batch
            .iter()
            .map(|request| Keys::of(&request.target).main)
            .collect();
        let keys: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        let args: Vec<&[u8]> = std::iter::once(lease.as_bytes())
            .chain(batch.iter().map(|request| request.owner.expose()))
            .collect();
        let slot = slot::key_slot(keys[0]);
        let answer = self
            .executor
            .run(script, slot, &keys, &args, deadline)
            .await;
        match answer.and_then(|reply| self.decoder(script).extended(&reply, batch.len())) {
            Ok(answers) => answers,
            Err(error) => {
                // One failure for all: each caller gets a copy that says the same.
                let (kind, executed, text) =
                    (error.kind(), error.executed(), error.message().to_owned());
                batch
                    .iter()
                    .map(|_| Err(self.executor.error(kind, executed, text.clone())))
                    .collect()
            }
        }
    }
}

async fn flavour(
    executor: &Executor,
    options: &BackendOptions,
) -> Result<ChannelFlavour, BackendError> {
    let cluster = executor.client().deployment() == Deployment::Cluster;
    match options.pubsub {
        PubSubMode::Plain => Ok(ChannelFlavour::Plain),
        PubSubMode::Sharded if cluster => Ok(ChannelFlavour::Sharded),
        PubSubMode::Sharded => {
            let message =
                "sharded pub/sub exists only in a cluster; use pubsub=auto or pubsub=plain";
            Err(executor.error(BackendErrorKind::Unsupported, Executed::No, message))
        }
        PubSubMode::Auto if !cluster => Ok(ChannelFlavour::Plain),
        PubSubMode::Auto => {
            let probe = executor
                .client()
                .command(Route::Any, &[b"PUBSUB", b"SHARDNUMSUB"]);
            match tokio::time::timeout(options.call_timeout, probe).await {
                Ok(Ok(_)) => Ok(ChannelFlavour::Sharded),
                // Not allowed to ask; every server this library supports has it.
                Ok(Err(ClientError::Rejected { code, .. })) if code == "NOPERM" => {
                    Ok(ChannelFlavour::Sharded)
                }
                Ok(Err(ClientError::Rejected { .. })) => Ok(ChannelFlavour::Plain),
                Ok(Err(error)) => Err(executor.read_error(error)),
                Err(_) => {
                    let message = "no answer to the question whether sharded pub/sub exists";
                    Err(executor.error(BackendErrorKind::Timeout, Executed::No, message))
                }
            }
        }
    }
}

fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}
