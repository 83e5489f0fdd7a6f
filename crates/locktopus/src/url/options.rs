//! The options after the `?` of a backend URL.

use std::borrow::Cow;
use std::time::Duration;

use locktopus_core::{Label, NameEncoding, SafetyMode, TokenRetention};

use super::encryption::{SentinelTlsSettings, TlsSettings};
use super::option_names::{OPTIONS, SECRET_OPTION, is_hidden, is_plain_name, unknown};
use super::safety::SafetyOptions;
use super::shown::{HIDDEN, RedactedUrl, UrlFault, decode, legible};

/// The client library that talks to the servers.
///
/// ```
/// use locktopus::url::ClientChoice;
/// assert_ne!(ClientChoice::Redis, ClientChoice::Fred); // `client=redis` and `client=fred`
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientChoice {
    /// redis-rs, feature `redis`.
    Redis,
    /// fred, feature `fred`.
    Fred,
}

/// The choice of the cluster node for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Routing {
    #[default]
    Own,
    /// The client library.
    Client,
}

/// How to treat findings of the connect-time checks.
///
/// ```
/// use locktopus::url::Checks;
/// assert_eq!(Checks::default(), Checks::Warn); // `checks=warn`
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Checks {
    /// Make no checks.
    Off,
    /// Log them.
    #[default]
    Warn,
    /// Log them, and refuse to connect if locks could be lost silently.
    Refuse,
}

/// Whether connecting needs a server that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ConnectWhen {
    /// Connecting fails unless a server answers.
    #[default]
    Now,
    /// Connecting succeeds even if no server answers.
    Lazy,
}

/// The kind of pub/sub that announces releases.
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
    /// `None`: follows from `timeout`.
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) pubsub: PubSub,
    pub(crate) checks: Checks,
    pub(crate) connect_when: ConnectWhen,
    pub(crate) router: Routing,
    pub(crate) namespace: String,
    pub(crate) names: NameEncoding,
    pub(crate) renewed_lease: Option<Duration>,
    pub(crate) label: Option<String>,
    pub(crate) label_host: Option<String>,
    pub(crate) token_retention: TokenRetention,
    pub(crate) client_name: Option<String>,
    pub(crate) sentinel_user: Option<String>,
    pub(crate) sentinel_password: Option<String>,
    pub(crate) tls: TlsSettings,
    pub(crate) sentinel_tls: SentinelTlsSettings,
    /// The database of a unix socket, whose path has no room for it.
    pub(crate) db: Option<u32>,
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
            connect_when: ConnectWhen::default(),
            router: Routing::default(),
            namespace: String::new(),
            names: NameEncoding::default(),
            renewed_lease: None,
            label: None,
            label_host: None,
            token_retention: TokenRetention::default(),
            client_name: None,
            sentinel_user: None,
            sentinel_password: None,
            tls: TlsSettings::default(),
            sentinel_tls: SentinelTlsSettings::default(),
            db: None,
            safety: SafetyMode::Plain,
        }
    }
}

/// The default lease of a `LocktopusBuilder`.
const WATCHDOG_LEASE: Duration = Duration::from_secs(30);

/// The limit for waits. A longer one is a typing error, and sums of waits must not overflow.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(60 * 60);

/// The limit for leases; a `Locktopus` usually allows less (`max_lease`).
pub(super) const LONGEST_LEASE: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Options of a `Locktopus` on any backend. A `memory:` URL has no others, and a connector does not
/// see them.
pub(super) const FOR_ANY_BACKEND: [&str; 6] = [
    "namespace",
    "names",
    "renewed_lease",
    "checks",
    "label",
    "label_host",
];

impl UrlOptions {
    /// The default lease, if it differs from the usual one, which quarantine may not allow.
    pub(crate) fn default_lease(&self) -> Option<Duration> {
        match self.safety {
            SafetyMode::Quarantine { max_lease } if self.renewed_lease.is_none() => {
                Some(max_lease.min(WATCHDOG_LEASE))
            }
            _ => self.renewed_lease,
        }
    }

    pub(crate) fn label(&self) -> Option<Label> {
        let label = Label::new(self.label.as_deref()?);
        Some(match self.label_host.as_deref() {
            None => label,
            Some("off") => label.without_host(),
            Some(host) => label.host(host),
        })
    }

    fn check_label(&self) -> Result<(), UrlFault> {
        match self.label() {
            Some(label) => label
                .check()
                .map_err(|error| UrlFault::new(format!("option {}", error.option), &error.rule)),
            None if self.label_host.is_some() => Err(UrlFault::new(
                "option label_host",
                "means nothing without label",
            )),
            None => Ok(()),
        }
    }

    pub(crate) fn parse(
        query: &str,
        memory: bool,
        shown: &mut RedactedUrl,
    ) -> Result<Self, UrlFault> {
        let mut options = Self::default();
        let mut safety = SafetyOptions::default();
        let mut seen = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (written, value) = option.split_once('=').unwrap_or((option, ""));
            let name = decode(written, "name of an option")?;
            let known = OPTIONS.iter().find(|known| **known == name);
            let shows = || !value.is_empty() && is_plain_name(written, query, &seen);
            let name = *known.ok_or_else(|| unknown(&name, &seen, shows()))?;
            let refuse = |problem: &str| UrlFault::new(format!("option {name:?}"), problem);
            if memory && !FOR_ANY_BACKEND.contains(&name) {
                return Err(refuse("means nothing for a memory: URL"));
            }
            if seen.contains(&name) {
                return Err(refuse("is given twice"));
            }
            if name != SECRET_OPTION {
                legible(value, format!("option {name:?}"))?;
            }
            let decoded = decode(value, "value of an option")?;
            options
                .set(&mut safety, name, &decoded)
                .map_err(|rule| refuse(&rule))?;
            let joint = if seen.is_empty() { '?' } else { '&' };
            // Some people put the key itself where its file name belongs.
            let is_secret = is_hidden(name) || decoded.contains("-----BEGIN");
            let value = if is_secret { HIDDEN } else { value };
            shown.add(&format!("{joint}{name}={value}"));
            seen.push(name);
        }
        shown.finish();
        options.check_label()?;
        options.tls.check("")?;
        options.sentinel_tls.check()?;
        if options.connect_when == ConnectWhen::Lazy && options.checks == Checks::Refuse {
            let problem = "exclude each other: what does not answer cannot be checked";
            return Err(UrlFault::new(
                "options connect=lazy and checks=refuse",
                problem,
            ));
        }
        options.safety = safety.mode(options.timeout, options.renewed_lease)?;
        Ok(options)
    }

    /// Sets an option, or returns the rule that its value breaks.
    fn set(
        &mut self,
        safety: &mut SafetyOptions,
        name: &str,
        value: &str,
    ) -> Result<(), Cow<'static, str>> {
        let duration = |longest| duration_up_to(longest, value);
        let text = || Some(value.to_owned());
        let encryption = self.tls.set(name, value);
        if let Some(taken) = encryption.or_else(|| self.sentinel_tls.set(name, value)) {
            return Ok(taken?);
        }
        match name {
            "client" => {
                self.client = Some(match value {
                    "redis" | "redis-rs" => ClientChoice::Redis,
                    "fred" => ClientChoice::Fred,
                    _ => return Err("must be redis or fred".into()),
                });
            }
            "timeout" => self.timeout = duration(LONGEST_WAIT)?,
            "connect_timeout" => self.connect_timeout = Some(duration(LONGEST_WAIT)?),
            "pubsub" => {
                self.pubsub = match value {
                    "auto" => PubSub::Auto,
                    "plain" => PubSub::Plain,
                    "sharded" => PubSub::Sharded,
                    _ => return Err("must be auto, plain or sharded".into()),
                };
            }
            "checks" => {
                self.checks = match value {
                    "off" => Checks::Off,
                    "warn" => Checks::Warn,
                    "refuse" => Checks::Refuse,
                    _ => return Err("must be off, warn or refuse".into()),
                };
            }
            "connect" => {
                self.connect_when = match value {
                    "now" => ConnectWhen::Now,
                    "lazy" => ConnectWhen::Lazy,
                    _ => return Err("must be now or lazy".into()),
                };
            }
            "router" => {
                self.router = match value {
                    "own" => Routing::Own,
                    "client" => Routing::Client,
                    _ => return Err("must be own or client".into()),
                };
            }
            "namespace" => value.clone_into(&mut self.namespace),
            "names" => {
                self.names = match value {
                    "plain" => NameEncoding::Plain,
                    "escaped" => NameEncoding::Escaped,
                    _ => return Err("must be plain or escaped".into()),
                };
            }
            "renewed_lease" => self.renewed_lease = Some(duration(LONGEST_LEASE)?),
            "label" => self.label = text(),
            "label_host" => self.label_host = text(),
            "token_retention" if value == "forever" => {
                self.token_retention = TokenRetention::Forever;
            }
            "token_retention" => {
                let keep = TokenRetention::For(duration(TokenRetention::LONGEST)?);
                self.token_retention = keep.check().map_err(|error| error.rule)?;
            }
            "safety" => safety.choose_mode(value)?,
            "replicas" => safety.choose_replicas(value)?,
            "replication_timeout" => safety.set_replication_timeout(duration(LONGEST_WAIT)?)?,
            "quarantine_max_lease" => safety.set_max_lease(duration(LONGEST_LEASE)?)?,
            "client_name" => {
                check_client_name(value)?;
                self.client_name = text();
            }
            "sentinel_user" => self.sentinel_user = text(),
            "sentinel_password" => self.sentinel_password = text(),
            "db" => self.db = Some(value.parse().map_err(|_| "must be a number from 0")?),
            _ => return Err("is unknown".into()),
        }
        Ok(())
    }
}

/// Checks a name by the rule of `CLIENT SETNAME`.
fn check_client_name(name: &str) -> Result<(), &'static str> {
    if name.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(())
    } else {
        Err("must be visible ASCII characters without spaces, as CLIENT SETNAME wants it")
    }
}

/// humantime would write months and years, which are not whole days.
fn in_days(longest: Duration) -> String {
    match longest.as_secs() / (24 * 60 * 60) {
        0 => humantime::format_duration(longest).to_string(),
        days => format!("{days} days"),
    }
}

/// Parses a duration. An error never quotes the text, which may be a secret in the wrong place.
///
/// # Errors
///
/// The rule that the text breaks. Months are refused: most people who write `1M` mean a minute.
pub fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    let rule = "must be a duration such as 250ms, 5s or 2m, in the units ms, s, m, h and d";
    if text.trim_start().starts_with('-') {
        return Err("must not be negative");
    }
    let units = text.split(|c: char| !c.is_alphabetic());
    for unit in units.filter(|unit| !unit.is_empty()) {
        if unit == "M" || unit.starts_with("mon") || unit.starts_with('y') {
            return Err("must not be in months or years; m is minutes, d is days");
        }
        if !["ns", "us", "ms", "s", "m", "h", "d"].contains(&unit) {
            return Err(rule);
        }
    }
    match humantime::parse_duration(text) {
        Err(humantime::DurationError::NumberOverflow) => Ok(Duration::MAX),
        read => read.map_err(|_| rule),
    }
}

/// A duration within the limit, or the rule it breaks.
fn duration_up_to(longest: Duration, value: &str) -> Result<Duration, Cow<'static, str>> {
    match parse_duration(value)? {
        duration if duration.is_zero() => Err("must be longer than zero".into()),
        duration if duration <= longest => Ok(duration),
        _ => Err(format!("must be at most {}", in_days(longest)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::BackendUrl;

    fn parse(text: &str) -> BackendUrl {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_client_name_that_servers_refuse_is_an_error() {
        let name = |text: &str| format!("redis://h?client_name={text}").parse::<BackendUrl>();
        assert_eq!(
            name("billing%2F7").unwrap().options.client_name.as_deref(),
            Some("billing/7")
        );
        for bad in [
            "billing 7",
            "billing%207",
            "a%0Ab",
            "%09",
            "b%C3%BCro",
            "%7F",
        ] {
            let error = name(bad).unwrap_err().to_string();
            assert!(
                error.contains("client_name") && error.contains("without spaces"),
                "{error}"
            );
            assert!(!error.contains(char::is_control), "{error:?}");
        }
    }

    #[test]
    fn labels_are_checked_before_anything_is_sent() {
        let label = |options: &str| parse(&format!("memory:?{options}")).options.label();
        assert_eq!(label("names=plain"), None);
        let named = Label::new("billing worker");
        assert_eq!(label("label=billing%20worker"), Some(named.clone()));
        assert_eq!(
            label("label=billing%20worker&label_host=web-3"),
            Some(named.clone().host("web-3"))
        );
        assert_eq!(
            label("label_host=off&label=billing%20worker"),
            Some(named.without_host())
        );
        for bad in [
            "label=",
            "label=%1B%5B2J",
            "label=a&label_host=%0A",
            "label_host=a",
            &format!("label={}", "x".repeat(65)),
        ] {
            let error = format!("memory:?{bad}").parse::<BackendUrl>().unwrap_err();
            assert!(error.to_string().contains("label"), "{error}");
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
        }
    }
}
