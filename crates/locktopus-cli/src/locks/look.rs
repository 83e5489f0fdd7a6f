//! Looking at a lock without holding it.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{
    HolderState, LockError, LockKind, LockState, Locktopus, Mode, NameError, SafetyMode, Who,
};
use serde::Serialize;

use super::kind::LockArgs;
use super::person::{Person, ask, since};
use crate::exit::Exit;
use crate::failure::{Failure, spell};
use crate::output::{age, owner_tag};

/// A lock as it was when somebody looked.
#[derive(Debug)]
pub(crate) enum Seen {
    Lock {
        kind: LockKind,
        state: LockState,
        who: Who,
    },
    /// A latch, and what is left to count.
    Latch(u64),
}

/// Looks at a lock. Where its kind was not said, the backend's refusal to show it as a lock says
/// what it is. Of a bare number only those who ask for a semaphore are told whose it is.
pub(crate) async fn find(locks: &Locktopus, name: &str, args: &LockArgs) -> Result<Seen, Failure> {
    if let Some(kind) = args.kind()? {
        return seen_as(locks, name, kind).await;
    }
    let mut found = None;
    for kind in [LockKind::Reentrant, LockKind::Semaphore] {
        let other = match look(locks, name, &kind).await? {
            Look::As(state) if kind == LockKind::Reentrant => {
                return fair_or(state, locks, name).await;
            }
            Look::As(state) => return Ok(seen(locks, kind, state).await),
            Look::Other(other) => other,
            Look::Never => continue,
        };
        // What may be either is called `one or other`.
        let mut kinds = LockKind::all().into_iter();
        match kinds.find(|kind| other.split(" or ").any(|word| word == kind.family())) {
            Some(LockKind::Latch) => return Ok(Seen::Latch(locks.latch(name).count().await?)),
            Some(kind) => return seen_as(locks, name, kind).await,
            None => found = Some(other),
        }
    }
    let Some(found) = found else {
        // Every backend has mutexes, and a quorum nothing else.
        return seen_as(locks, name, LockKind::Mutex(Arc::default())).await;
    };
    Err(Failure::new(
        Exit::Failed,
        format!(
            "{name:?} is {found}; if it is a lock, say which by --kind, and by --profile if another library keeps it"
        ),
    ))
}

/// A lock and a fair lock look the same while they are held; who waits for a fair lock is only seen
/// by those who ask for one.
async fn fair_or(state: LockState, locks: &Locktopus, name: &str) -> Result<Seen, Failure> {
    let kind = LockKind::Fair;
    if state.waiters.is_empty()
        && let Look::As(fair) = look(locks, name, &kind).await?
        && !fair.waiters.is_empty()
    {
        return Ok(seen(locks, kind, fair).await);
    }
    Ok(seen(locks, LockKind::Reentrant, state).await)
}

async fn seen_as(locks: &Locktopus, name: &str, kind: LockKind) -> Result<Seen, Failure> {
    let state = locks.of_kind(name, kind.clone()).inspect().await?;
    Ok(seen(locks, kind, state).await)
}

async fn seen(locks: &Locktopus, kind: LockKind, state: LockState) -> Seen {
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

async fn look(locks: &Locktopus, name: &str, kind: &LockKind) -> Result<Look, Failure> {
    let error = match locks.of_kind(name, kind.clone()).inspect().await {
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
    let kind = args.kind.clone().unwrap_or(LockKind::Reentrant);
    let mut message = format!("{} {name:?} is not free", kind.as_str());
    if let Ok(Seen::Lock { state, who, .. }) = find(locks, name, args).await {
        let shown = Shown::new(name, &kind, &state, &who);
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
    pub(crate) fn new(name: &str, kind: &LockKind, state: &LockState, who: &Who) -> Self {
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

/// The kind; of a read-write lock the half that is held. Either half shows the holders of both.
fn half(kind: &LockKind, state: &LockState) -> &'static str {
    let is_rw = kind.family() == LockKind::Write.family();
    let holds = |mode| is_rw && state.holders.iter().any(|holder| holder.mode == mode);
    if holds(Mode::Exclusive) {
        LockKind::Write.as_str()
    } else if holds(Mode::Read) {
        LockKind::Read.as_str()
    } else {
        kind.as_str()
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
