//! Sends calls that are ready together in one request.
//!
//! While [`UNDER_WAY`] calls wait for their answers, further calls gather in batches, each of one
//! script. When an answer arrives, the oldest batch is sent as one call (`lua/together.lua`). A
//! background task sends it, so the other members do not notice when a caller drops its future.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktopus_contract::lock;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::client::{ClientError, Deployment, RedisClient, Reply, Route};
use crate::execution::call::Call;
use crate::execution::refusals::{is_passing, is_unknown_script, was_refused};
use crate::scripts::Script;

/// How many calls wait for their answers before further ones gather.
const UNDER_WAY: usize = 4;
/// The most members and the most bytes of a batch: it must not block the server for long.
const MEMBERS: usize = 16;
const BYTES: usize = 16 * 1024;
/// How long a batch waits for an answer. Then it is sent all the same.
const LONGEST_WAIT: Duration = Duration::from_millis(1);

/// The outcome of a member. `None`: the server refused the whole batch before it ran, perhaps
/// because of another member, so each caller sends its call alone.
type Told = Option<Result<Reply, ClientError>>;

/// The calls to one server that may be sent together.
#[derive(Debug)]
pub(crate) struct Gather {
    client: Arc<dyn RedisClient>,
    /// Runs the tasks that send batches. The runtime of a caller may stop too early.
    runtime: Handle,
    turns: Semaphore,
    /// A proxy before several servers cannot run a request for locks of all of them: calls go
    /// alone.
    apart: Arc<AtomicBool>,
    /// Batches, the oldest first. There is one task for each; when it has a turn, it sends the
    /// oldest.
    waiting: Mutex<VecDeque<Batch>>,
}

/// Calls of one script, each with as many keys and arguments as the others.
#[derive(Debug)]
struct Batch {
    script: &'static Script,
    keys: usize,
    args: usize,
    /// The keys and arguments of each call, and where each of these words ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The places of the arguments that differ between calls. The others are sent once.
    own: Vec<usize>,
    callers: Vec<Caller>,
}

/// A call, and its caller, which waits for the outcome.
#[derive(Debug)]
struct Caller {
    /// The first word of the call.
    call: usize,
    tell: oneshot::Sender<Told>,
}

impl Gather {
    /// For clients that gain by it, and whose calls go to one server.
    pub(crate) fn of(client: &Arc<dyn RedisClient>) -> Option<Arc<Self>> {
        let gains = client.shares_requests() && client.deployment() != Deployment::Cluster;
        gains.then(|| Self::new(client, Arc::default()))
    }

    /// The same on this runtime, for another client of the same server.
    pub(crate) fn through(&self, client: &Arc<dyn RedisClient>) -> Arc<Self> {
        Self::new(client, Arc::clone(&self.apart))
    }

    fn new(client: &Arc<dyn RedisClient>, apart: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            client: Arc::clone(client),
            runtime: Handle::current(),
            turns: Semaphore::new(UNDER_WAY),
            apart,
            waiting: Mutex::default(),
        })
    }

    /// Sends every call alone from now on.
    pub(crate) fn keep_apart(&self) {
        self.apart.store(true, Ordering::Relaxed);
    }

    /// Sends a call at once, or in a batch if enough others wait for their answers. `command` is
    /// the call as it is sent alone.
    pub(super) async fn send(
        self: &Arc<Self>,
        call: &Call<'_>,
        command: &[&[u8]],
    ) -> Result<Reply, ClientError> {
        let turn = self.turns.try_acquire();
        if turn.is_err() && !self.apart.load(Ordering::Relaxed) {
            match self.join(call).await {
                Ok(Some(answer)) => return answer,
                Ok(None) => {}
                Err(_) => {
                    let message = "the batch ended without an answer";
                    return Err(ClientError::MaybeExecuted(message.to_owned()));
                }
            }
        }
        self.client.command(Route::Slot(call.slot), command).await
    }

    fn join(self: &Arc<Self>, call: &Call<'_>) -> oneshot::Receiver<Told> {
        let (tell, told) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        if let Some(batch) = waiting.iter_mut().rev().find(|batch| batch.has_room(call)) {
            batch.add(call, tell);
            return told;
        }
        let mut batch = Batch::new(call);
        batch.add(call, tell);
        waiting.push_back(batch);
        drop(waiting);
        self.runtime.spawn(Arc::clone(self).send_oldest());
        told
    }

    async fn send_oldest(self: Arc<Self>) {
        let _turn = timeout(LONGEST_WAIT, self.turns.acquire()).await;
        let oldest = lock(&self.waiting).pop_front();
        if let Some(batch) = oldest {
            batch.send(&self).await;
        }
    }

    /// The outcome of each of so many calls that were sent together.
    fn outcomes(&self, answer: Result<Reply, ClientError>, count: usize) -> Vec<Told> {
        match answer {
            Ok(reply) if count == 1 => vec![Some(Ok(reply))],
            Ok(reply) => each(reply, count).unwrap_or_else(|| {
                let message = "the answer to a batch is malformed".to_owned();
                vec![Some(Err(ClientError::MaybeExecuted(message))); count]
            }),
            Err(ClientError::Rejected { code, message })
                if is_passing(&code) || was_refused(&code, &message) =>
            {
                if code == "CROSSSLOT" {
                    self.keep_apart();
                }
                vec![None; count]
            }
            Err(error) => vec![Some(Err(error)); count],
        }
    }
}

impl Batch {
    fn new(call: &Call<'_>) -> Self {
        Self {
            script: call.script,
            keys: call.keys.len(),
            args: call.args.len(),
            bytes: Vec::new(),
            ends: Vec::new(),
            own: Vec::new(),
            callers: Vec::new(),
        }
    }

    fn has_room(&self, call: &Call<'_>) -> bool {
        let words = call.keys.iter().chain(call.args);
        std::ptr::eq(self.script, call.script)
            && (self.keys, self.args) == (call.keys.len(), call.args.len())
            && self.callers.len() < MEMBERS
            && self.bytes.len() + words.map(|word| word.len()).sum::<usize>() <= BYTES
    }

    fn add(&mut self, call: &Call<'_>, tell: oneshot::Sender<Told>) {
        let first = self.ends.len();
        for word in call.keys.iter().chain(call.args) {
            self.bytes.extend_from_slice(word);
            self.ends.push(self.bytes.len());
        }
        // The words of the oldest call stay, even if its caller leaves.
        for (at, arg) in call.args.iter().enumerate() {
            if self.word(self.keys + at) != *arg && !self.own.contains(&at) {
                self.own.push(at);
            }
        }
        self.callers.push(Caller { call: first, tell });
    }

    fn word(&self, at: usize) -> &[u8] {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[at]]
    }

    /// Sends the calls whose callers still wait, and gives each its outcome. Ends early once no
    /// caller waits.
    async fn send(mut self, gather: &Gather) {
        let client = &*gather.client;
        let mut callers = std::mem::take(&mut self.callers);
        // Meanwhile callers may leave, and release what their calls would take.
        let ready = tokio::select! {
            ready = client.ready() => ready,
            () = all_left(&mut callers) => return,
        };
        callers.retain(|caller| !caller.tell.is_closed());
        if callers.is_empty() {
            return;
        }
        let calls: Vec<usize> = callers.iter().map(|caller| caller.call).collect();
        let answer = match ready {
            Ok(()) => tokio::select! {
                answer = self.ask(client, &calls) => answer,
                () = all_left(&mut callers) => return,
            },
            Err(error) => Err(error),
        };
        for (caller, told) in callers
            .into_iter()
            .zip(gather.outcomes(answer, calls.len()))
        {
            // Fails if the caller dropped its future meanwhile.
            let _ = caller.tell.send(told);
        }
    }

    /// Sends these calls: a single one as it is, several as `lua/together.lua` takes them.
    async fn ask(&self, client: &dyn RedisClient, calls: &[usize]) -> Result<Reply, ClientError> {
        let script = match calls {
            [_] => self.script,
            _ => self.script.together(),
        };
        let (count, keys) = (
            calls.len().to_string(),
            (calls.len() * self.keys).to_string(),
        );
        let own: String = self.own.iter().map(|at| format!("{} ", at + 1)).collect();
        let mut command = Vec::with_capacity(5 + self.ends.len());
        command.extend([&b"EVALSHA"[..], script.digest().as_bytes(), keys.as_bytes()]);
        for call in calls {
            command.extend((*call..call + self.keys).map(|at| self.word(at)));
        }
        if calls.len() > 1 {
            command.extend([count.as_bytes(), own.as_bytes()]);
        }
        for (number, call) in calls.iter().enumerate() {
            let arg = |at: &usize| self.word(call + self.keys + at);
            match number {
                0 => command.extend((0..self.args).map(|at| arg(&at))),
                _ => command.extend(self.own.iter().map(arg)),
            }
        }
        let answer = client.command(Route::Any, &command).await;
        match answer {
            Err(error) if is_unknown_script(&error) => {
                (command[0], command[1]) = (b"EVAL", script.source.as_bytes());
                client.command(Route::Any, &command).await
            }
            answer => answer,
        }
    }
}

/// Resolves when no caller waits any longer.
async fn all_left(callers: &mut [Caller]) {
    for caller in callers {
        caller.tell.closed().await;
    }
}

/// Splits the reply to a batch into the outcomes of its members; `None` if it is malformed.
fn each(reply: Reply, count: usize) -> Option<Vec<Told>> {
    let Reply::Array(mut replies) = reply else {
        return None;
    };
    let failures = (replies.len() >= count).then(|| replies.split_off(count))?;
    let mut told: Vec<Told> = replies.into_iter().map(|reply| Some(Ok(reply))).collect();
    for failure in failures.chunks(2) {
        let [Reply::Int(place), Reply::Bytes(line)] = failure else {
            return None;
        };
        let failed = told.get_mut(usize::try_from(*place).ok()?)?;
        *failed = Some(Err(ClientError::rejected(&String::from_utf8_lossy(line))));
    }
    Some(told)
}

#[cfg(test)]
mod bench;
#[cfg(test)]
mod tests;
