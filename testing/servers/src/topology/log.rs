//! The output of servers.

/// Lines of a server's output that errors show.
const LOG_LINES: usize = 15;

/// The end of a log.
pub(crate) fn tail(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}
