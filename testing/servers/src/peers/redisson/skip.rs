//! What tests do where there is no JDK.

use super::error::RedissonError;
use super::jar::Jar;
use crate::skip::{in_ci, reason_in, skipped};

/// A reason to do without Redisson, also in CI.
const REASON: &str = "LOCKTOPUS_SKIP_JDK";

const WHAT: &str = "a test with Redisson";

/// The jar;
/// `None` if the calling test is to be skipped, which was then said loudly: because the machine lacks a JDK, Maven or the network, or because `LOCKTOPUS_SKIP_JDK`
/// gives a reason.
///
/// # Errors
///
/// Everything else, and in CI (the variable `CI` is set) also what is missing, unless there is a
/// reason.
///
/// # Cancel safety
///
/// As [`Jar::find_or_build`].
pub async fn jar_or_skip() -> Result<Option<Jar>, RedissonError> {
    if let Some(why) = reason_in(REASON) {
        skipped(WHAT, &why);
        return Ok(None);
    }
    match Jar::find_or_build().await {
        Ok(jar) => Ok(Some(jar)),
        Err(error) if error.is_missing() && in_ci() => {
            Err(RedissonError::Required(Box::new(error)))
        }
        Err(error) if error.is_missing() => {
            skipped(WHAT, &format!("it needs a JDK and Maven: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
