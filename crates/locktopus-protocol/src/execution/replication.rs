//! Scripts whose effect counts once enough replicas have it.
//!
//! `WAIT` follows the script directly, on a connection that carries nothing else. Between the two
//! comes a write without meaning (`wait_offset.lua`). A script that finds everything done already,
//! for a repeated attempt or the confirmation of a pushed grant, writes nothing itself, so `WAIT`
//! would have nothing to wait for.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use locktopus_contract::{
    BackendError, BackendErrorKind, Executed, NotReplicated, ReplicaNeed, lock,
};
use tokio::time::{Instant, timeout_at};

use crate::client::{ClientError, Pipelined, Reply, Route};
use crate::execution::call::Call;
use crate::execution::executor::{Executor, Patience, missing};
use crate::execution::refusals::{is_passing, is_unknown_script};
use crate::layout::slot;
use crate::scripts::WAIT_OFFSET;

/// How long the key stays that `wait_offset.lua` writes, in ms.
const OFFSET_KEY_TTL: &[u8] = b"60000";
/// Slots that share an estimate of how many replicas must confirm.
const SLOTS_PER_GUESS: u16 = 64;

/// How many replicas must confirm, and what is known about how many there are.
#[derive(Debug)]
pub(crate) struct Replication {
    need: ReplicaNeed,
    timeout: Duration,
    cluster: bool,
    /// The most replicas that each primary was seen with. A disconnected replica may still be
    /// promoted.
    seen: Mutex<HashMap<String, u32>>,
    /// How many had to confirm last time, by range of slots: `WAIT` needs a number before the
    /// current one is known.
    guesses: Mutex<HashMap<u16, u32>>,
}

/// The reply of a script, and why its effect may not be on enough replicas, if so.
#[derive(Debug)]
pub(crate) struct Confirmed {
    pub(crate) reply: Reply,
    pub(crate) unconfirmed: Option<Unconfirmed>,
}

impl From<Reply> for Confirmed {
    fn from(reply: Reply) -> Self {
        Self {
            reply,
            unconfirmed: None,
        }
    }
}

/// Why it is not known that enough replicas have what a script did.
#[derive(Debug, Clone)]
pub(crate) enum Unconfirmed {
    /// Too few said so in time.
    Short(NotReplicated),
    /// The server did not let us ask.
    Refused(ClientError),
}

impl Replication {
    pub(crate) fn new(need: ReplicaNeed, timeout: Duration, cluster: bool) -> Self {
        Self {
            need,
            timeout,
            cluster,
            seen: Mutex::default(),
            guesses: Mutex::default(),
        }
    }

    fn guess(&self, slot: u16) -> u32 {
        let known = lock(&self.guesses).get(&self.range(slot)).copied();
        known.unwrap_or(1)
    }

    fn range(&self, slot: u16) -> u16 {
        if self.cluster {
            slot / SLOTS_PER_GUESS
        } else {
            0
        }
    }

    /// How many must confirm what `node` did, which has so many replicas at the moment.
    fn needed(&self, slot: u16, node: &str, connected: u32) -> u32 {
        let mut seen = lock(&self.seen);
        let most = seen.entry(node.to_owned()).or_default();
        *most = connected.max(*most);
        let needed = self.need.of(*most);
        lock(&self.guesses).insert(self.range(slot), needed);
        needed
    }

    fn offset_key(&self, slot: u16) -> String {
        slot::key_in("locktopus_mark", self.cluster.then_some(slot))
    }
}

impl Executor {
    /// Runs a script and waits for the replicas. The script may run twice. An error after the first
    /// time says that it has run.
    pub(crate) async fn run_replicated(
        &self,
        replication: &Replication,
        call: &Call<'_>,
    ) -> Result<Confirmed, BackendError> {
        let mut has_run = false;
        let confirmed = self.run_passes(replication, call, &mut has_run).await;
        confirmed.map_err(|error| if has_run { error.after_a_part() } else { error })
    }

    async fn run_passes(
        &self,
        replication: &Replication,
        call: &Call<'_>,
        has_run: &mut bool,
    ) -> Result<Confirmed, BackendError> {
        let (slot, deadline) = (call.slot, call.deadline);
        let (count, offset_key) = (call.keys.len().to_string(), replication.offset_key(slot));
        let mut command = call.command(&count);
        let mut patience = Patience::until(deadline);
        loop {
            self.check_open()?;
            // Time must be left for releasing what replicas do not confirm.
            let left = deadline.saturating_duration_since(Instant::now());
            let wait = replication.timeout.min(left * 3 / 4);
            let wait = wait.max(Duration::from_millis(1));
            let guess = replication.guess(slot);
            let answers = timeout_at(
                deadline,
                self.follow_up(replication, slot, &command, &offset_key, guess, wait),
            );
            let Ok(answers) = answers.await else {
                return Err(self.timed_out(Route::Slot(slot), patience));
            };
            let answered = answers.and_then(|answers| {
                let mut replies = answers.replies.into_iter();
                let reply = replies.next().unwrap_or_else(missing)?;
                Ok((answers.node, reply, replies))
            });
            let (node, reply, rest) = match answered {
                Ok(answered) => answered,
                Err(error) if is_unknown_script(&error) && command[0] == b"EVALSHA" => {
                    (command[0], command[1]) = (b"EVAL", call.script.source.as_bytes());
                    continue;
                }
                Err(error) => {
                    patience.outlast(self, error).await?;
                    continue;
                }
            };
            let asked_again = std::mem::replace(has_run, true);
            let unconfirmed = replication.judge(slot, node, rest, guess, wait).err();
            match unconfirmed {
                // More replicas than it was told to wait for: with their number it may be enough.
                Some(Unconfirmed::Short(ref short)) if short.needed > guess && !asked_again => {}
                unconfirmed => return Ok(Confirmed { reply, unconfirmed }),
            }
        }
    }

    /// The script, a write without meaning, the question how many replicas there are, and `WAIT`.
    async fn follow_up(
        &self,
        replication: &Replication,
        slot: u16,
        command: &[&[u8]],
        offset_key: &str,
        guess: u32,
        wait: Duration,
    ) -> Result<Pipelined, ClientError> {
        let (guess, wait) = (guess.to_string(), wait.as_millis().to_string());
        let write: [&[u8]; 5] = [
            b"EVAL",
            WAIT_OFFSET.source.as_bytes(),
            b"1",
            offset_key.as_bytes(),
            OFFSET_KEY_TTL,
        ];
        let wait: [&[u8]; 3] = [b"WAIT", guess.as_bytes(), wait.as_bytes()];
        let commands: &[&[&[u8]]] = match replication.need {
            ReplicaNeed::One => &[command, &write, &wait],
            // How many there are has to be known.
            _ => &[command, &write, &wait, &[b"ROLE"]],
        };
        self.client().pipeline(Route::Slot(slot), commands).await
    }

    /// An error for something that was done and that too few replicas confirmed.
    pub(crate) fn not_replicated(
        &self,
        unconfirmed: Unconfirmed,
        executed: Executed,
        message: &str,
    ) -> BackendError {
        match unconfirmed {
            Unconfirmed::Short(short) => self
                .error(BackendErrorKind::NotReplicated, executed, message)
                .with_source(short),
            Unconfirmed::Refused(error) => {
                let kind = match &error {
                    ClientError::Rejected { code, message } if !is_passing(code) => {
                        self.refused(code, message).kind()
                    }
                    ClientError::Rejected { .. }
                    | ClientError::NotSent(_)
                    | ClientError::MaybeExecuted(_) => BackendErrorKind::Unavailable,
                };
                let message = format!("{message}; asking the replicas (WAIT, ROLE) failed");
                self.error(kind, executed, message).with_source(error)
            }
        }
    }
}

impl Replication {
    /// Whether the answers to the write, `WAIT` and `ROLE` confirm a script's effect; if not, why.
    fn judge(
        &self,
        slot: u16,
        node: String,
        mut answers: impl Iterator<Item = Result<Reply, ClientError>>,
        guess: u32,
        waited: Duration,
    ) -> Result<(), Unconfirmed> {
        let mut next = || answers.next().unwrap_or_else(missing);
        let (write, wait) = (next(), next());
        let Reply::Int(confirmed) = write.and(wait).map_err(Unconfirmed::Refused)? else {
            return Err(Unconfirmed::Refused(unreadable("WAIT")));
        };
        let confirmed = u32::try_from(confirmed).unwrap_or(0);
        let (needed, short) = if self.need == ReplicaNeed::One {
            (guess, NotReplicated::new(node, confirmed, guess, waited))
        } else {
            let role = next().map_err(Unconfirmed::Refused)?;
            let connected = replicas(&role);
            let connected = connected.ok_or_else(|| Unconfirmed::Refused(unreadable("ROLE")))?;
            let needed = self.needed(slot, &node, connected);
            let short = NotReplicated::new(node, confirmed, needed, waited);
            (needed, short.of_connected(connected))
        };
        match confirmed < needed {
            true => Err(Unconfirmed::Short(short)),
            false => Ok(()),
        }
    }
}

/// How many replicas `ROLE` names.
fn replicas(role: &Reply) -> Option<u32> {
    match role.items()? {
        [Reply::Bytes(role), Reply::Int(_), Reply::Array(replicas)] if role == "master" => {
            u32::try_from(replicas.len()).ok()
        }
        _ => None,
    }
}

fn unreadable(command: &str) -> ClientError {
    ClientError::MaybeExecuted(format!("{command} gave an answer that makes no sense"))
}

#[cfg(test)]
mod tests;
