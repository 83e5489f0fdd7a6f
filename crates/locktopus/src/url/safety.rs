//! The options that choose a safety mode.

use std::time::Duration;

use locktopus_core::{MIN_LEASE, ReplicaNeed, SafetyMode};

use super::rule::Rule;
use super::shown::UrlFault;

const REPLICATION_TIMEOUT: Duration = Duration::from_millis(500);
const QUARANTINE: Duration = Duration::from_secs(30);

/// The safety options of a URL, before they are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SafetyOptions {
    mode: SafetyWord,
    replicas: Option<ReplicaNeed>,
    replication_timeout: Option<Duration>,
    max_lease: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SafetyWord {
    #[default]
    Plain,
    Replicated,
    Quarantine,
}

impl SafetyOptions {
    pub(super) fn choose_mode(&mut self, value: &str) -> Result<(), Rule> {
        self.mode = match value {
            "plain" => SafetyWord::Plain,
            "replicated" => SafetyWord::Replicated,
            "quarantine" => SafetyWord::Quarantine,
            "quorum" => {
                return Err(
                    "needs several servers: give a URL for each of them, without this option",
                );
            }
            _ => return Err("must be plain, replicated or quarantine"),
        };
        Ok(())
    }

    pub(super) fn choose_replicas(&mut self, value: &str) -> Result<(), Rule> {
        self.replicas = Some(match value {
            "one" => ReplicaNeed::One,
            "majority" => ReplicaNeed::Majority,
            "all" => ReplicaNeed::All,
            _ => return Err("must be one, majority or all"),
        });
        Ok(())
    }

    pub(super) fn set_replication_timeout(&mut self, timeout: Duration) -> Result<(), Rule> {
        if timeout < Duration::from_millis(1) {
            return Err("must be at least 1ms");
        }
        self.replication_timeout = Some(timeout);
        Ok(())
    }

    pub(super) fn set_max_lease(&mut self, lease: Duration) -> Result<(), Rule> {
        if lease < MIN_LEASE {
            return Err("must be at least 20ms, the shortest lease there is");
        }
        self.max_lease = Some(lease);
        Ok(())
    }

    /// Combines the options into a mode, if they fit together. `timeout` and `renewed_lease` are
    /// the options of these names.
    pub(super) fn mode(
        self,
        timeout: Duration,
        renewed_lease: Option<Duration>,
    ) -> Result<SafetyMode, UrlFault> {
        let only_for = |given: bool, option: &str, mode: &str| {
            let error = || {
                UrlFault::new(
                    format!("option {option:?}"),
                    format!("means nothing without safety={mode}"),
                )
            };
            if given { Err(error()) } else { Ok(()) }
        };
        if self.mode != SafetyWord::Replicated {
            only_for(self.replicas.is_some(), "replicas", "replicated")?;
            only_for(
                self.replication_timeout.is_some(),
                "replication_timeout",
                "replicated",
            )?;
        }
        if self.mode != SafetyWord::Quarantine {
            only_for(
                self.max_lease.is_some(),
                "quarantine_max_lease",
                "quarantine",
            )?;
        }
        match self.mode {
            SafetyWord::Plain => Ok(SafetyMode::Plain),
            SafetyWord::Replicated => self.replicated(timeout),
            SafetyWord::Quarantine => self.quarantine(renewed_lease),
        }
    }

    fn replicated(self, timeout: Duration) -> Result<SafetyMode, UrlFault> {
        // With a short timeout, the default must be valid without setting this option.
        let default = REPLICATION_TIMEOUT.min(timeout / 2);
        let wait = self.replication_timeout.unwrap_or(default);
        if wait >= timeout {
            return Err(UrlFault::new(
                format!("option replication_timeout={wait:?}"),
                format!(
                    "must be shorter than the option timeout ({timeout:?}), which counts for the whole answer"
                ),
            ));
        }
        Ok(SafetyMode::Replicated {
            need: self.replicas.unwrap_or_default(),
            timeout: wait.max(Duration::from_millis(1)),
        })
    }

    fn quarantine(self, renewed_lease: Option<Duration>) -> Result<SafetyMode, UrlFault> {
        let max_lease = self.max_lease.unwrap_or(QUARANTINE);
        if let Some(lease) = renewed_lease.filter(|lease| *lease > max_lease) {
            return Err(UrlFault::new(
                format!("option renewed_lease={lease:?}"),
                format!("is a longer lease than quarantine_max_lease={max_lease:?} allows"),
            ));
        }
        Ok(SafetyMode::Quarantine { max_lease })
    }
}
