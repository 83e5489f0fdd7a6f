//! The programs that this one started, and what to undo when it ends.
//!
//! Each program gets a process group of its own. A signal for this process is passed on to these
//! groups and to nothing else; then the command ends and undoes what it registered.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Done, Failure};

type Undo = Box<dyn FnOnce() + Send>;

static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
static UNDO: Mutex<Vec<Undo>> = Mutex::new(Vec::new());
static HEARD: AtomicI32 = AtomicI32::new(0);

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes signals on, even if the parent process ignores them, as a shell does for background
/// commands: programs started from here get them as usual.
pub(crate) fn listen() -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
    thread::spawn(move || {
        for number in signals.forever() {
            HEARD.store(number, Ordering::SeqCst);
            let Some(signal) = Signal::from_named_raw(number) else {
                continue;
            };
            for group in lock(&GROUPS).iter().filter_map(|group| Pid::from_raw(*group)) {
                // A group that has just ended needs no signal.
                let _ = kill_process_group(group, signal);
            }
        }
    });
    Ok(())
}

/// The exit code for the received signal, if there was one.
pub(crate) fn interrupted() -> Option<i32> {
    match HEARD.load(Ordering::SeqCst) {
        0 => None,
        number => Some(128 + number),
    }
}

/// Waits half a second, even if a signal arrives.
#[expect(clippy::disallowed_methods, reason = "there is no executor here")]
pub(crate) fn nap() {
    thread::sleep(Duration::from_millis(500));
}

/// Waits, and ends early at a signal.
pub(crate) fn pause(seconds: u64) -> Done {
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(code) = interrupted() {
            return Err(Failure::Code(code));
        }
        if Instant::now() >= end {
            return Ok(());
        }
        nap();
    }
}

/// From now on signals reach the process group of this program.
pub(crate) fn started(group: u32) {
    lock(&GROUPS).insert(group.cast_signed());
}

/// The program has ended.
pub(crate) fn ended(group: u32) {
    lock(&GROUPS).remove(&group.cast_signed());
}

/// Ends a program, with everything that it started.
pub(crate) fn end(group: u32) {
    if let Some(group) = Pid::from_raw(group.cast_signed()) {
        let _ = kill_process_group(group, Signal::TERM);
    }
}

/// Registers what to do when this process ends, however it ends. The last registered runs first.
pub(crate) fn at_end(undo: impl FnOnce() + Send + 'static) {
    lock(&UNDO).push(Box::new(undo));
}

/// Undoes everything that was registered, when it is dropped.
#[derive(Debug)]
pub(crate) struct UndoAtEnd;

impl Drop for UndoAtEnd {
    fn drop(&mut self) {
        loop {
            let Some(undo) = lock(&UNDO).pop() else {
                return;
            };
            undo();
        }
    }
}
