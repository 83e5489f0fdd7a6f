//! Looking at a lock without holding it.

use std::pin::Pin;
use std::time::Duration;

use locktopus::{
    AnyGuard, Eviction, HolderState, LockError, LockGuard, LockRequest, LockState, Locktopus, Mode,
    NameError, SafetyMode, Who,
};
use serde::Serialize;

use super::kind::{Asked, Kind, LockArgs, Request};
use super::person::{Person, ask, since};
use crate::exit::Exit;
use crate::failure::{Failure, spell};
use crate::output::{age, owner_tag};

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, LockError>> + Send>>;

struct Inspected;

impl Asked for Inspected {
    type Output = Answer<LockState>;

    fn ask<G: AnyGuard + Into<LockGuard>>(self, request: LockRequest<G>) -> Self::Output {
        Box::pin(request.inspect())
    }
}

struct Broken(String);

impl Asked for Broken {
    type Output = Answer<Eviction>;

    fn ask<G: AnyGuard + Into<LockGuard>>(self, request: LockRequest<G>) -> Self::Output {
        Box::pin(request.force_release(self.0))
    }
}

impl Request {
    pub(crate) async fn inspect(self) -> Result<LockState, LockError> {
        self.ask(Inspected).await
    }

    pub(crate) async fn force_release(self, reason: String) -> Result<Eviction, LockError> {
        self.ask(Broken(reason)).await
    }
}

/// A lock as it was when somebody looked.
#[derive(Debug)]
pub(crate) enum Seen {
    Lock {
        kind: Kind,
        state: LockState,
        who: Who,
    },
    /// A latch, and what is left to count.
    Latch(u64),
}

/// Looks at a lock. Where its kind was not said, the backend's refusal to show it as a lock says what it is. Of a bare number
/// only those who ask for a semaphore are told whose it is.
pub(crate) async fn find(locks: &Locktopus, name: &str, args: &LockArgs) -> Result<Seen, Failure> {
    if let Some(kind) = args.kind()? {
        let state = args.request(locks, name, kind, 1).inspect().await?;
        return Ok(seen(locks, kind, state).await);
    }
    let mut found = None;
    for kind in [Kind::Lock, Kind::Semaphore] {
        let other = match look(locks, name, args, kind).await? {
            Look::As(state) if kind == Kind::Lock => {
                return fair_or(state, locks, name, args).await;
            }
            Look::As(state) => return Ok(seen(locks, kind, state).await),
            Look::Other(other) => other,
            Look::Never => continue,
        };
        if other == "latch" {
            return Ok(Seen::Latch(locks.latch(name).count().await?));
        }
        if let Some(kind) = Kind::of_word(&other) {
            let state = args.request(locks, name, kind, 1).inspect().await?;
            return Ok(seen(locks, kind, state).await);
        }
        found = Some(other);
    }
    let Some(found) = found else {
        // Every backend has mutexes, and a quorum nothing else.
        let kind = Kind::Mutex;
        let state = args.request(locks, name, kind, 1).inspect().await?;
        return Ok(seen(locks, kind, state).await);
    };
    Err(Failure::new(
        Exit::Failed,
        format!(
            "{name:?} is {found}; if it is a lock, say which by --kind, and by --profile if another library keeps it"
        ),
    ))
}

/// A lock and a fair lock look the same while they are held; who waits for a fair lock is only seen by those who ask for one.
async fn fair_or(
    state: LockState,
    locks: &Locktopus,
    name: &str,
    args: &LockArgs,
) -> Result<Seen, Failure> {
    if state.waiters.is_empty()
        && let Look::As(fair) = look(locks, name, args, Kind::Fair).await?
        && !fair.waiters.is_empty()
    {
        let kind = Kind::Fair;
        return Ok(seen(locks, kind, fair).await);
    }
    let kind = Kind::Lock;
    Ok(seen(locks, kind, state).await)
}

async fn seen(locks: &Locktopus, kind: Kind, state: LockState) -> Seen {
    let who = ask(locks, state.owners()).await;
    Seen::Lock { kind, state, who }
}

/// What asking for a lock as one kind shows.
enum Look {
    /// It is of this kind, or free.
    As(LockState),
    /// It is in use as something else.
    Other(String),
    /// There are no locks of this kind here.
    Never,
}

async fn look(locks: &Locktopus, name: &str, args: &LockArgs, kind: Kind) -> Result<Look, Failure> {
    let error = match args.request(locks, name, kind, 1).inspect().await {
        Ok(state) => return Ok(Look::As(state)),
        Err(error) => error,
    };
    if let LockError::Name(NameError::UnsupportedKind { .. }) = &error {
        return Ok(Look::Never);
    }
    match error.other_kind() {
        Some(other) => Ok(Look::Other(other.found.clone())),
        None => Err(error.into()),
    }
}

/// That somebody else has it, and who, as far as that can be seen.
pub(crate) async fn busy(locks: &Locktopus, name: &str, args: &LockArgs) -> Failure {
    let kind = args.kind.unwrap_or(Kind::Lock).word();
    let mut message = format!("{kind} {name:?} is not free");
    if let Ok(Seen::Lock { state, who, .. }) = find(locks, name, args).await {
        let shown = Shown::new(name, kind, &state, &who);
        if let Some(holder) = shown.holders.first() {
            message.push_str(&format!(": held by {}", holder.named()));
            message.push_str(&format!(", lease {}", holder.remaining));
        } else if let SafetyMode::Quarantine { max_lease } = locks.backend().safety {
            let longest = spell(max_lease);
            message.push_str(&format!(
                ": nobody holds it, and its server may be in quarantine (safety=quarantine): it grants nothing for \
                 {longest} after its first use, a restart or a failover; --wait waits for the end"
            ));
        }
        if !shown.waiters.is_empty() {
            message.push_str(&format!(", {} waiting", shown.waiters.len()));
        }
    }
    Failure::new(Exit::Busy, message)
}

/// A lock, as it is shown: no owner id, which would be enough to release it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) held: bool,
    pub(crate) holders: Vec<Holder>,
    pub(crate) waiters: Vec<Waiter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) available: Option<i64>,
}

/// Who holds it.
#[derive(Debug, Serialize)]
pub(crate) struct Holder {
    pub(crate) owner: String,
    pub(crate) mode: &'static str,
    pub(crate) holds: u64,
    /// `null`: for ever.
    pub(crate) remaining_ms: Option<u64>,
    #[serde(skip)]
    pub(crate) remaining: String,
    /// For how long it has held the lock at least, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held_ms: Option<u64>,
    /// Since when, by this machine's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held_since: Option<String>,
    #[serde(flatten)]
    pub(crate) person: Person,
}

/// Who waits for it.
#[derive(Debug, Serialize)]
pub(crate) struct Waiter {
    pub(crate) owner: String,
    pub(crate) mode: &'static str,
    pub(crate) permits: u32,
    #[serde(flatten)]
    pub(crate) person: Person,
}

impl Shown {
    pub(crate) fn new(name: &str, kind: &'static str, state: &LockState, who: &Who) -> Self {
        Self {
            name: name.to_owned(),
            kind: half(kind, state),
            held: !state.holders.is_empty(),
            holders: state
                .holders
                .iter()
                .map(|holder| Holder::new(holder, who))
                .collect(),
            waiters: state
                .waiters
                .iter()
                .map(|waiter| Waiter {
                    owner: owner_tag(&waiter.owner),
                    mode: mode(waiter.mode),
                    permits: waiter.permits,
                    person: Person::of(&waiter.owner, who),
                })
                .collect(),
            last_token: state.last_token.map(locktopus::FencingToken::get),
            available: state.available,
        }
    }
}

/// The held half of a read-write lock. Either half shows the holders of both.
fn half(kind: &'static str, state: &LockState) -> &'static str {
    let of_rw = [Kind::Read.word(), Kind::Write.word()].contains(&kind);
    let holds = |mode| state.holders.iter().any(|holder| holder.mode == mode);
    if of_rw && holds(Mode::Exclusive) {
        Kind::Write.word()
    } else if of_rw && holds(Mode::Read) {
        Kind::Read.word()
    } else {
        kind
    }
}

impl Holder {
    fn new(holder: &HolderState, who: &Who) -> Self {
        let remaining = holder.remaining;
        Self {
            owner: owner_tag(&holder.owner),
            mode: mode(holder.mode),
            holds: holder.holds,
            remaining_ms: remaining.map(millis),
            remaining: remaining.map_or_else(|| "never expires".to_owned(), age),
            held_ms: holder.held_for.map(millis),
            held_since: holder.held_for.and_then(since),
            person: Person::of(&holder.owner, who),
        }
    }

    /// Its tag, and what it calls itself.
    pub(crate) fn named(&self) -> String {
        match self.person.short() {
            Some(person) => format!("{} ({person})", self.owner),
            None => self.owner.clone(),
        }
    }

    /// For how long it has held the lock, in words.
    pub(crate) fn held(&self) -> Option<String> {
        self.held_ms.map(|time| age(Duration::from_millis(time)))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Read => "read",
        Mode::Permits => "permits",
    }
}
