//! A process of idle priority that keeps a core awake while a pinned run measures.

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;

/// Spins on `core` until standard input ends, that is until the harness goes away.
pub(crate) fn run(core: u32) -> Exit {
    static OVER: AtomicBool = AtomicBool::new(false);
    if let Err(reason) = crate::worker::pin(core) {
        eprintln!("locktopus-bench: {reason}");
        return Exit::Measurement;
    }
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        OVER.store(true, Ordering::Relaxed);
    });
    while !OVER.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    Exit::Ok
}
