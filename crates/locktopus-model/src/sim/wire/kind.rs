//! What each kind of lock is to the protocol.

use std::sync::Arc;

use locktopus_core::LockKind;
use locktopus_protocol::scripts::{
    FAIR, KindScripts, LOCK, MUTEX, PERMITS, READ, SEMAPHORE, WRITE,
};

use crate::sim::ask::Mode;
use crate::sim::kind::Kind;

impl Kind {
    pub(super) fn target(self) -> LockKind {
        match self {
            Self::Lock => LockKind::Reentrant,
            Self::Mutex => LockKind::Mutex(Arc::default()),
            Self::Fair => LockKind::Fair,
            Self::ReadWrite => LockKind::Write,
            Self::Semaphore => LockKind::Semaphore,
            Self::Permits => LockKind::Permits,
        }
    }

    /// The letter by which scripts know a kind and how it is wanted.
    pub(super) fn letter(self, mode: Mode) -> Vec<u8> {
        let letter: &[u8] = match (self, mode) {
            (Self::Lock, _) => b"x",
            (Self::Mutex, _) => b"m",
            (Self::Fair, _) => b"f",
            (Self::ReadWrite, Mode::Read) => b"r",
            (Self::ReadWrite, _) => b"w",
            (Self::Semaphore, _) => b"s",
            (Self::Permits, _) => b"p",
        };
        letter.to_vec()
    }

    /// The scripts for each mode.
    pub(super) fn scripts(self) -> Vec<(Mode, &'static KindScripts)> {
        match self {
            Self::Lock => vec![(Mode::Exclusive, &LOCK)],
            Self::Mutex => vec![(Mode::Exclusive, &MUTEX)],
            Self::Fair => vec![(Mode::Exclusive, &FAIR)],
            Self::ReadWrite => vec![(Mode::Read, &READ), (Mode::Write, &WRITE)],
            Self::Semaphore => vec![(Mode::Permits, &SEMAPHORE)],
            Self::Permits => vec![(Mode::Permits, &PERMITS)],
        }
    }
}
