//! The conversation with the harness, in lines of JSON.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

use super::clock::monotonic_ns;
use super::job::{Answer, Start};

/// The rest of the conversation after the start: the harness sends nothing more, and ends it by
/// closing its side. If it does so before the work is done, it was killed, and this process exits
/// too.
#[derive(Debug)]
pub(super) struct Rest {
    /// When the measured part starts.
    pub(super) start_ns: u64,
    done: Arc<AtomicBool>,
    closed: oneshot::Receiver<()>,
}

impl Rest {
    /// Sends the last answer.
    pub(super) fn done(&self, answer: &Answer) {
        self.done.store(true, Ordering::SeqCst);
        say(answer);
    }

    /// Waits until the harness has closed its side.
    pub(super) async fn closed(self) {
        let _ = self.closed.await;
    }
}

/// Reports that everything is ready, waits for the starting signal, and then until the start.
pub(super) async fn ready() -> Result<Rest, String> {
    say(&Answer::Ready);
    let start = tokio::task::spawn_blocking(hear::<Start>)
        .await
        .map_err(|error| error.to_string())??;
    let (close, closed) = oneshot::channel();
    let done = Arc::new(AtomicBool::new(false));
    let is_done = Arc::clone(&done);
    std::thread::spawn(move || {
        let mut rest = String::new();
        while std::io::stdin()
            .lock()
            .read_line(&mut rest)
            .is_ok_and(|read| read > 0)
        {
            rest.clear();
        }
        if !is_done.load(Ordering::SeqCst) {
            std::process::exit(1);
        }
        let _ = close.send(());
    });
    let early = start.at_ns.saturating_sub(monotonic_ns());
    tokio::time::sleep(Duration::from_nanos(early)).await;
    Ok(Rest {
        start_ns: start.at_ns,
        done,
        closed,
    })
}

/// The next message of the harness.
pub(super) fn hear<T: serde::de::DeserializeOwned>() -> Result<T, String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    match read {
        Ok(0) => Err("the harness went away".to_owned()),
        Ok(_) => serde_json::from_str(&line)
            .map_err(|error| format!("bad message from the harness: {error}")),
        Err(error) => Err(format!("cannot hear the harness: {error}")),
    }
}

/// Sends a message to the harness.
pub(super) fn say(answer: &Answer) {
    // If this fails, the harness is gone.
    if let Ok(line) = serde_json::to_string(answer) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
