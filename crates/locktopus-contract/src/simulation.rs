//! A process of a simulator: its random numbers are those of a seed, and its machine sleeps when
//! the simulator says so.
//!
//! Several of them share a thread. Each has an identity of its own, as processes have.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use crate::owner::OwnerIds;

thread_local! {
    static CURRENT: RefCell<Option<Simulated>> = const { RefCell::new(None) };
}

/// What a simulated process has instead of the operating system.
#[doc(hidden)]
#[derive(Debug)]
pub struct Simulated {
    /// Of SplitMix64.
    state: u64,
    asleep: Duration,
    ids: Option<Arc<OwnerIds>>,
}

#[doc(hidden)]
impl Simulated {
    /// A process that has not asked for anything yet.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed,
            asleep: Duration::ZERO,
            ids: None,
        }
    }

    /// Its machine was asleep for so long, which timers do not count.
    pub fn sleep_machine(&mut self, time: Duration) {
        self.asleep += time;
    }

    /// Lets this thread be that process from now on, or none; gives the one that it was.
    pub fn swap(process: Option<Self>) -> Option<Self> {
        CURRENT.replace(process)
    }

    /// 64 random bits of the process that this thread is, if it is one.
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

/// Random bytes, if this thread is a simulated process.
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

/// For how long the machine was asleep, if this thread is a simulated process.
#[cfg_attr(test, expect(dead_code, reason = "the clock of tests is another one"))]
pub(crate) fn asleep() -> Option<Duration> {
    CURRENT.with_borrow(|current| Some(current.as_ref()?.asleep))
}

/// The identity of this process, if it is a simulated one.
pub(crate) fn ids() -> Option<Arc<OwnerIds>> {
    let known = CURRENT.with_borrow(|current| Some(current.as_ref()?.ids.clone()))?;
    // Making one asks for random bytes.
    let ids = known.unwrap_or_else(|| Arc::new(OwnerIds::fresh()));
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current.ids = Some(Arc::clone(&ids));
        }
    });
    Some(ids)
}
