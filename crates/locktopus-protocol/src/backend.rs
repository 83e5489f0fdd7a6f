//! `LockBackend` over any [`RedisClient`].

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo, CounterOutcome,
    CounterRequest, Diagnosis, Eviction, Executed, ExtendOutcome, ExtendRequest, FencingToken,
    GroupOutcome, LockBackend, LockKind, LockPage, LockState, LockTarget, Mode, NameError,
    NodeProbe, OwnerId, ReleaseOutcome, ReleaseRequest, SafetyMode, ScanCursor, TokenRetention,
    WakeStream,
};
use tokio::time::Instant;

use crate::client::{ChannelFlavour, ClientError, Deployment, RedisClient, Route};
use crate::executor::Executor;
use crate::hub::{Hub, Listened};
use crate::keys::{self, KeyCache, Keys};
use crate::numbers::Numbers;
use crate::probe::ServerProbe;
use crate::replication::{Confirmed, Doubt};
use crate::reply::{Acquired, Decoder};
use crate::safety::Safety;
use crate::scripts::{self, KindScripts, Script};
use crate::server_clock::{self, ServerClock};
use crate::slot::key_slot;
use crate::{counter, diagnose, group, other_kind, scan};

/// Locks on Redis or Valkey, through any client library.
#[derive(Debug)]
pub struct RedisBackend {
    executor: Executor,
    hub: Hub,
    clock: ServerClock,
    options: BackendOptions,
    flavour: ChannelFlavour,
    keys: KeyCache,
    /// This client's part of the names of its inbox channels. Nobody can guess it.
    inbox: String,
    info: BackendInfo,
    safety: Safety,
}

/// What can be chosen about a [`RedisBackend`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendOptions {
    /// How long to wait for one answer. Default 1 s.
    pub call_timeout: Duration,
    /// How long a lock's token key stays after its last grant, where a request does not say. Default: a day.
    pub token_retention: TokenRetention,
    /// Which flavour of pub/sub to use. Must be the same for all who share locks.
    pub pubsub: PubSubMode,
    /// What a grant is worth when a server fails. Must be the same for all who share locks. Default: plain.
    pub safety: SafetyMode,
    /// What the connect-time probe puts in front of its lock's name, `locktopus:probe`: the namespace, so that a user who may
    /// only touch keys with that prefix passes. Default: nothing.
    pub probe_prefix: String,
}

impl Default for BackendOptions {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(1),
            token_retention: TokenRetention::default(),
            pubsub: PubSubMode::Auto,
            safety: SafetyMode::Plain,
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

impl RedisBackend {
    /// Puts locks on top of a connected client. Must be called on a tokio runtime.
    ///
    /// # Errors
    ///
    /// If sharded pub/sub was asked for outside a cluster, or if the safety mode cannot be had.
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
        let executor = Executor::new(Arc::clone(&client));
        let safety = Safety::new(options.safety, &executor, options.call_timeout).await?;
        let flavour = flavour(&executor, &options).await?;
        let name = client.name();
        let info = BackendInfo::new(
            name,
            format!("{name} ({})", client.deployment()),
            true,
            options.call_timeout,
        )
        .with_queues()
        .with_recalls()
        .with_safety(options.safety);
        let hub = Hub::start(client, flavour, options.call_timeout);
        Ok(Self {
            executor,
            hub,
            clock: ServerClock::new(),
            options,
            flavour,
            keys: KeyCache::default(),
            inbox: inbox_name(),
            info,
            safety,
        })
    }

    /// The flavour of pub/sub in use.
    #[must_use]
    pub fn channel_flavour(&self) -> ChannelFlavour {
        self.flavour
    }

    /// Tells a quorum which server this is, and for how long it has been up.
    ///
    /// # Errors
    ///
    /// Unless the client is connected to one standalone server.
    pub fn probe(&self) -> Result<Arc<dyn NodeProbe>, BackendError> {
        Ok(Arc::new(ServerProbe::new(self.executor.clone())?))
    }

    pub(crate) fn probe_prefix(&self) -> &str {
        &self.options.probe_prefix
    }

    pub(crate) fn executor(&self) -> &Executor {
        &self.executor
    }

    pub(crate) fn safety(&self) -> &Safety {
        &self.safety
    }

    pub(crate) fn clock(&self) -> &ServerClock {
        &self.clock
    }

    pub(crate) fn keys(&self, target: &LockTarget) -> Arc<Keys> {
        self.keys.of(target)
    }

    /// The command that scripts publish with. In lower case where the number of receivers it answers says nothing
    /// about those of other nodes.
    pub(crate) fn publish_command(&self) -> &'static [u8] {
        let cluster = self.executor.client().deployment() == Deployment::Cluster;
        match self.flavour {
            ChannelFlavour::Plain if cluster => b"publish",
            ChannelFlavour::Plain => b"PUBLISH",
            ChannelFlavour::Sharded => b"SPUBLISH",
        }
    }

    /// The command for a lock whose releases are announced, else nothing.
    pub(crate) fn publish_for(&self, keys: &Keys) -> &'static [u8] {
        match keys.channel {
            Some(_) if keys.is_plain() => b"PUBLISH",
            Some(_) => self.publish_command(),
            None => b"",
        }
    }

    fn scripts(&self, kind: &LockKind) -> Result<&'static KindScripts, BackendError> {
        self.safety.scripts(kind).ok_or_else(|| {
            let message = format!("there are no locks of kind {} on Redis", kind.as_str());
            self.executor
                .error(BackendErrorKind::Unsupported, Executed::No, message)
        })
    }

    /// How long tokens stay where requests do not say; `None`: for ever.
    pub(crate) fn token_retention(&self) -> Option<Duration> {
        self.options.token_retention.after_lease(Duration::ZERO)
    }

    /// How long a token stays after a grant for this lease, as scripts take it: in ms, 0 = for ever.
    pub(crate) fn retention(&self, asked: Option<TokenRetention>, lease: Duration) -> u64 {
        let keep = asked.unwrap_or(self.options.token_retention);
        keep.after_lease(lease).map_or(0, whole_millis)
    }

    /// # Errors
    ///
    /// If the safety mode does not allow a lease of this length.
    pub(crate) fn check_lease(&self, kind: &LockKind, lease: Duration) -> Result<(), BackendError> {
        self.safety
            .check_lease(&self.executor, kind.stored_lease(lease))
    }

    pub(crate) fn decoder(&self, script: &Script) -> Decoder {
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
        let kind = attempt.target.kind();
        let (script, slot) = (&self.scripts(kind)?.acquire, keys.slot());
        let tokens = if kind.has_tokens() { attempt.tokens } else { 0 };
        self.check_lease(kind, attempt.lease)?;
        let time_left = attempt.deadline.saturating_duration_since(Instant::now());
        let sent = server_clock::stamp();
        let numbers = Numbers::of([
            &whole_millis(kind.stored_lease(attempt.lease)),
            &self.retention(attempt.token_retention, attempt.lease),
            &self.clock.not_after(slot, sent, time_left),
            &attempt.permits,
            &tokens,
            &attempt.floor.map_or(0, FencingToken::get),
            &attempt.place.map_or(0, whole_millis),
        ]);
        let [
            lease,
            retention,
            not_after,
            permits,
            tokens_text,
            floor,
            place,
        ] = numbers.each();
        // Some kinds say more.
        let mut args = Vec::with_capacity(13);
        args.extend([
            attempt.owner.expose(),
            lease,
            retention,
            not_after,
            mode(kind),
            permits,
            tokens_text,
            floor,
            self.publish_for(keys),
        ]);
        let inbox = keys.inbox.as_deref().unwrap_or_default();
        let inbox = [inbox, &self.inbox].concat();
        if attempt.place.is_some() && keys.inbox.is_some() {
            args.extend([place, inbox.as_bytes()]);
        }
        if matches!(
            kind,
            LockKind::Fair | LockKind::Semaphore | LockKind::Permits
        ) {
            // An attempt may find something to tell those of other libraries.
            args.resize(11, b"");
            args.extend(keys.channel.as_deref());
        }
        if attempt.recall && kind.can_be_kept() {
            args.resize(10, b"");
            args.extend([inbox.as_bytes(), b"", b"1"]);
        }
        let Confirmed { reply, doubt } = self
            .run_confirmed(script, slot, &keys.scripts(), &args, attempt.deadline)
            .await
            .map_err(|error| other_kind::tell(error, |_| &attempt.target))?;
        let acquired = self.decoder(script).acquired(&reply, tokens > 0)?;
        self.clock.observe(slot, sent, acquired.server_micros);
        match (&acquired.outcome, doubt) {
            (Some(AttemptOutcome::Granted { .. }), Some(doubt)) => {
                // Boxed, as what follows for fair locks: most attempts need no room for it.
                let given_back = self.give_back(std::slice::from_ref(attempt), doubt);
                Err(Box::pin(given_back).await)
            }
            _ => Ok(acquired),
        }
    }
}

#[async_trait]
impl LockBackend for RedisBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        if scripts::of(target.kind()).is_none() && !matches!(target.kind(), LockKind::Latch) {
            return Err(NameError::Refused {
                name: target.name().to_string(),
                backend: self.info.name,
                rule: format!("it has no locks of kind {}", target.kind().as_str()),
            });
        }
        target.check_name()?;
        if self.executor.client().deployment() == Deployment::Cluster {
            self.keys.of(target).check_one_slot("a Redis cluster")?;
        }
        Ok(())
    }

    /// The slot in a cluster, shifted left so that kinds (which have scripts of their own) are apart.
    fn shard(&self, target: &LockTarget) -> u32 {
        let slot = match self.executor.client().deployment() {
            // Not of the cache: this is asked for every lock at every renewal, and there may be more than it holds.
            Deployment::Cluster => u32::from(key_slot(target.key().as_bytes())),
            Deployment::Standalone | Deployment::Sentinel => 0,
        };
        slot << 3 | scripts::index(target.kind())
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let keys = self.keys.of(&attempt.target);
        loop {
            let acquired = self.try_once(attempt, &keys).await?;
            match acquired.outcome {
                Some(outcome)
                    if acquired.foreign && Box::pin(self.be_called(attempt, &keys)).await =>
                {
                    // What happened before there was somebody to hear it.
                    let again = Box::pin(self.try_once(attempt, &keys)).await;
                    let again = again.ok().and_then(|acquired| acquired.outcome);
                    return Ok(again.unwrap_or(outcome));
                }
                Some(outcome) => return Ok(outcome),
                // The guess of the server's clock was wrong and is now corrected.
                None if Instant::now() < attempt.deadline => {}
                None => {
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

    /// Locks and mutexes of one slot; outside a cluster, all of them.
    fn group(&self, target: &LockTarget) -> Option<u32> {
        let groups = matches!(target.kind(), LockKind::Reentrant | LockKind::Mutex(_));
        groups.then(|| match self.executor.client().deployment() {
            Deployment::Cluster => u32::from(self.keys.of(target).slot()),
            Deployment::Standalone | Deployment::Sentinel => 0,
        })
    }

    async fn attempt_all(&self, attempts: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError> {
        group::attempt(self, attempts).await
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
        let stored = |request: &ExtendRequest| request.target.kind().stored_lease(request.lease);
        let uniform = batch.iter().all(|request| {
            stored(request) == stored(first) && self.shard(&request.target) == shard
        });
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
        let keys = self.keys.of(target);
        let script = &self.scripts(target.kind())?.inspect;
        let reply = self
            .executor
            .run(script, keys.slot(), &keys.scripts(), &[], deadline)
            .await
            .map_err(|error| other_kind::tell(error, |_| target))?;
        self.decoder(script).state(&reply)
    }

    async fn counter(&self, request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
        let outcome = counter::run(self, request).await;
        outcome.map_err(|error| other_kind::tell(error, |_| &request.target))
    }

    async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        let keys = self.keys.of(target);
        let script = &self.scripts(target.kind())?.evict;
        let retention = self.retention(None, Duration::ZERO).to_string();
        let tokens: &[u8] = if target.kind().has_tokens() {
            b"1"
        } else {
            b"0"
        };
        let mut args = vec![
            self.publish_for(&keys),
            keys.channel.as_deref().unwrap_or_default(),
            retention.as_bytes(),
            tokens,
        ];
        if let Some(ring) = keys.ring() {
            args.resize(7, b"");
            args.extend(ring);
        }
        let reply = self
            .run_release(script, keys.slot(), &keys.scripts(), &args, deadline)
            .await
            .map_err(|error| other_kind::tell(error, |_| target))?;
        self.decoder(script).evicted(&reply)
    }

    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        scan::page(self, prefix, cursor, deadline).await
    }

    fn listen(&self, target: &LockTarget) -> Option<WakeStream> {
        // Every first attempt asks, and where nobody waits for anything the names need not be put together.
        if self.hub.is_idle() {
            return None;
        }
        self.hub.listening(&self.topic(target)?)
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        self.executor.check_open()?;
        let Some(topic) = self.topic(target) else {
            let message = "a single-key mutex has no channel to listen on";
            return Err(self
                .executor
                .error(BackendErrorKind::Unsupported, Executed::No, message));
        };
        self.hub
            .join(topic, deadline)
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
        let (keys, kind) = (self.keys.of(&request.target), request.target.kind());
        let script = &self.scripts(kind)?.release;
        let retention = self.retention(request.token_retention, Duration::ZERO);
        let numbers = Numbers::of([&request.permits, &retention]);
        let [permits, retention] = numbers.each();
        let mut args = vec![
            request.owner.expose(),
            mode(kind),
            permits,
            self.publish_for(&keys),
            keys.channel.as_deref().unwrap_or_default(),
            retention,
            keys.native.as_deref().unwrap_or_default(),
        ];
        args.extend(keys.ring().into_iter().flatten());
        let (slot, named, deadline) = (keys.slot(), keys.scripts(), request.deadline);
        let reply = match (kind, &self.safety) {
            // These are held in their first key alone: a slot on its way need not keep them from being released. What
            // their queue has of waiters finds out by itself.
            (LockKind::Reentrant | LockKind::Mutex(_), Safety::Plain) => {
                let run = &self.executor;
                run.run_reduced(script, slot, &named, &args, deadline).await
            }
            _ => {
                let run = self.run_release(script, slot, &named, &args, deadline);
                Box::pin(run).await
            }
        };
        self.decoder(script).released(&reply?)
    }

    /// Which channels to listen to for a target.
    fn topic(&self, target: &LockTarget) -> Option<Listened> {
        let keys = self.keys.of(target);
        let announced = keys.channel.clone()?;
        let inbox = keys.inbox.as_deref();
        Some(Listened {
            inbox: inbox.map(|inbox| [inbox, &self.inbox].concat().into()),
            native: keys.native.clone(),
            all_go: matches!(target.kind(), LockKind::Latch),
            plain: keys.is_plain(),
            announced,
        })
    }

    /// Makes sure that the waiter of a fair lock hears when another library's client calls it: Redisson wakes each of
    /// its waiters by name. True if it did not hear that before and does now.
    async fn be_called(&self, attempt: &AcquireAttempt, keys: &Keys) -> bool {
        let fair = matches!(attempt.target.kind(), LockKind::Fair);
        let Some((topic, base)) = self
            .topic(&attempt.target)
            .zip(keys.channel.as_deref())
            .filter(|_| fair)
        else {
            return false;
        };
        let channel = [base, b":", attempt.owner.expose()].concat();
        // Enough is left for looking again.
        let within = attempt.deadline.saturating_duration_since(Instant::now()) / 2;
        self.hub
            .hear_by_name(&topic, &attempt.owner, channel.into(), within)
            .await
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
        let checked = self.check_lease(first.target.kind(), first.lease);
        let script = match checked.and_then(|()| self.scripts(first.target.kind())) {
            Ok(scripts) => &scripts.extend,
            Err(error) => return self.all_failed(batch.len(), &error),
        };
        let lease = millis(first.target.kind().stored_lease(first.lease));
        let names: Vec<Cow<'_, [u8]>> = batch
            .iter()
            .flat_map(|request| keys::extended(&request.target, &request.owner))
            .collect();
        let keys: Vec<&[u8]> = names.iter().map(Cow::as_ref).collect();
        let counted = first.target.kind().mode() == Mode::Permits;
        let permits: Vec<String> = if counted {
            batch.iter().map(|r| r.permits.to_string()).collect()
        } else {
            Vec::new()
        };
        let mut args: Vec<&[u8]> = Vec::with_capacity(1 + batch.len() + permits.len());
        args.push(lease.as_bytes());
        for (index, request) in batch.iter().enumerate() {
            args.push(request.owner.expose());
            args.extend(permits.get(index).map(String::as_bytes));
        }
        let slot = key_slot(first.target.key().as_bytes());
        let answer = self
            .run_extension(script, slot, &keys, &args, deadline)
            .await;
        let decoded = answer.and_then(|Confirmed { reply, doubt }| {
            let answers = self.decoder(script).extended(&reply, batch.len())?;
            Ok((answers, doubt))
        });
        match decoded {
            Ok((answers, None)) => answers,
            Ok((answers, Some(doubt))) => self.unconfirmed(answers, &doubt),
            Err(error) => self.all_failed(batch.len(), &error),
        }
    }

    /// Extensions that too few replicas have do not count. What was found lost is lost all the same.
    fn unconfirmed(
        &self,
        answers: Vec<Result<ExtendOutcome, BackendError>>,
        doubt: &Doubt,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let unconfirmed = |answer| match answer {
            Ok(ExtendOutcome::Extended) => {
                let message = "extended, but not confirmed by enough replicas";
                let doubt = doubt.clone();
                Err(self
                    .executor
                    .not_replicated(doubt, Executed::Maybe, message))
            }
            other => other,
        };
        answers.into_iter().map(unconfirmed).collect()
    }

    /// One failure for all: each caller gets a copy that says the same.
    fn all_failed(
        &self,
        count: usize,
        error: &BackendError,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let copy = || {
            let (kind, executed) = (error.kind(), error.executed());
            Err(self.executor.error(kind, executed, error.message()))
        };
        std::iter::repeat_with(copy).take(count).collect()
    }
}

/// 128 random bits, as text: the uuid of this process is known to others, so the rest of an owner id is not enough.
fn inbox_name() -> String {
    let owner = OwnerId::generate();
    let digest = sha1_smol::Sha1::from(owner.expose()).digest().to_string();
    digest[..32].to_owned()
}

/// Of which kind a lock is and how it is held, as scripts take it.
fn mode(kind: &LockKind) -> &'static [u8] {
    match kind {
        LockKind::Read => b"r",
        LockKind::Write => b"w",
        LockKind::Semaphore => b"s",
        LockKind::Permits => b"p",
        LockKind::Mutex(_) => b"m",
        LockKind::Fair => b"f",
        _ => b"x",
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
                Ok(Err(ClientError::Rejected { code, .. })) if code != "NOPERM" => {
                    Ok(ChannelFlavour::Plain)
                }
                // Not allowed to ask, or nobody answers yet: every server this library supports has it.
                Ok(Ok(_) | Err(_)) | Err(_) => Ok(ChannelFlavour::Sharded),
            }
        }
    }
}

pub(crate) fn millis(duration: Duration) -> String {
    whole_millis(duration).to_string()
}

/// Longer than half a million millennia is for ever.
fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
