//! The options behind the `?` of a backend URL.

use std::path::PathBuf;
use std::time::Duration;

use locktopus_core::SafetyMode;

use super::parse::{Redacted, UrlError};
use super::safety::SafetyOptions;

/// Which client library talks to the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientChoice {
    /// redis-rs, feature `redis`.
    Redis,
    /// fred, feature `fred`.
    Fred,
}

/// What to do about findings of the connect-time checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checks {
    /// Do not look.
    Off,
    /// Log them.
    #[default]
    Warn,
    /// Log them, and refuse to connect if locks could be lost silently.
    Refuse,
}

/// Which pub/sub announces releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PubSub {
    #[default]
    Auto,
    Plain,
    Sharded,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UrlOptions {
    pub(crate) client: Option<ClientChoice>,
    pub(crate) timeout: Duration,
    /// If it is not to follow from `timeout`.
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) pubsub: PubSub,
    pub(crate) checks: Checks,
    pub(crate) namespace: String,
    pub(crate) watchdog: Option<Duration>,
    pub(crate) token_retention: Option<Duration>,
    pub(crate) client_name: Option<String>,
    pub(crate) sentinel_user: Option<String>,
    pub(crate) sentinel_password: Option<String>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) danger_accept_invalid_certs: bool,
    pub(crate) safety: SafetyMode,
}

impl Default for UrlOptions {
    fn default() -> Self {
        Self {
            client: None,
            timeout: Duration::from_secs(1),
            connect_timeout: None,
            pubsub: PubSub::default(),
            checks: Checks::default(),
            namespace: String::new(),
            watchdog: None,
            token_retention: Some(Duration::from_secs(7 * 24 * 60 * 60)),
            client_name: None,
            sentinel_user: None,
            sentinel_password: None,
            ca: None,
            cert: None,
            key: None,
            danger_accept_invalid_certs: false,
            safety: SafetyMode::Plain,
        }
    }
}

/// The lease that a `LocktopusBuilder` has by default.
const WATCHDOG_LEASE: Duration = Duration::from_secs(30);

/// Options that mean something for a URL without servers.
const FOR_MEMORY: [&str; 3] = ["namespace", "watchdog", "checks"];

impl UrlOptions {
    /// The lease of locks asked for without one, if it is not to be the usual one: quarantine may not allow that.
    pub(crate) fn watchdog_lease(&self) -> Option<Duration> {
        match self.safety {
            SafetyMode::Quarantine { max_lease } if self.watchdog.is_none() => {
                Some(max_lease.min(WATCHDOG_LEASE))
            }
            _ => self.watchdog,
        }
    }

    pub(crate) fn parse(query: &str, memory: bool, url: &Redacted) -> Result<Self, UrlError> {
        let mut options = Self::default();
        let mut safety = SafetyOptions::default();
        let mut seen = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if memory && !FOR_MEMORY.contains(&&*name) {
                return Err(url.error(
                    format!("option {name:?}"),
                    "means nothing for a memory: URL",
                ));
            }
            if seen.contains(&name) {
                return Err(url.error(format!("option {name:?}"), "is given twice"));
            }
            options.set(&mut safety, &name, &value, url)?;
            seen.push(name);
        }
        if options.cert.is_some() != options.key.is_some() {
            return Err(url.error("options \"cert\" and \"key\"", "must be given together"));
        }
        options.safety = safety.mode(options.timeout, options.watchdog, url)?;
        Ok(options)
    }

    fn set(
        &mut self,
        safety: &mut SafetyOptions,
        name: &str,
        value: &str,
        url: &Redacted,
    ) -> Result<(), UrlError> {
        let choose = |problem: &str| url.error(format!("option {name}={value:?}"), problem);
        let duration = || match humantime::parse_duration(value) {
            Ok(duration) if !duration.is_zero() => Ok(duration),
            Ok(_) => Err(choose("must be longer than zero")),
            Err(error) => Err(choose(&format!(
                "must be a duration such as 250ms, 5s or 2m ({error})"
            ))),
        };
        let text = || Some(value.to_owned());
        match name {
            "client" => {
                self.client = Some(match value {
                    "redis" | "redis-rs" => ClientChoice::Redis,
                    "fred" => ClientChoice::Fred,
                    _ => return Err(choose("must be redis or fred")),
                });
            }
            "timeout" => self.timeout = duration()?,
            "connect_timeout" => self.connect_timeout = Some(duration()?),
            "pubsub" => {
                self.pubsub = match value {
                    "auto" => PubSub::Auto,
                    "plain" => PubSub::Plain,
                    "sharded" => PubSub::Sharded,
                    _ => return Err(choose("must be auto, plain or sharded")),
                };
            }
            "checks" => {
                self.checks = match value {
                    "off" => Checks::Off,
                    "warn" => Checks::Warn,
                    "refuse" => Checks::Refuse,
                    _ => return Err(choose("must be off, warn or refuse")),
                };
            }
            "namespace" => value.clone_into(&mut self.namespace),
            "watchdog" => self.watchdog = Some(duration()?),
            "token_retention" if value == "forever" => self.token_retention = None,
            "token_retention" => self.token_retention = Some(duration()?),
            "safety" => safety.choose_mode(value).map_err(choose)?,
            "replicas" => safety.choose_replicas(value).map_err(choose)?,
            "replication_timeout" => safety
                .set_replication_timeout(duration()?)
                .map_err(choose)?,
            "quarantine_max_lease" => safety.set_max_lease(duration()?).map_err(choose)?,
            "client_name" => self.client_name = text(),
            "sentinel_user" => self.sentinel_user = text(),
            "sentinel_password" => self.sentinel_password = text(),
            "ca" => self.ca = Some(value.into()),
            "cert" => self.cert = Some(value.into()),
            "key" => self.key = Some(value.into()),
            "danger_accept_invalid_certs" => {
                self.danger_accept_invalid_certs =
                    value.parse().map_err(|_| choose("must be true or false"))?;
            }
            _ => {
                return Err(url.error(
                    format!("option {name:?}"),
                    "is unknown; see the table in locktopus::url",
                ));
            }
        }
        Ok(())
    }
}
