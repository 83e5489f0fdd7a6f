//! Which process owns a leftover, and whether it is still alive.
//!
//! A process id alone is not enough, because ids are reused. The start time distinguishes processes
//! with the same id, and the namespace distinguishes containers that share a temporary directory.

use std::fmt;
use std::str::FromStr;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// A harness process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    namespace: u64,
    pid: u32,
    started: u64,
}

impl Owner {
    /// This process.
    pub(crate) fn me() -> Self {
        let pid = std::process::id();
        Self {
            namespace: namespace(),
            pid,
            started: started(pid).unwrap_or(0),
        }
    }

    /// Whether the owner is known to be gone. If it cannot be checked, it counts as alive.
    pub(crate) fn is_dead(&self) -> bool {
        if cfg!(target_os = "linux") {
            return self.namespace == namespace() && started(self.pid) != Some(self.started);
        }
        // Without start times a reused id looks alive, which errs on the safe side.
        let pid = self.pid.try_into().ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.namespace, self.pid, self.started)
    }
}

impl FromStr for Owner {
    type Err = ();

    /// Parses the text that [`fmt::Display`] wrote, and ignores anything after a further dash.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split('-');
        let mut next = || parts.next()?.parse().ok();
        Ok(Self {
            namespace: next().ok_or(())?,
            pid: next().and_then(|pid| pid.try_into().ok()).ok_or(())?,
            started: next().ok_or(())?,
        })
    }
}

/// Number of the process id namespace; 0 on systems without namespaces.
fn namespace() -> u64 {
    std::fs::read_link("/proc/self/ns/pid")
        .ok()
        .and_then(|link| {
            let text = link.to_string_lossy().into_owned();
            text.trim_end_matches(']').rsplit('[').next()?.parse().ok()
        })
        .unwrap_or(0)
}

/// Start time of a process in clock ticks since boot.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name and may contain anything, even spaces and brackets.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i_am_alive_and_my_predecessor_is_not() {
        let me = Owner::me();
        assert_eq!(format!("{me}-7").parse::<Owner>(), Ok(me.clone()));
        assert!(!me.is_dead());
        if cfg!(target_os = "linux") {
            let before = Owner {
                started: 1,
                ..me.clone()
            };
            assert!(before.is_dead());
        }
        let elsewhere = Owner {
            namespace: 1,
            started: 1,
            ..me
        };
        assert!(!elsewhere.is_dead());
        assert!("1-2".parse::<Owner>().is_err());
    }
}
