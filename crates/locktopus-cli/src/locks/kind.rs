//! Which lock: name, kind, permits, profile.

use clap::{Args, ValueEnum};
use locktopus::{AnyGuard, LockGuard, LockRequest, Locktopus, MutexProfile, WriteGuard};

use crate::failure::Failure;

/// Which kind of lock a name is used as. All who share it use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Exclusive, reentrant in programs; Redisson's RLock.
    Lock,
    /// Exclusive, in strict order of arrival; Redisson's RFairLock.
    #[value(alias("fair_lock"))]
    Fair,
    /// Exclusive, one plain string; with --profile as another library keeps it.
    Mutex,
    /// The half of a read-write lock that many hold.
    #[value(alias("read_lock"))]
    Read,
    /// The half of a read-write lock that one holds.
    #[value(alias("write_lock"), alias("rw_lock"))]
    Write,
    /// Permits of a semaphore; Redisson's RSemaphore.
    Semaphore,
    /// Permits with ids and expiries; Redisson's RPermitExpirableSemaphore.
    #[value(alias("permit_semaphore"))]
    Permits,
}

impl Kind {
    /// The kind that an error or a list of the library names.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        match word {
            "lock" | "lock or fair_lock" => Some(Self::Lock),
            "fair_lock" => Some(Self::Fair),
            "mutex" => Some(Self::Mutex),
            "read_lock" => Some(Self::Read),
            "write_lock" | "rw_lock" => Some(Self::Write),
            "semaphore" => Some(Self::Semaphore),
            "permit_semaphore" => Some(Self::Permits),
            _ => None,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Fair => "fair",
            Self::Mutex => "mutex",
            Self::Read => "read",
            Self::Write => "write",
            Self::Semaphore => "semaphore",
            Self::Permits => "permits",
        }
    }
}

/// What kind of lock it is; its name stands beside this.
#[derive(Args, Clone, Debug)]
pub(crate) struct LockArgs {
    /// Which kind of lock it is. Where it is only looked at: found out, if that is possible
    #[arg(long, value_enum)]
    pub(crate) kind: Option<Kind>,

    #[arg(long, value_name = "LIBRARY", value_parser = MutexProfile::named, help = profiles())]
    pub(crate) profile: Option<MutexProfile>,
}

fn profiles() -> String {
    let names: Vec<_> = MutexProfile::names().collect();
    format!("A mutex as another library keeps it: {}", names.join(", "))
}

impl LockArgs {
    /// The kind that was said, if any.
    pub(crate) fn kind(&self) -> Result<Option<Kind>, Failure> {
        match (self.kind, &self.profile) {
            (Some(Kind::Mutex) | None, Some(_)) => Ok(Some(Kind::Mutex)),
            (Some(other), Some(_)) => Err(Failure::usage(format!(
                "--profile is for mutexes, not for --kind {}",
                other.word()
            ))),
            (kind, None) => Ok(kind),
        }
    }

    /// A request for a lock of this kind.
    pub(crate) fn request(
        &self,
        locks: &Locktopus,
        name: &str,
        kind: Kind,
        permits: u32,
    ) -> Request {
        let request = match kind {
            Kind::Lock => locks.lock(name),
            Kind::Fair => locks.fair_lock(name),
            Kind::Mutex => locks.mutex_as(name, self.profile.clone().unwrap_or_default()),
            Kind::Read => locks.rw_lock(name).read(),
            Kind::Write => return Request::Write(locks.rw_lock(name).write()),
            Kind::Semaphore => locks.semaphore(name).permits(permits),
            Kind::Permits => locks.permit_semaphore(name).permits(permits),
        };
        Request::Other(request)
    }
}

/// A request of either guard.
#[derive(Debug)]
pub(crate) enum Request {
    Write(LockRequest<WriteGuard>),
    Other(LockRequest),
}

/// What is done to a request, whatever its guard.
pub(crate) trait Asked {
    type Output;
    fn ask<G: AnyGuard + Into<LockGuard>>(self, request: LockRequest<G>) -> Self::Output;
}

impl Request {
    pub(crate) fn ask<A: Asked>(self, asked: A) -> A::Output {
        match self {
            Self::Write(request) => asked.ask(request),
            Self::Other(request) => asked.ask(request),
        }
    }
}
