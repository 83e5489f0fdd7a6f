//! A simulated process: its random numbers come from a seed, and its machine sleeps when the
//! simulator says so.
//!
//! Several of them share a thread. Each has an identity of its own, like a real process.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use crate::owner::OwnerIds;

thread_local! {
    static CURRENT: RefCell<Option<Simulated>> = const { RefCell::new(None) };
}

/// Replaces the operating system for a simulated process.
#[doc(hidden)]
#[derive(Debug)]
pub struct Simulated {
    /// The state of SplitMix64.
    state: u64,
    asleep: Duration,
    ids: Option<Arc<OwnerIds>>,
}

#[doc(hidden)]
impl Simulated {
    /// A new process.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed,
            asleep: Duration::ZERO,
            ids: None,
        }
    }

    /// Makes its machine sleep for `time`, which timers do not count.
    pub fn sleep_machine(&mut self, time: Duration) {
        self.asleep += time;
    }

    /// Makes this thread run `process` from now on, or none. Returns the previous one.
    pub fn swap(process: Option<Self>) -> Option<Self> {
        CURRENT.replace(process)
    }

    /// 64 random bits of the simulated process of this thread, if there is one.
    #[must_use]
    pub fn random_bits() -> Option<u64> {
        random().map(u64::from_le_bytes)
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let bits = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
}

/// Random bytes, if this thread runs a simulated process.
pub(crate) fn random<const N: usize>() -> Option<[u8; N]> {
    CURRENT.with_borrow_mut(|current| {
        let current = current.as_mut()?;
        let mut bytes = [0; N];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&current.bits().to_le_bytes()[..chunk.len()]);
        }
        Some(bytes)
    })
}

/// How long the machine has slept, if this thread runs a simulated process.
#[cfg_attr(test, expect(dead_code, reason = "the clock of tests is another one"))]
pub(crate) fn asleep() -> Option<Duration> {
    CURRENT.with_borrow(|current| Some(current.as_ref()?.asleep))
}

/// The identity of this simulated process, if it is one.
pub(crate) fn ids() -> Option<Arc<OwnerIds>> {
    let known = CURRENT.with_borrow(|current| Some(current.as_ref()?.ids.clone()))?;
    // Creating ids asks for random bytes.
    let ids = known.unwrap_or_else(|| Arc::new(OwnerIds::fresh()));
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current.ids = Some(Arc::clone(&ids));
        }
    });
    Some(ids)
}
