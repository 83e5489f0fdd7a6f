//! The state that all operations of a backend share: the client, its options, facts about the
//! servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use locktopus_contract::{
    BackendError, BackendErrorKind, BackendInfo, Executed, LockKind, LockTarget, OwnerId,
    PerRuntime, TokenRetention,
};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::options::{BackendOptions, PubSubMode};
use super::repeat::Repeats;
use super::safety::Safety;
use crate::client::{ChannelFlavour, ClientError, RedisClient, Route};
use crate::execution::executor::Executor;
use crate::execution::gather::Gather;
use crate::hub::Hub;
use crate::kinds::keys::{KeyCache, Keys};
use crate::kinds::{self, HeldBy, RedisKind};
use crate::scripts::Script;
use crate::wire::reply::{self, Decoder};
use crate::wire::server_clock::ServerClock;

/// The upper limit of the call timeout: an hour.
const LONGEST_CALL: Duration = Duration::from_secs(60 * 60);

/// A connected client with everything that its locks share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(super) executor: Executor,
    /// Sends calls together. `None` in a cluster, whose calls go to several servers, and for
    /// clients that do as well without.
    pub(super) gather: Option<Arc<Gather>>,
    pub(super) hub: Hub,
    pub(super) clock: ServerClock,
    pub(super) options: BackendOptions,
    pub(super) flavour: ChannelFlavour,
    keys: KeyCache,
    /// This client's part of the names of its inbox channels. It cannot be guessed.
    inbox: String,
    pub(super) info: BackendInfo,
    pub(super) safety: Safety,
    pub(super) repeats: Repeats,
    /// The number of this context within its backend.
    number: u64,
}

/// One context for each runtime that uses the backend, because connections end with the runtime
/// that opened them.
#[derive(Debug)]
pub(crate) struct Contexts {
    /// For questions that all contexts answer the same.
    pub(super) first: Arc<Context>,
    pub(super) all: PerRuntime<Context>,
    made: AtomicU64,
}

impl Contexts {
    /// Starts with the context of the current runtime.
    pub(super) fn new(first: Context) -> Result<Self, BackendError> {
        let (all, name) = (PerRuntime::new(), first.info.name);
        let first = all
            .here(|_| first)
            .map_err(|_| BackendError::no_runtime(name))?;
        let made = AtomicU64::new(1);
        Ok(Self { first, all, made })
    }

    pub(super) fn no_runtime(&self) -> BackendError {
        BackendError::no_runtime(self.first.info.name)
    }

    /// The context for the current runtime.
    pub(super) fn here(&self) -> Result<Arc<Context>, BackendError> {
        let first = &self.first;
        if first.executor.check_open().is_err() {
            return Ok(Arc::clone(first));
        }
        let make = |_: &Handle| first.again(self.made.fetch_add(1, Ordering::Relaxed));
        self.all.nearby(make).map_err(|_| self.no_runtime())
    }

    /// Whether more than one context has been created.
    pub(super) fn are_several(&self) -> bool {
        self.made.load(Ordering::Relaxed) > 1
    }
}

impl Context {
    /// # Errors
    ///
    /// Fails if sharded pub/sub is wanted outside a cluster, or if the servers cannot provide the
    /// safety mode.
    pub(super) async fn new(
        client: Arc<dyn RedisClient>,
        mut options: BackendOptions,
    ) -> Result<Self, BackendError> {
        // Servers cannot count longer times.
        options.call_timeout = options.call_timeout.min(LONGEST_CALL);
        let name = client.name();
        let place = format!("{name} ({})", client.deployment());
        let info = BackendInfo {
            supports_queue: true,
            supports_recall: true,
            longest_linger: Duration::MAX,
            token_retention: options.token_retention,
            safety: options.safety,
            ..BackendInfo::new(name, place, options.call_timeout)
        };
        let executor = Executor::new(client);
        let safety = Safety::new(options.safety, &executor, options.call_timeout).await?;
        let flavour = flavour(&executor, &options).await?;
        let context = Self::with(executor, safety, (options, flavour, info), 0);
        // If this fails, the first attempt asks again.
        let deadline = Instant::now() + context.options.call_timeout;
        let _untold = context.ask_time(0, deadline).await;
        Ok(context)
    }

    /// A copy for the current runtime, with its own connections. Sends nothing.
    fn again(&self, number: u64) -> Self {
        let client = self.executor.client();
        let client = client
            .on_this_runtime()
            .unwrap_or_else(|| Arc::clone(client));
        let executor = self.executor.through(client);
        let safety = self.safety.again(&executor, self.options.call_timeout);
        let same = (self.options.clone(), self.flavour, self.info.clone());
        let gather = self.gather.as_ref();
        let gather = gather.map(|it| it.through(executor.client()));
        Self {
            gather,
            ..Self::with(executor, safety, same, number)
        }
    }

    fn with(
        executor: Executor,
        safety: Safety,
        (options, flavour, info): (BackendOptions, ChannelFlavour, BackendInfo),
        number: u64,
    ) -> Self {
        let client = executor.client();
        let (repeats, unclaimed) = Repeats::new(client.server_changes());
        let hub = Hub::start(Arc::clone(client), flavour, options.call_timeout, unclaimed);
        Self {
            gather: Gather::of(client),
            hub,
            clock: ServerClock::new(executor.is_cluster()),
            executor,
            options,
            flavour,
            keys: KeyCache::default(),
            inbox: inbox_name(),
            info,
            safety,
            repeats,
            number,
        }
    }

    /// Asks for the server's time if it is unknown. Without an estimate an attempt has no time
    /// limit, and takes the lock whenever it arrives.
    ///
    /// # Errors
    ///
    /// Fails if the server does not answer. If the server refuses `TIME`, attempts go without a
    /// limit.
    pub(super) async fn know_time(&self, slot: u16, deadline: Instant) -> Result<(), BackendError> {
        if !self.clock.is_unknown() {
            return Ok(());
        }
        match Box::pin(self.ask_time(slot, deadline)).await {
            Err(error) if error.is_transient() => {
                let (kind, message) = (error.kind(), error.message());
                Err(self.executor.error(kind, Executed::No, message))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// # Errors
    ///
    /// Fails if no time is left for an attempt that the server has just refused as late.
    pub(super) fn check_time(&self, deadline: Instant) -> Result<(), BackendError> {
        if Instant::now() < deadline {
            return Ok(());
        }
        let message = "the attempt reached the server after its deadline, which refused it";
        let kind = BackendErrorKind::Timeout;
        Err(self.executor.error(kind, Executed::No, message))
    }

    async fn ask_time(&self, slot: u16, deadline: Instant) -> Result<(), BackendError> {
        let sent = self.clock.stamp();
        let question = self.executor.ask(Route::Slot(slot), &[b"TIME"], deadline);
        let answer = question.await?;
        if let Some(time) = reply::time(&answer) {
            self.clock.observe(slot, sent, time);
        }
        Ok(())
    }

    /// Changes whenever commands may use a different connection.
    pub(super) fn generation(&self) -> u64 {
        (self.number << 40) | self.executor.client().generation()
    }

    pub(super) fn keys(&self, target: &LockTarget) -> Arc<Keys> {
        self.keys.of(target)
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.executor.is_cluster()
    }

    /// The command that scripts publish with. Lower case means that the number of receivers it
    /// returns leaves out those on other nodes.
    pub(super) fn publish_command(&self) -> &'static [u8] {
        match self.flavour {
            ChannelFlavour::Plain if self.is_cluster() => b"publish",
            ChannelFlavour::Plain => b"PUBLISH",
            ChannelFlavour::Sharded => b"SPUBLISH",
        }
    }

    /// The publish command for this lock; empty if its releases are not announced.
    pub(super) fn publish_for(&self, keys: &Keys) -> &'static [u8] {
        match keys.channel {
            Some(_) if keys.is_plain() => b"PUBLISH",
            Some(_) => self.publish_command(),
            None => b"",
        }
    }

    /// This client's inbox channel for a lock, if the kind has a hand-off.
    pub(super) fn inbox(&self, keys: &Keys) -> Option<String> {
        let prefix = keys.inbox.as_deref()?;
        Some([prefix, &self.inbox].concat())
    }

    /// The inbox for a place in the queue. It is empty if the server forbids this client to listen
    /// there; then the waiter polls in its turn. The second value is the inbox that an earlier
    /// attempt may have given instead, since the client may have learned of a refusal, or the
    /// server changed its mind.
    pub(super) fn inbox_of_place(&self, keys: &Keys) -> Option<(String, Option<String>)> {
        let inbox = self.inbox(keys)?;
        Some(match self.hub.is_refused(&inbox) {
            true => (String::new(), Some(inbox)),
            false => (inbox, self.hub.was_refused().then(String::new)),
        })
    }

    pub(super) fn row(&self, kind: &LockKind) -> Result<&'static RedisKind, BackendError> {
        kinds::of(kind).ok_or_else(|| self.no_such_kind(kind))
    }

    /// The scripts of a kind, and its letter in them.
    pub(super) fn held(&self, kind: &LockKind) -> Result<&'static HeldBy, BackendError> {
        let held = self.row(kind)?.scripts.as_ref();
        held.ok_or_else(|| self.no_such_kind(kind))
    }

    fn no_such_kind(&self, kind: &LockKind) -> BackendError {
        let message = format!("there are no locks of kind {} on Redis", kind.as_str());
        self.executor.unsupported(message)
    }

    pub(super) fn decoder(&self, script: &Script) -> Decoder {
        Decoder {
            backend: self.info.name,
            script: script.name,
        }
    }

    /// How long tokens stay if a request does not say; `None` means forever.
    pub(super) fn token_retention(&self) -> Option<Duration> {
        self.options.token_retention.after_lease(Duration::ZERO)
    }

    /// How long a token stays after a grant for this lease, as a script argument: in ms, 0 =
    /// forever.
    pub(super) fn retention(&self, asked: Option<TokenRetention>, lease: Duration) -> u64 {
        let keep = asked.unwrap_or(self.options.token_retention);
        keep.after_lease(lease).map_or(0, whole_millis)
    }
}

/// 128 random bits as text. Other processes know this process's uuid, so the rest of an owner id
/// would be too easy to guess.
fn inbox_name() -> String {
    let owner = OwnerId::generate();
    let digest = sha1_smol::Sha1::from(owner.expose()).digest().to_string();
    digest[..32].to_owned()
}

async fn flavour(
    executor: &Executor,
    options: &BackendOptions,
) -> Result<ChannelFlavour, BackendError> {
    let cluster = executor.is_cluster();
    match options.pubsub {
        PubSubMode::Plain => Ok(ChannelFlavour::Plain),
        PubSubMode::Sharded if cluster => Ok(ChannelFlavour::Sharded),
        PubSubMode::Sharded => {
            let message =
                "sharded pub/sub exists only in a cluster; use pubsub=auto or pubsub=plain";
            Err(executor.unsupported(message))
        }
        PubSubMode::Auto if !cluster => Ok(ChannelFlavour::Plain),
        PubSubMode::Auto => {
            let probe = executor
                .client()
                .command(Route::Any, &[b"PUBSUB", b"SHARDNUMSUB"]);
            match tokio::time::timeout(options.call_timeout, probe).await {
                // The server has `PUBSUB`, but not this subcommand.
                Ok(Err(ClientError::Rejected { message, .. }))
                    if message.to_ascii_lowercase().contains("unknown subcommand") =>
                {
                    Ok(ChannelFlavour::Plain)
                }
                // Refused or unanswered: every supported server has sharded pub/sub.
                Ok(Ok(_) | Err(_)) | Err(_) => Ok(ChannelFlavour::Sharded),
            }
        }
    }
}

pub(super) fn millis(duration: Duration) -> String {
    whole_millis(duration).to_string()
}

/// Saturates after half a million millennia.
pub(super) fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
