//! How far the servers' clocks are off.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use locktopus_contract::{Diagnosis, Severity};

use super::ask::{Answers, finding};
use super::info::UNCHECKED;
use crate::client::ClientError;
use crate::wire::reply;

/// Smaller differences to the server's clock are not reported.
const TOLERANCE: Duration = Duration::from_secs(2);

/// Compares the servers' clocks with this machine's. `asked` runs from before the first question
/// until after the last answer.
pub(super) fn check(answers: Answers, asked: Range<SystemTime>, out: &mut Diagnosis) {
    let (before, after) = (asked.start, asked.end);
    for (node, reply) in answers {
        if let Err(error @ ClientError::Rejected { .. }) = &reply {
            let error: String = error.to_string().chars().take(100).collect();
            let message =
                format!("{node}: TIME is refused ({error}), so its clock could not be checked");
            out.findings
                .push(finding(Severity::Note, UNCHECKED, message));
        }
        let micros = reply.ok().as_ref().and_then(reply::time);
        let Some(micros) = micros.and_then(|micros| u64::try_from(micros).ok()) else {
            continue;
        };
        let server = SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
        let ahead = server.duration_since(after).unwrap_or_default();
        let behind = before.duration_since(server).unwrap_or_default();
        let off = ahead.max(behind);
        if off > TOLERANCE {
            let side = if ahead > behind { "ahead of" } else { "behind" };
            let message = format!(
                "{node}: the server's clock is {off:.1?} {side} this machine's; leases do not mind, but after a \
                 failover to a clock that is behind, fencing tokens may repeat; run NTP everywhere"
            );
            out.findings
                .push(finding(Severity::Warning, "clock", message));
        }
    }
}
