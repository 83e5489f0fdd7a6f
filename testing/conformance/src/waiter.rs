//! A waiter in a queue, for cases that call the backend directly.

use std::time::Duration;

use locktopus_core::{
    AcquireAttempt, AttemptOutcome, FencingToken, OwnerId, ReleaseOutcome, Wake, WakeStream,
};
use tokio::time::{Instant, timeout};

use crate::client::Client;
use crate::rule::Rule;
use crate::timing::{LONG, SLACK};

/// Far longer than any message takes, far shorter than any lease or place in these cases.
const SOON: Duration = Duration::from_secs(5);
/// How often a waiter polls after a hint to check.
const PAUSE: Duration = Duration::from_millis(5);

/// A waiter that listens and has a place in the queue.
#[derive(Debug)]
pub struct Waiter {
    /// Its client, on its lock.
    pub client: Client,
    /// The attempt it repeats.
    pub attempt: AcquireAttempt,
    /// How many were ahead of it at its last attempt.
    pub ahead: u64,
    /// The last token given to anyone before its last attempt.
    pub last_token: u64,
    hints: WakeStream,
}

/// How a waiter came to hold the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handed {
    /// The first token of the grant, if there is one.
    pub token: Option<FencingToken>,
    /// Whether the grant was pushed, rather than found by polling.
    pub pushed: bool,
}

impl Waiter {
    /// Listens and queues for a long lease, with a place that does not lapse while a case runs.
    pub async fn join(client: &Client, owner: &OwnerId) -> Self {
        Self::join_with(client, client.attempt_of(owner, LONG)).await
    }

    /// As [`join`](Self::join), with the caller's own attempt.
    pub async fn join_with(client: &Client, mut attempt: AcquireAttempt) -> Self {
        attempt.place = attempt.place.or(Some(LONG));
        let hints = client.subscribe().await;
        hints.claim(&attempt.owner);
        let mut waiter = Self {
            client: client.clone(),
            attempt,
            ahead: 0,
            last_token: 0,
            hints,
        };
        if let Some(token) = waiter.repeat().await {
            Rule::Exclusion.broken(format_args!(
                "a waiter was granted a held lock ({token:?}) instead of a place"
            ));
        }
        waiter.attempt.first = false;
        waiter
    }

    /// The owner id that waits.
    #[must_use]
    pub fn owner(&self) -> &OwnerId {
        &self.attempt.owner
    }

    /// Repeats the attempt. The answer must be the waiter's place or a grant.
    pub async fn repeat(&mut self) -> Option<Option<FencingToken>> {
        self.attempt.deadline = self.client.deadline();
        match self.client.send(&self.attempt).await {
            AttemptOutcome::Granted { token } => Some(token),
            AttemptOutcome::Queued {
                ahead, last_token, ..
            } => {
                (self.ahead, self.last_token) = (ahead, last_token);
                None
            }
            AttemptOutcome::Busy { .. } => {
                Rule::Queue.broken("an attempt that asked for a place got none")
            }
        }
    }

    /// Waits for the hand-off. After a hint to check, it tries until it has the lock.
    pub async fn handed(&mut self) -> Handed {
        match timeout(SOON, self.hints.next()).await {
            Ok(Wake::Granted { token }) => Handed {
                token: Some(token),
                pushed: true,
            },
            Ok(_) => self.asks().await,
            Err(_) => Rule::HandOff.broken(format_args!(
                "it was this waiter's turn, and it heard nothing for {SOON:?}"
            )),
        }
    }

    /// Tries until it has the lock.
    pub async fn asks(&mut self) -> Handed {
        let end = Instant::now() + SLACK;
        loop {
            if let Some(token) = self.repeat().await {
                return Handed {
                    token,
                    pushed: false,
                };
            }
            Rule::Queue.check(
                Instant::now() < end,
                "a waiter whose turn it is does not get the lock by asking",
            );
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Its position; `None` if it does not wait.
    pub async fn position(&self) -> Option<usize> {
        self.client.state().await.position(self.owner())
    }

    /// Releases the lock.
    pub async fn gives_back(&self) {
        let released = self.client.release_of(&self.attempt).await;
        Rule::Ownership.check(
            released == ReleaseOutcome::Released,
            "a waiter was handed the lock, and its release was answered NotHeld",
        );
    }

    /// Gives up, whether or not it holds the lock by now.
    pub async fn leaves(self) -> ReleaseOutcome {
        self.client.release_of(&self.attempt).await
    }
}
