//! The slot of one local waiter: a state that changes by compare-and-set, so that whatever is handed to a waiter has
//! exactly one owner even if its future is dropped at the same moment.
//!
//! ```text
//! Waiting ──► Lock | Lead ──► Taken        the waiter has it
//!    │            │  │
//!    │            │  └──────► Revoked      not fetched in time: whoever revoked it passes it on
//!    │            └─────────► Cancelled    future dropped: its drop passes it on
//!    ├──► Cancelled                        future dropped, nothing to pass on
//!    └──► Dismissed                        told to stop waiting
//! ```
//!
//! A lease that is lost while it lies in a slot stays there: whoever takes it out sees that it is over.

use std::task::{Context, Poll, Waker};

use super::Asker;
use super::sync::{AtomicU8, Mutex, Ordering, lock};

/// What a waiter is handed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The lock: go on with the lease of the one before.
    Lock,
    /// The way to the backend: go and ask for the next lease, on behalf of all who wait.
    Lead,
}

/// How waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turned {
    /// The waiter owns what it was handed.
    Taken(Turn),
    /// It was handed something, did not fetch it in time, and has to queue again.
    Revoked,
    /// It was told to stop waiting.
    Dismissed,
}

const WAITING: u8 = 0;
const LOCK: u8 = 1;
const LEAD: u8 = 2;
const TAKEN: u8 = 3;
const CANCELLED: u8 = 4;
const REVOKED: u8 = 5;
const DISMISSED: u8 = 6;

/// One waiter's place in the local queue.
#[derive(Debug)]
pub(crate) struct Slot {
    state: AtomicU8,
    waker: Mutex<Option<Waker>>,
    /// Who waits here, and for what.
    pub(crate) asker: Asker,
}

impl Slot {
    pub(crate) fn new(asker: Asker) -> Self {
        Self {
            state: AtomicU8::new(WAITING),
            waker: Mutex::new(None),
            asker,
        }
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Takes what was handed over out of the slot, leaving `to`.
    fn empty(&self, to: u8) -> Option<Turn> {
        if self.change(LOCK, to) {
            return Some(Turn::Lock);
        }
        self.change(LEAD, to).then_some(Turn::Lead)
    }

    /// Hands something to the waiter; false if it is not waiting any more. Wake it afterwards.
    pub(crate) fn give(&self, turn: Turn) -> bool {
        let to = match turn {
            Turn::Lock => LOCK,
            Turn::Lead => LEAD,
        };
        self.change(WAITING, to)
    }

    /// Takes back what the waiter did not fetch. The caller owns it then.
    pub(crate) fn revoke(&self) -> Option<Turn> {
        self.empty(REVOKED)
    }

    /// The waiter goes away. What it was handed, if anything, belongs to the caller, who passes it on.
    pub(crate) fn cancel(&self) -> Option<Turn> {
        if self.change(WAITING, CANCELLED) {
            return None;
        }
        self.empty(CANCELLED)
    }

    /// Tells the waiter to stop; false if it is not waiting any more. Wake it afterwards.
    pub(crate) fn dismiss(&self) -> bool {
        self.change(WAITING, DISMISSED)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.state.load(Ordering::Acquire) == WAITING
    }

    /// Fetches what the waiter was handed. To be called by the waiter alone, and not again after an answer.
    fn fetch(&self) -> Option<Turned> {
        match self.state.load(Ordering::Acquire) {
            WAITING => None,
            LOCK | LEAD => Some(self.empty(TAKEN).map_or(Turned::Revoked, Turned::Taken)),
            DISMISSED => Some(Turned::Dismissed),
            _ => Some(Turned::Revoked),
        }
    }

    pub(crate) fn poll_turn(&self, cx: &mut Context<'_>) -> Poll<Turned> {
        if let Some(turned) = self.fetch() {
            return Poll::Ready(turned);
        }
        {
            let mut waker = lock(&self.waker);
            if !waker.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
        }
        // It may have been handed over between the first look and the waker being there.
        self.fetch().map_or(Poll::Pending, Poll::Ready)
    }

    pub(crate) fn wake(&self) {
        let waker = lock(&self.waker).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
