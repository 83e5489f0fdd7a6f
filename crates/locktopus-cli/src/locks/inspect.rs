//! Inspects a lock without holding it.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{
    HolderState, KnownInstances, LockError, LockKind, LockState, Locktopus, Mode, NameError,
    SafetyMode,
};
use serde::Serialize;

use super::kind::LockArgs;
use super::person::{Person, ask, since};
use crate::exit::Exit;
use crate::failure::{Failure, spell, word};
use crate::output::{age, owner_tag};

/// Why a lock is held that its holder has released.
pub(crate) const KEPT: &str = "kept by its minimum hold time (--at-least)";

/// A lock as it was when inspected.
#[derive(Debug)]
pub(crate) enum Found {
    Lock {
        kind: LockKind,
        state: LockState,
        who: KnownInstances,
    },
    /// A latch, and its remaining count.
    Latch(u64),
    /// A number that another library set. Nothing tells its kind.
    Number(i64),
}

impl Found {
    /// The lock and what is known of it. `latch` says what to do with a latch instead.
    pub(crate) fn lock(
        self,
        name: &str,
        latch: &str,
    ) -> Result<(LockKind, LockState, KnownInstances), Failure> {
        match self {
            Self::Lock { kind, state, who } => Ok((kind, state, who)),
            Self::Number(value) => Err(Failure::usage(unknown_number(name, value))),
            Self::Latch(_) => {
                let quoted = word(name);
                let problem = format!("{name:?} is a latch{latch} {quoted}");
                Err(Failure::usage(problem))
            }
        }
    }
}

/// What to say of a number whose kind is unknown.
pub(crate) fn unknown_number(name: &str, value: i64) -> String {
    let quoted = word(name);
    format!(
        "{name:?} is a number (semaphore, permit_semaphore or latch), value {value}; kind unknown: give its --kind, or \
         run locktopus latch show {quoted}"
    )
}

/// Inspects a lock. If no kind was given, it detects the kind from the backend's refusal to show
/// the lock as another kind. Only a request for a semaphore reveals what a bare number is.
pub(crate) async fn find(locks: &Locktopus, name: &str, args: &LockArgs) -> Result<Found, Failure> {
    if let Some(kind) = args.kind()? {
        return found_as(locks, name, kind).await;
    }
    let mut found = None;
    for kind in [LockKind::Reentrant, LockKind::Semaphore] {
        let other = match inspect_as(locks, name, &kind).await? {
            Inspection::State(state) if kind == LockKind::Reentrant => {
                return fair_or(state, locks, name).await;
            }
            Inspection::State(state) => return semaphore_or(state, locks, name).await,
            Inspection::OtherKind(other) => other,
            Inspection::Unsupported => continue,
        };
        // An ambiguous kind is reported as `one or other`.
        let mut kinds = LockKind::all().into_iter();
        match kinds.find(|kind| other.split(" or ").any(|word| word == kind.family())) {
            Some(LockKind::Latch) => return Ok(Found::Latch(locks.latch(name).count().await?)),
            Some(kind) => return found_as(locks, name, kind).await,
            None => found = Some(other),
        }
    }
    let Some(found) = found else {
        // Every backend has mutexes, and a quorum has nothing else.
        return found_as(locks, name, LockKind::Mutex(Arc::default())).await;
    };
    Err(Failure::new(
        Exit::Failed,
        format!(
            "{name:?} is {found}. If it is a lock, give its --kind, and --profile if it belongs to another library"
        ),
    ))
}

/// Tells a fair lock from a lock. They look the same while held; only a request for a fair lock
/// shows its waiters.
async fn fair_or(state: LockState, locks: &Locktopus, name: &str) -> Result<Found, Failure> {
    let kind = LockKind::Fair;
    if state.waiters.is_empty()
        && let Inspection::State(fair) = inspect_as(locks, name, &kind).await?
        && !fair.waiters.is_empty()
    {
        return Ok(labelled(locks, kind, fair).await);
    }
    Ok(labelled(locks, LockKind::Reentrant, state).await)
}

/// Tells a semaphore from a number that Java set. While no permits are on record, such a number
/// passes for either kind of semaphore.
async fn semaphore_or(state: LockState, locks: &Locktopus, name: &str) -> Result<Found, Failure> {
    let kind = LockKind::PermitSemaphore;
    let unused = state.holders.is_empty() && state.waiters.is_empty();
    if unused
        && state.available.is_some()
        && let Inspection::State(permits) = inspect_as(locks, name, &kind).await?
    {
        return Ok(match permits.holders.is_empty() {
            true => Found::Number(permits.available.unwrap_or_default()),
            false => labelled(locks, kind, permits).await,
        });
    }
    Ok(labelled(locks, LockKind::Semaphore, state).await)
}

async fn found_as(locks: &Locktopus, name: &str, kind: LockKind) -> Result<Found, Failure> {
    let state = locks.of_kind(name, kind.clone()).inspect().await?;
    Ok(labelled(locks, kind, state).await)
}

async fn labelled(locks: &Locktopus, kind: LockKind, state: LockState) -> Found {
    let who = ask(locks, state.owners()).await;
    Found::Lock { kind, state, who }
}

/// The outcome of inspecting a name as one kind.
enum Inspection {
    /// It is of this kind, or free.
    State(LockState),
    /// It is in use as something else.
    OtherKind(String),
    /// The backend does not support this kind.
    Unsupported,
}

async fn inspect_as(locks: &Locktopus, name: &str, kind: &LockKind) -> Result<Inspection, Failure> {
    let error = match locks.of_kind(name, kind.clone()).inspect().await {
        Ok(state) => return Ok(Inspection::State(state)),
        Err(error) => error,
    };
    if let LockError::Name(NameError::UnsupportedKind { .. }) = &error {
        return Ok(Inspection::Unsupported);
    }
    match error.other_kind() {
        Some(other) => Ok(Inspection::OtherKind(other.found.clone())),
        None => Err(error.into()),
    }
}

/// The error for a busy lock. Says who holds it, as far as that is visible.
pub(crate) async fn busy(locks: &Locktopus, name: &str, args: &LockArgs) -> Failure {
    let kind = args.kind.clone().unwrap_or(LockKind::Reentrant);
    let mut message = format!("{} {name:?} is not free", kind.as_str());
    if let Ok(Found::Lock { state, who, .. }) = find(locks, name, args).await {
        let shown = LockView::new(name, &kind, &state, &who);
        if let Some(holder) = shown.holders.first() {
            message.push_str(&format!(": held by {}", holder.named()));
            message.push_str(&match holder.released {
                true => format!(", released, and {} for {}", KEPT, holder.remaining),
                false => format!(", lease {}", holder.remaining),
            });
        } else if let SafetyMode::Quarantine { max_lease } = locks.backend().safety {
            let longest = spell(max_lease);
            message.push_str(&format!(
                ": it has no holder, but its server may be in quarantine (safety=quarantine), granting nothing for \
                 {longest} after its first use, a restart or a failover; wait for the end with --wait"
            ));
        }
        if !shown.waiters.is_empty() {
            message.push_str(&format!(", {} waiting", shown.waiters.len()));
        }
    }
    Failure::new(Exit::Busy, message)
}

/// A lock as printed. It omits owner ids, which are enough to release a lock.
#[derive(Debug, Serialize)]
pub(crate) struct LockView {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) held: bool,
    pub(crate) holders: Vec<Holder>,
    pub(crate) waiters: Vec<Waiter>,
    /// The last fencing token reserved. A grant reserves a block for the tasks of its process, so
    /// the holder's own token may be lower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reserved_token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) available: Option<i64>,
}

/// A holder of the lock.
#[derive(Debug, Serialize)]
pub(crate) struct Holder {
    pub(crate) owner: String,
    pub(crate) mode: &'static str,
    pub(crate) holds: u64,
    /// `null`: never expires.
    pub(crate) remaining_ms: Option<u64>,
    #[serde(skip)]
    pub(crate) remaining: String,
    /// Its holder has released it. It stays held until its minimum hold time is over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) released: bool,
    /// What is wrong with the lease, if `top` saw that.
    #[serde(skip)]
    pub(crate) warning: Option<&'static str>,
    /// How long it has held the lock at least, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held_ms: Option<u64>,
    /// When it took the lock, by this machine's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held_since: Option<String>,
    #[serde(flatten)]
    pub(crate) person: Person,
}

/// A waiter for the lock.
#[derive(Debug, Serialize)]
pub(crate) struct Waiter {
    pub(crate) owner: String,
    pub(crate) mode: &'static str,
    pub(crate) permits: u32,
    /// How long it has waited at least, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waited_ms: Option<u64>,
    #[serde(skip)]
    pub(crate) waited: Option<String>,
    #[serde(flatten)]
    pub(crate) person: Person,
}

impl LockView {
    pub(crate) fn new(
        name: &str,
        kind: &LockKind,
        state: &LockState,
        who: &KnownInstances,
    ) -> Self {
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
                    waited_ms: waiter.waited_for.map(millis),
                    waited: waiter.waited_for.map(age),
                    person: Person::of(&waiter.owner, who),
                })
                .collect(),
            reserved_token: state.last_token.map(locktopus::FencingToken::get),
            available: state.available,
        }
    }

    /// The only holder, if the lock can be taken away from it by name.
    pub(crate) fn only_owner(&self) -> Option<&str> {
        match &*self.holders {
            [holder] if self.kind != LockKind::PermitSemaphore.as_str() => Some(&holder.owner),
            _ => None,
        }
    }
}

/// The kind. For a read-write lock, the half that is held: either half shows all holders.
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
    fn new(holder: &HolderState, who: &KnownInstances) -> Self {
        let remaining = holder.remaining;
        Self {
            owner: owner_tag(&holder.owner),
            mode: mode(holder.mode),
            holds: holder.holds,
            remaining_ms: remaining.map(millis),
            remaining: remaining.map_or_else(|| "never expires".to_owned(), age),
            released: holder.owner.is_placeholder(),
            warning: None,
            held_ms: holder.held_for.map(millis),
            held_since: holder.held_for.and_then(since),
            person: Person::of(&holder.owner, who),
        }
    }

    /// Its tag and its label.
    pub(crate) fn named(&self) -> String {
        match self.person.short() {
            Some(person) => format!("{} ({person})", self.owner),
            None => self.owner.clone(),
        }
    }

    /// How long it has held the lock, for people.
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
