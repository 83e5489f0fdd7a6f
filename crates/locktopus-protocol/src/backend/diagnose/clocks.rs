//! How far the servers' clocks are off.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use locktopus_core::{Diagnosis, Severity};

use super::ask::{Answers, finding};
use crate::client::Reply;

/// A difference to the server's clock up to this is not reported.
const TOLERANCE: Duration = Duration::from_secs(2);

/// Compares the servers' clocks with this machine's. `asked`: from before the first question until after the last answer.
pub(super) fn check(answers: Answers, asked: Range<SystemTime>, out: &mut Diagnosis) {
    let (before, after) = (asked.start, asked.end);
    for (node, reply) in answers {
        let Some(server) = reply.ok().as_ref().and_then(server_time) else {
            continue;
        };
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

fn server_time(reply: &Reply) -> Option<SystemTime> {
    let Reply::Array(items) = reply else {
        return None;
    };
    let number = |item: &Reply| match item {
        Reply::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse::<u64>().ok(),
        Reply::Int(value) => u64::try_from(*value).ok(),
        Reply::Nil | Reply::Array(_) => None,
    };
    let [seconds, micros] = items.as_slice() else {
        return None;
    };
    Some(
        SystemTime::UNIX_EPOCH
            + Duration::from_secs(number(seconds)?)
            + Duration::from_micros(number(micros)?),
    )
}
