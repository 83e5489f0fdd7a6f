//! Skips tests on machines without a JDK.

use super::error::RedissonError;
use super::jar::Jar;
use crate::skip::{in_ci, reason_in, skipped};

/// A reason to skip tests with Redisson, also in CI.
const REASON: &str = "LOCKTOPUS_SKIP_JDK";

const WHAT: &str = "a test with Redisson";

/// The jar. `None` if the calling test must be skipped, because the machine lacks a JDK, Maven or
/// the network, or because `LOCKTOPUS_SKIP_JDK` gives a reason; this function has printed that
/// then.
///
/// # Errors
///
/// Every other error, and in CI (the variable `CI` is set) also a missing requirement without a
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
