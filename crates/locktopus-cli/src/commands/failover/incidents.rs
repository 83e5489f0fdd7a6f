//! Turns signs into faults. A dying primary shows up as lost connections, as a silent server, and
//! as a new primary. That is one fault, named after the worst sign.

use std::fmt;

use locktopus_history::{Event, Record};
use serde::Serialize;

/// A fault is over after this long without a new sign, if locks are granted again.
const QUIET_NS: u64 = 2_000_000_000;

/// A sign of a fault. Later variants are worse and may come with earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sign {
    /// A request failed or a lease was lost, but the servers answer.
    Connection,
    /// A primary does not answer.
    Unreachable,
    /// A primary restarted at the same address.
    Restart,
    /// Another server became the primary.
    Failover,
}

impl Sign {
    pub(super) const ALL: [Self; 4] = [
        Self::Failover,
        Self::Restart,
        Self::Unreachable,
        Self::Connection,
    ];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Unreachable => "unreachable",
            Self::Restart => "restart",
            Self::Failover => "failover",
        }
    }

    /// Whether the servers may have forgotten locks.
    pub(super) fn may_forget(self) -> bool {
        matches!(self, Self::Restart | Self::Failover)
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Incident {
    pub(super) number: usize,
    pub(super) sign: Sign,
    pub(super) target: String,
    /// When all was last well, in nanoseconds of the histories. The fault took effect later.
    pub(super) at_ns: u64,
    last_sign_ns: u64,
    pub(super) open: bool,
}

impl Incident {
    /// Whether it was over before `end_ns`.
    pub(super) fn is_over_by(&self, end_ns: u64) -> bool {
        !self.open && self.last_sign_ns < end_ns
    }

    /// The fault as a record of a history.
    pub(super) fn record(&self) -> Record {
        Record {
            at: self.at_ns,
            worker: u32::MAX,
            event: Event::Fault {
                verb: self.sign.word().to_owned(),
                target: self.target.clone(),
            },
        }
    }
}

/// All faults, earliest first.
#[derive(Debug, Default)]
pub(super) struct Incidents {
    all: Vec<Incident>,
}

impl Incidents {
    pub(super) fn all(&self) -> &[Incident] {
        &self.all
    }

    /// The fault that is not over, if any.
    pub(super) fn open(&self) -> Option<&Incident> {
        self.all.last().filter(|incident| incident.open)
    }

    /// Takes in a sign. Returns whether it begins a fault or makes the current one worse.
    pub(super) fn sign(&mut self, sign: Sign, target: String, well_ns: u64, now_ns: u64) -> bool {
        if let Some(open) = self.all.last_mut().filter(|incident| incident.open) {
            // A request that was in flight may fail late. That does not prolong the fault.
            if sign > Sign::Connection {
                open.last_sign_ns = open.last_sign_ns.max(now_ns);
            }
            // Another promotion is a new fault only after this one is over.
            let worse = sign > open.sign;
            if worse {
                (open.sign, open.target) = (sign, target);
            }
            return worse;
        }
        // A fault begins after the last one was over.
        let earliest = self.all.last().map_or(0, |last| last.last_sign_ns + 1);
        self.all.push(Incident {
            number: self.all.len() + 1,
            sign,
            target,
            at_ns: well_ns.max(earliest).min(now_ns),
            last_sign_ns: now_ns,
            open: true,
        });
        true
    }

    /// Takes in a poll without a sign. `granted_ns`: every briefly held lock was granted since
    /// then.
    pub(super) fn well(&mut self, now_ns: u64, granted_ns: u64) {
        if let Some(open) = self.all.last_mut().filter(|incident| incident.open)
            && granted_ns > open.last_sign_ns
            && now_ns.saturating_sub(open.last_sign_ns) > QUIET_NS
        {
            open.open = false;
        }
    }

    /// Ends the watch: closes the open fault.
    pub(super) fn end(&mut self) {
        if let Some(open) = self.all.last_mut() {
            open.open = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn target(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn the_signs_of_one_fault_are_one_fault() {
        let mut seen = Incidents::default();
        let s = SECOND;
        assert!(seen.sign(Sign::Connection, target("reset"), 9 * s, 10 * s));
        assert!(seen.sign(Sign::Unreachable, target("a"), 9 * s, 11 * s));
        assert!(!seen.sign(Sign::Connection, target("reset"), 9 * s, 11 * s));
        assert!(seen.sign(Sign::Failover, target("a -> b"), 9 * s, 12 * s));
        seen.well(13 * s, 13 * s);
        assert!(seen.open().is_some(), "not quiet for long enough");
        seen.well(15 * s, 11 * s);
        assert!(seen.open().is_some(), "nothing was granted since");
        seen.well(15 * s, 14 * s);
        assert!(seen.open().is_none());
        let [fault] = seen.all() else {
            panic!("{seen:?}")
        };
        assert_eq!((fault.sign, fault.at_ns), (Sign::Failover, 9 * s));
        assert_eq!(fault.target, "a -> b");
    }

    #[test]
    fn the_next_fault_is_another_one_and_begins_after_the_last() {
        let mut seen = Incidents::default();
        seen.sign(Sign::Restart, target("a"), 1, 5);
        seen.well(6 + 3 * SECOND, 6);
        assert!(seen.sign(Sign::Restart, target("a"), 4, 4 * SECOND));
        let next = &seen.all()[1];
        assert_eq!((next.number, next.at_ns), (2, 6));
    }
}
