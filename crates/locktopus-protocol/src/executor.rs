//! Runs a script on the node that owns its keys.
//!
//! `EVALSHA` first; on `NOSCRIPT` the same call as `EVAL`, which also loads the script there. What the
//! server refused before running it (a redirect, a node that is loading or was just demoted) is sent again
//! until the deadline. Anything else may have run, and is reported as such.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use locktopus_core::{BackendError, BackendErrorKind, Executed};
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::{ClientError, RedisClient, Reply, Route};
use crate::scripts::Script;

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// A client with the rules for using it.
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

    pub(crate) fn client(&self) -> &Arc<dyn RedisClient> {
        &self.client
    }

    pub(crate) fn name(&self) -> &'static str {
        self.client.name()
    }

    /// Closes the client. Later calls are answered without it.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.client.close().await;
    }

    /// Refuses what is asked after the end.
    pub(crate) fn check_open(&self) -> Result<(), BackendError> {
        if self.closed.load(Ordering::Acquire) {
            let message = "the backend was closed";
            return Err(self.error(BackendErrorKind::Closed, Executed::No, message));
        }
        Ok(())
    }

    /// Runs a script. `keys` must all be in `slot`.
    pub(crate) async fn run(
        &self,
        script: &Script,
        slot: u16,
        keys: &[&[u8]],
        args: &[&[u8]],
        deadline: Instant,
    ) -> Result<Reply, BackendError> {
        let count = keys.len().to_string();
        let command = call(script, &count, keys, args);
        self.send(Route::Slot(slot), command, None, script.source, deadline)
            .await
    }

    /// As [`run`](Self::run), but while the slot moves, with the first key alone, if the script can do with that.
    ///
    /// Neither node knows then whether a key that it does not have is on the other one, and refuses scripts that name
    /// one. The first key exists, so one of the nodes runs the script.
    pub(crate) async fn run_reduced(
        &self,
        script: &Script,
        slot: u16,
        keys: &[&[u8]],
        args: &[&[u8]],
        deadline: Instant,
    ) -> Result<Reply, BackendError> {
        let count = keys.len().to_string();
        let command = call(script, &count, keys, args);
        let (route, reducible) = (Route::Slot(slot), Some(keys.len()));
        self.send(route, command, reducible, script.source, deadline)
            .await
    }

    /// Sends a command that changes nothing.
    pub(crate) async fn ask(
        &self,
        route: Route,
        args: &[&[u8]],
        deadline: Instant,
    ) -> Result<Reply, BackendError> {
        self.send(route, args.to_vec(), None, "", deadline).await
    }

    async fn send(
        &self,
        route: Route,
        mut command: Vec<&[u8]>,
        mut reducible: Option<usize>,
        source: &str,
        deadline: Instant,
    ) -> Result<Reply, BackendError> {
        let mut pause = FIRST_PAUSE;
        let mut refused_before: Option<ClientError> = None;
        loop {
            self.check_open()?;
            let Ok(answer) = timeout_at(deadline, self.client.command(route, &command)).await
            else {
                self.client.timed_out(route);
                let message = match refused_before {
                    None => "no answer before the deadline".to_owned(),
                    Some(refusal) => {
                        format!("no answer before the deadline; before that {refusal}")
                    }
                };
                return Err(self.error(BackendErrorKind::Timeout, Executed::Maybe, message));
            };
            let refusal = match answer {
                Ok(reply) => return Ok(reply),
                Err(ClientError::MaybeExecuted(message)) => {
                    return Err(self.error(
                        BackendErrorKind::Unavailable,
                        Executed::Maybe,
                        message,
                    ));
                }
                Err(ClientError::Rejected { code, .. })
                    if code == "NOSCRIPT" && command[0] == b"EVALSHA" =>
                {
                    (command[0], command[1]) = (b"EVAL", source.as_bytes());
                    continue;
                }
                Err(ClientError::Rejected { code, .. })
                    if code == "TRYAGAIN" && reducible.is_some() =>
                {
                    if let Some(keys) = reducible.take() {
                        command[2] = b"1";
                        command.drain(4..3 + keys);
                    }
                    continue;
                }
                Err(ClientError::Rejected { code, message }) if !is_passing(&code) => {
                    return Err(self.refused(&code, &message));
                }
                Err(refusal) => refusal,
            };
            if Instant::now() + pause >= deadline {
                return Err(self.error(
                    BackendErrorKind::Unavailable,
                    Executed::No,
                    refusal.to_string(),
                ));
            }
            refused_before = Some(refusal);
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn refused(&self, code: &str, message: &str) -> BackendError {
        // Redis 7.0 says ERR where later servers say NOPERM.
        let denied_inside = code == "ERR" && message.contains("The user executing the script");
        let kind = match code {
            "NOAUTH" | "NOPERM" | "WRONGPASS" => BackendErrorKind::Denied,
            _ if denied_inside => BackendErrorKind::Denied,
            "BADTOKEN" => BackendErrorKind::Protocol,
            _ => BackendErrorKind::Refused,
        };
        // These stop a script before its first write; any other error may have stopped it half-way.
        let executed = match code {
            "WRONGTYPE" | "OOM" | "NOAUTH" | "WRONGPASS" | "BADTOKEN" => Executed::No,
            _ => Executed::Maybe,
        };
        let hint = match code {
            "WRONGTYPE" => {
                "; the name is in use for something else, perhaps a lock of another kind"
            }
            "OOM" => "; the server is out of memory",
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

fn call<'a>(
    script: &'a Script,
    count: &'a str,
    keys: &[&'a [u8]],
    args: &[&'a [u8]],
) -> Vec<&'a [u8]> {
    let mut command: Vec<&[u8]> = Vec::with_capacity(3 + keys.len() + args.len());
    command.extend([b"EVALSHA", script.digest().as_bytes(), count.as_bytes()]);
    command.extend(keys.iter().chain(args));
    command
}

/// Refusals that go away by themselves. The node did not run the script.
fn is_passing(code: &str) -> bool {
    matches!(
        code,
        "MOVED"
            | "ASK"
            | "TRYAGAIN"
            | "CLUSTERDOWN"
            | "LOADING"
            | "READONLY"
            | "MASTERDOWN"
            | "NOREPLICAS"
            | "BUSY"
            | "MISCONF"
    )
}

#[cfg(test)]
mod tests;
