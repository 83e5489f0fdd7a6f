//! Questions to every primary, and findings.

use locktopus_contract::{BackendError, BackendErrorKind, Executed, Finding, Severity};
use tokio::time::{Instant, timeout_at};

use crate::client::{ClientError, Reply};
use crate::execution::executor::Executor;

pub(super) fn finding(
    severity: Severity,
    check: &'static str,
    message: impl Into<String>,
) -> Finding {
    Finding::new(severity, check, message)
}

/// The answer of each server.
pub(super) type Answers = Vec<(String, Result<Reply, ClientError>)>;

pub(super) async fn ask_all(
    executor: &Executor,
    args: &[&[u8]],
    deadline: Instant,
) -> Result<Answers, BackendError> {
    let answers = timeout_at(deadline, executor.client().command_on_primaries(args)).await;
    let answers = answers.map_err(|_| {
        let message = "the servers did not answer the connect-time checks in time";
        executor.error(BackendErrorKind::Timeout, Executed::No, message)
    })?;
    let answers = answers.map_err(|error| executor.read_error(error))?;
    Ok(answers
        .into_iter()
        .map(|answer| (answer.node, answer.reply))
        .collect())
}
