//! Sends calls that are ready together in one request.
//!
//! While [`UNDER_WAY`] calls wait for their answers, further calls gather in batches, each of one
//! script. When an answer arrives, the oldest batch is sent as one call (`lua/together.lua`). A
//! background task sends it, so the other members do not notice when a caller drops its future.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use crate::client::{ClientError, Deployment, RedisClient, Reply, Route};
use crate::execution::call::{Call, count_of};
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
    /// The server refuses keys of several slots in one request, as a proxy of a cluster does: calls
    /// go alone from then on.
    apart: AtomicBool,
    /// Batches, the oldest first. There is one task for each; when it has a turn, it sends the
    /// oldest.
    waiting: Mutex<VecDeque<Batch>>,
}

/// Calls of one script.
#[derive(Debug)]
struct Batch {
    script: &'static Script,
    /// The last deadline of its members.
    deadline: Instant,
    /// The words of all calls, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    members: Vec<Member>,
}

/// The words of one call. Its arguments come after the number of keys and the number of arguments.
#[derive(Debug)]
struct Member {
    keys: Range<usize>,
    args: Range<usize>,
    tell: oneshot::Sender<Told>,
}

impl Gather {
    /// For clients that gain by it, and whose calls go to one server.
    pub(crate) fn of(client: &Arc<dyn RedisClient>) -> Option<Arc<Self>> {
        let gains = client.shares_requests() && client.deployment() != Deployment::Cluster;
        gains.then(|| Self::new(Arc::clone(client)))
    }

    fn new(client: Arc<dyn RedisClient>) -> Arc<Self> {
        Arc::new(Self {
            client,
            runtime: Handle::current(),
            turns: Semaphore::new(UNDER_WAY),
            apart: AtomicBool::new(false),
            waiting: Mutex::default(),
        })
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
                // The caller's own deadline ends this.
                Err(_) if call.deadline <= Instant::now() => std::future::pending().await,
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
        let mut waiting = self.waiting();
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
        let oldest = self.waiting().pop_front();
        if let Some(batch) = oldest {
            batch.send(&self).await;
        }
    }

    /// Ignores poison: nothing here panics half-way.
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Batch>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    fn new(call: &Call<'_>) -> Self {
        Self {
            script: call.script,
            deadline: call.deadline,
            bytes: Vec::new(),
            ends: Vec::new(),
            members: Vec::new(),
        }
    }

    fn has_room(&self, call: &Call<'_>) -> bool {
        let words = call.keys.iter().chain(call.args);
        std::ptr::eq(self.script, call.script)
            && self.members.len() < MEMBERS
            && self.bytes.len() + words.map(|word| word.len()).sum::<usize>() <= BYTES
    }

    fn add(&mut self, call: &Call<'_>, tell: oneshot::Sender<Told>) {
        let counts = [call.keys, call.args].map(count_of);
        let counts = counts.iter().map(|count| count.as_bytes());
        let first = self.ends.len();
        for word in call
            .keys
            .iter()
            .copied()
            .chain(counts)
            .chain(call.args.iter().copied())
        {
            self.bytes.extend_from_slice(word);
            self.ends.push(self.bytes.len());
        }
        let args = first + call.keys.len();
        self.deadline = self.deadline.max(call.deadline);
        self.members.push(Member {
            keys: first..args,
            args: args..self.ends.len(),
            tell,
        });
    }

    fn words(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let begin = |at: usize| at.checked_sub(1).map_or(0, |before| self.ends[before]);
        range.map(move |at| &self.bytes[begin(at)..self.ends[at]])
    }

    /// Sends the calls whose callers still wait, and gives each its outcome.
    async fn send(mut self, gather: &Gather) {
        self.members.retain(|member| !member.tell.is_closed());
        let told = self.outcomes(gather).await;
        for (member, told) in self.members.into_iter().zip(told) {
            // Fails if the caller dropped its future meanwhile.
            let _ = member.tell.send(told);
        }
    }

    async fn outcomes(&self, gather: &Gather) -> Vec<Told> {
        let client = &*gather.client;
        let count = self.members.len();
        // A single call is sent as it is, without the counts before its arguments.
        let (script, counts) = match count {
            0 => return Vec::new(),
            1 => (self.script, 2),
            _ => (self.script.together(), 0),
        };
        let keys: usize = self.members.iter().map(|it| it.keys.len()).sum();
        let keys = keys.to_string();
        let mut command = Vec::with_capacity(3 + self.ends.len());
        command.extend([&b"EVALSHA"[..], script.digest().as_bytes(), keys.as_bytes()]);
        for member in &self.members {
            command.extend(self.words(member.keys.clone()));
        }
        for member in &self.members {
            command.extend(self.words(member.args.clone()).skip(counts));
        }
        let mut answer = timeout_at(self.deadline, client.command(Route::Any, &command)).await;
        if let Ok(Err(error)) = &answer
            && is_unknown_script(error)
        {
            (command[0], command[1]) = (b"EVAL", script.source.as_bytes());
            answer = timeout_at(self.deadline, client.command(Route::Any, &command)).await;
        }
        match answer {
            Ok(Ok(reply)) if count == 1 => vec![Some(Ok(reply))],
            Ok(Ok(reply)) => each(reply, count).unwrap_or_else(|| {
                let message = "the answer to a batch is malformed".to_owned();
                vec![Some(Err(ClientError::MaybeExecuted(message))); count]
            }),
            Ok(Err(ClientError::Rejected { code, message }))
                if is_passing(&code) || was_refused(&code, &message) =>
            {
                if code == "CROSSSLOT" {
                    gather.apart.store(true, Ordering::Relaxed);
                }
                vec![None; count]
            }
            Ok(Err(error)) => vec![Some(Err(error)); count],
            // Every caller's own deadline has passed.
            Err(_) => Vec::new(),
        }
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
mod tests;
