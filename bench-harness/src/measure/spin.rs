//! A process of idle priority that keeps a core awake during a pinned run.

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Spins on `core` until standard input ends, which means that the harness is gone. Fails if it
/// cannot stay on that core.
pub(crate) fn run(core: u32) -> Result<(), String> {
    static OVER: AtomicBool = AtomicBool::new(false);
    crate::measure::worker::pin(core)?;
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        OVER.store(true, Ordering::Relaxed);
    });
    while !OVER.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    Ok(())
}
