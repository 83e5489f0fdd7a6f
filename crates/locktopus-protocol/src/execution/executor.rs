//! Runs a script on the node that owns its keys.
//!
//! It sends `EVALSHA`, and on `NOSCRIPT` the same call as `EVAL`, which also loads the script. It
//! repeats until the deadline what the server refused before running it: a redirect, or a node that
//! is loading or was just demoted. Anything else may have run, and is reported as such: after the
//! first write of a script or of a pipeline an error is [`Executed::Maybe`]. [`was_refused`]
//! decides for scripts, [`Executor::run_replicated`] for pipelines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use locktopus_contract::{BackendError, BackendErrorKind, Executed};
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::{ClientError, Deployment, Pipelined, RedisClient, Reply, Route};
use crate::execution::call::{
    Call, HalfMoved, ONE_NODE, OnSplit, count_of, is_half_moved, names_a_node,
};
use crate::execution::gather::Gather;
use crate::execution::refusals::{is_passing, is_unknown_script, refuses_scripts, was_refused};
use crate::wire::{other_kind, too_few};

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Which of a client's connections to a node, and whether calls share a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way<'a> {
    Usual,
    /// The usual connection, perhaps in one request with other calls.
    Together(&'a Arc<Gather>),
    /// The connection for blocking commands, after everything that was sent there before. A call on
    /// it waits while its slot is being moved.
    Blocking,
}

/// A client, and the rules for repeating requests through it.
#[derive(Debug, Clone)]
pub(crate) struct Executor {
    client: Arc<dyn RedisClient>,
    closed: Arc<AtomicBool>,
}

impl Executor {
    pub(crate) fn new(client: Arc<dyn RedisClient>) -> Self {
        Self {
            client,
            closed: Arc::default(),
        }
    }

    /// A copy for another client; closing one closes both.
    pub(crate) fn through(&self, client: Arc<dyn RedisClient>) -> Self {
        Self {
            client,
            closed: Arc::clone(&self.closed),
        }
    }

    pub(crate) fn client(&self) -> &Arc<dyn RedisClient> {
        &self.client
    }

    pub(crate) fn name(&self) -> &'static str {
        self.client.name()
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.client.deployment() == Deployment::Cluster
    }

    /// Closes the client. Later calls are answered without it.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.client.close().await;
    }

    /// Refuses requests after the backend was closed.
    pub(crate) fn check_open(&self) -> Result<(), BackendError> {
        if self.closed.load(Ordering::Acquire) {
            let message = "the backend was closed";
            return Err(self.error(BackendErrorKind::Closed, Executed::No, message));
        }
        Ok(())
    }

    /// Runs a script.
    pub(crate) async fn run(&self, way: Way<'_>, call: &Call<'_>) -> Result<Reply, BackendError> {
        let (route, deadline) = (Route::Slot(call.slot), call.deadline);
        let count = count_of(call.keys);
        let mut command = call.command(&count);
        let mut on_split = match way {
            Way::Blocking => OnSplit::Wait,
            Way::Usual | Way::Together(_) => call.on_split,
        };
        let mut patience = Patience::until(deadline);
        loop {
            self.check_open()?;
            let answer = match way {
                // `EVAL` goes alone, so that the server knows the script afterwards.
                Way::Together(gather) if command[0] == b"EVALSHA" => {
                    timeout_at(deadline, gather.send(call, &command)).await
                }
                Way::Usual | Way::Together(_) => {
                    timeout_at(deadline, self.client.command(route, &command)).await
                }
                Way::Blocking => {
                    let commands: [&[&[u8]]; 1] = [&command];
                    let answers =
                        timeout_at(deadline, self.client.pipeline(route, &commands)).await;
                    let only = |answers: Pipelined| answers.replies.into_iter().next();
                    answers.map(|answers| only(answers?).unwrap_or_else(missing))
                }
            };
            match answer {
                Err(_) => return Err(self.timed_out(route, patience)),
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(error)) if is_unknown_script(&error) && command[0] == b"EVALSHA" => {
                    (command[0], command[1]) = (b"EVAL", call.script.source.as_bytes());
                }
                Ok(Err(error)) => match on_split {
                    OnSplit::FirstKey if is_half_moved(&error) => {
                        command[2] = b"1";
                        command.drain(4..3 + call.keys.len());
                        on_split = OnSplit::Wait;
                    }
                    OnSplit::Tell if is_half_moved(&error) => {
                        let (kind, message) = (BackendErrorKind::Unavailable, explained(&error));
                        let told = self.error(kind, Executed::No, message);
                        return Err(told.with_source(HalfMoved));
                    }
                    _ => patience.outlast(self, error).await?,
                },
            }
        }
    }

    /// Sends a command that changes nothing, or has the effect of once however often it runs.
    pub(crate) async fn ask(
        &self,
        route: Route,
        args: &[&[u8]],
        deadline: Instant,
    ) -> Result<Reply, BackendError> {
        let mut patience = Patience::until(deadline);
        loop {
            self.check_open()?;
            match timeout_at(deadline, self.client.command(route, args)).await {
                Err(_) => return Err(self.timed_out(route, patience)),
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(error)) => patience.outlast(self, error).await?,
            }
        }
    }

    /// The error for a request without an answer before the deadline.
    pub(crate) fn timed_out(&self, route: Route, patience: Patience) -> BackendError {
        self.client.timed_out(route);
        let message = match patience.refused_before {
            None => "no answer before the deadline".to_owned(),
            Some(refusal) => {
                let refusal = explained(&refusal);
                format!("no answer before the deadline; before that {refusal}")
            }
        };
        self.error(BackendErrorKind::Timeout, Executed::Maybe, message)
    }

    pub(crate) fn refused(&self, code: &str, message: &str) -> BackendError {
        // Redis 7.0 says ERR where later servers say NOPERM.
        let denied_inside = code == "ERR" && message.contains("The user executing the script");
        let kind = match code {
            "NOAUTH" | "NOPERM" | "WRONGPASS" | "NOHISTORY" => BackendErrorKind::Denied,
            _ if denied_inside => BackendErrorKind::Denied,
            "BADTOKEN" => BackendErrorKind::Protocol,
            other_kind::CODE => BackendErrorKind::OtherKind,
            too_few::CODE => BackendErrorKind::TooFewPermits,
            _ => BackendErrorKind::Refused,
        };
        let executed = match was_refused(code, message) {
            true => Executed::No,
            false => Executed::Maybe,
        };
        let hint = match code {
            _ if refuses_scripts(message) => {
                "; locks are scripts: this server, proxy or user has to allow EVALSHA and EVAL"
            }
            "WRONGTYPE" => {
                "; a key that this lock needs beside its own is in use for something else"
            }
            "OOM" => "; the server is out of memory",
            "NOHISTORY" => ", by which a failover is known; grant +info to this user",
            "MOVED" | "ASK" | "CROSSSLOT" => ONE_NODE,
            "OTHERLEASE" => {
                "; use the same, or stop all of them and delete the keys locktopus_history*"
            }
            _ => "",
        };
        // Servers quote the arguments of unknown commands; keep the text short.
        let message: String = message.chars().take(200).collect();
        self.error(kind, executed, format!("{code} {message}{hint}"))
    }

    pub(crate) fn error(
        &self,
        kind: BackendErrorKind,
        executed: Executed,
        message: impl Into<String>,
    ) -> BackendError {
        BackendError::new(self.name(), kind, executed, message)
    }

    /// The error for what this backend cannot do. Nothing was sent.
    pub(crate) fn unsupported(&self, message: impl Into<String>) -> BackendError {
        self.error(BackendErrorKind::Unsupported, Executed::No, message)
    }

    /// Turns the error of a call that changes nothing into one for the user.
    pub(crate) fn read_error(&self, error: ClientError) -> BackendError {
        match error {
            ClientError::Rejected { code, message } => {
                let refused = self.refused(&code, &message);
                self.error(refused.kind(), Executed::No, refused.message())
            }
            other => self.error(
                BackendErrorKind::Unavailable,
                Executed::No,
                other.to_string(),
            ),
        }
    }
}

/// A node gave fewer answers than it was sent commands.
pub(crate) fn missing() -> Result<Reply, ClientError> {
    let message = "an answer is missing";
    Err(ClientError::MaybeExecuted(message.to_owned()))
}

/// How one request is repeated after transient refusals.
#[derive(Debug)]
pub(crate) struct Patience {
    deadline: Instant,
    pause: Duration,
    refused_before: Option<ClientError>,
}

impl Patience {
    pub(crate) fn until(deadline: Instant) -> Self {
        Self {
            deadline,
            pause: FIRST_PAUSE,
            refused_before: None,
        }
    }

    /// Waits a moment if the same request may be sent again, or returns the error.
    pub(crate) async fn outlast(
        &mut self,
        executor: &Executor,
        error: ClientError,
    ) -> Result<(), BackendError> {
        match error {
            ClientError::MaybeExecuted(message) => {
                let kind = BackendErrorKind::Unavailable;
                return Err(executor.error(kind, Executed::Maybe, message));
            }
            ClientError::Rejected { code, message }
                if !is_passing(&code) || names_a_node(&code, executor.client.deployment()) =>
            {
                return Err(executor.refused(&code, &message));
            }
            refusal @ (ClientError::Rejected { .. } | ClientError::NotSent(_)) => {
                if Instant::now() + self.pause >= self.deadline {
                    let kind = BackendErrorKind::Unavailable;
                    return Err(executor.error(kind, Executed::No, explained(&refusal)));
                }
                self.refused_before = Some(refusal);
            }
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

/// The error for a refusal that lasted until the deadline.
fn explained(refusal: &ClientError) -> String {
    let hint = match refusal {
        ClientError::Rejected { code, .. } => match code.as_str() {
            "TRYAGAIN" | "ASK" => {
                "; the slot of this lock is being moved to another node of the cluster, and until that is done locks in it are \
                 kept but not given; ask again"
            }
            "CLUSTERDOWN" => {
                "; no node serves the slot of this lock, or the cluster has no majority"
            }
            _ => "",
        },
        ClientError::NotSent(_) | ClientError::MaybeExecuted(_) => "",
    };
    format!("{refusal}{hint}")
}

#[cfg(test)]
mod tests;
