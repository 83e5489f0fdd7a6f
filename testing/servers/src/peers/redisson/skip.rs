//! What tests do where there is no JDK.

use std::io::Write as _;

use super::error::RedissonError;
use super::jar::Jar;

/// A reason to do without Redisson, also in CI.
const REASON: &str = "LOCKTOPUS_SKIP_JDK";

/// The jar; `None` if the calling test is to be skipped, which was then said loudly: because the machine
/// lacks a JDK, Maven or the network, or because `LOCKTOPUS_SKIP_JDK` gives a reason.
///
/// # Errors
///
/// Everything else, and in CI (the variable `CI` is set) also what is missing, unless there is a reason.
///
/// # Cancel safety
///
/// As [`Jar::find_or_build`].
pub async fn jar_or_skip() -> Result<Option<Jar>, RedissonError> {
    if let Ok(reason) = std::env::var(REASON)
        && !reason.trim().is_empty()
    {
        skipped(&format!("{REASON} says: {reason}"));
        return Ok(None);
    }
    let in_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
    match Jar::find_or_build().await {
        Ok(jar) => Ok(Some(jar)),
        Err(error) if error.is_missing() && in_ci => Err(RedissonError::Required(Box::new(error))),
        Err(error) if error.is_missing() => {
            skipped(&format!("it needs a JDK and Maven: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn skipped(why: &str) {
    // Written past the test runner, which would hide it.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED, NOT PASSED: a test with Redisson, because {why}"
    );
}
