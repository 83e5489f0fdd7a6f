//! Calls that are ready together travel together.
//!
//! While [`UNDER_WAY`] calls are on their way to the server, those that come meanwhile gather, each
//! with others of its script. When one returns, the oldest batch is sent as one call
//! (`lua/together.lua`). A task of its own sends it, so a member that is dropped stops no other.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use crate::client::{ClientError, RedisClient, Reply, Route};
use crate::execution::call::Call;
use crate::execution::executor::{count_of, is_unknown_script};
use crate::execution::refusals::{is_passing, was_refused};
use crate::scripts::Script;

/// How many calls are on their way before others gather.
const UNDER_WAY: usize = 4;
/// The most members of a batch, and the most bytes, so that it does not hold the server for long.
const MEMBERS: usize = 16;
const BYTES: usize = 16 * 1024;
/// The longest that a batch waits for a call to return. It then goes beside those under way.
const LONGEST_WAIT: Duration = Duration::from_millis(1);

/// What a member is told. `None`: the server refused the batch before it ran, which may be another
/// member's fault, so each goes alone.
type Told = Option<Result<Reply, ClientError>>;

/// The calls to one server that wait for each other.
#[derive(Debug)]
pub(crate) struct Gather {
    client: Arc<dyn RedisClient>,
    /// Where batches are sent. The runtime of a caller may stop before they are answered.
    runtime: Handle,
    turns: Semaphore,
    /// The oldest first. For each there is a task that waits for a turn, and sends the oldest.
    waiting: Mutex<VecDeque<Batch>>,
}

/// Calls of one script.
#[derive(Debug)]
struct Batch {
    script: &'static Script,
    /// When the last of its members gives up.
    deadline: Instant,
    /// The words of all calls, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    members: Vec<Member>,
}

/// Which words are the keys of a call, and which its arguments. These begin with how many keys and
/// how many arguments there are.
#[derive(Debug)]
struct Member {
    keys: Range<usize>,
    args: Range<usize>,
    tell: oneshot::Sender<Told>,
}

impl Gather {
    pub(crate) fn new(client: Arc<dyn RedisClient>) -> Arc<Self> {
        Arc::new(Self {
            client,
            runtime: Handle::current(),
            turns: Semaphore::new(UNDER_WAY),
            waiting: Mutex::default(),
        })
    }

    /// Sends a call at once, or in a batch if others are on their way. `command` is what it is
    /// alone.
    pub(super) async fn send(
        self: &Arc<Self>,
        call: &Call<'_>,
        command: &[&[u8]],
    ) -> Result<Reply, ClientError> {
        let turn = self.turns.try_acquire();
        if turn.is_err() {
            match self.join(call).await {
                Ok(Some(answer)) => return answer,
                Ok(None) => {}
                // Nothing was heard of its batch, so the caller waits until its own deadline.
                Err(_) => std::future::pending().await,
            }
        }
        self.client.command(Route::Slot(call.slot), command).await
    }

    fn join(self: &Arc<Self>, call: &Call<'_>) -> oneshot::Receiver<Told> {
        let (tell, told) = oneshot::channel();
        let mut waiting = self.waiting();
        if let Some(batch) = waiting.iter_mut().find(|batch| batch.has_room(call)) {
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
            batch.send(&*self.client).await;
        }
    }

    /// Poison is ignored: no panic leaves a batch half added.
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

    /// Sends those whose callers still wait, and tells each what became of it.
    async fn send(mut self, client: &dyn RedisClient) {
        self.members.retain(|member| !member.tell.is_closed());
        let told = self.outcomes(client).await;
        for (member, told) in self.members.into_iter().zip(told) {
            // A caller that is gone needs to hear nothing.
            let _ = member.tell.send(told);
        }
    }

    async fn outcomes(&self, client: &dyn RedisClient) -> Vec<Told> {
        let count = self.members.len();
        // One alone needs no batch, and has no counts before its arguments.
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
                let message = "the answer to a batch makes no sense".to_owned();
                vec![Some(Err(ClientError::MaybeExecuted(message))); count]
            }),
            Ok(Err(ClientError::Rejected { code, message }))
                if is_passing(&code) || was_refused(&code, &message) =>
            {
                vec![None; count]
            }
            Ok(Err(error)) => vec![Some(Err(error)); count],
            // Each caller has its own deadline, and gives up by it.
            Err(_) => Vec::new(),
        }
    }
}

/// What became of each member, by the reply to the batch; `None` if it makes no sense.
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
