//! Tests that a machine cannot run, or that a developer decided to skip.

use std::io::Write as _;

/// Prints that a test is skipped, and why. `scripts/test` counts these lines, and in CI it fails if
/// the reason names no variable.
pub fn skipped(what: &str, why: &str) {
    let line = format!("SKIPPED, NOT PASSED: {what}, because {why}");
    // Written past the test runner, which would hide it.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The reason in this variable to skip a test, if there is one. It counts in CI too.
#[must_use]
pub fn reason_in(variable: &str) -> Option<String> {
    let reason = std::env::var(variable).unwrap_or_default();
    (!reason.trim().is_empty()).then(|| format!("{variable} says: {reason}"))
}

/// Whether this is CI, where skipping a test needs an explicit reason.
#[must_use]
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false")
}

/// Whether the calling test may start containers. If not, it prints that the test is skipped.
///
/// # Panics
///
/// `LOCKTOPUS_SKIP_POD` is set and gives no reason.
#[must_use]
pub fn pod_or_skip() -> bool {
    const REASON: &str = "LOCKTOPUS_SKIP_POD";
    let reason = reason_in(REASON);
    let given = reason.is_some() || std::env::var_os(REASON).is_none();
    assert!(given, "{REASON} must give a reason");
    reason.is_none_or(|why| {
        skipped("a pod test", &why);
        false
    })
}
