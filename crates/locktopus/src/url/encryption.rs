//! The TLS options: for the servers and, with the prefix `sentinel_`, for sentinels that differ.

use std::path::PathBuf;

use super::rule::Rule;
use super::shown::UrlFault;

/// The URL's TLS options for one group of servers.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct TlsSettings {
    pub(crate) ca: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) danger_accept_invalid_certs: bool,
    pub(crate) server_name: Option<String>,
}

impl TlsSettings {
    /// Sets an option, if it is a TLS option.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Option<Result<(), Rule>> {
        match name {
            "ca" => self.ca = Some(value.into()),
            "cert" => self.cert = Some(value.into()),
            "key" => self.key = Some(value.into()),
            "tls_server_name" if value.is_empty() => return Some(Err("must be a host name")),
            "tls_server_name" => self.server_name = Some(value.to_owned()),
            "danger_accept_invalid_certs" => match value.parse() {
                Ok(accept) => self.danger_accept_invalid_certs = accept,
                Err(_) => return Some(Err("must be true or false")),
            },
            _ => return None,
        }
        Some(Ok(()))
    }

    /// Whether an option sets the certificates to trust or to present.
    pub(crate) fn says_whom_to_trust(&self) -> bool {
        self.ca.is_some() || self.cert.is_some() || self.danger_accept_invalid_certs
    }

    pub(super) fn says_anything(&self) -> bool {
        self.says_whom_to_trust() || self.server_name.is_some()
    }

    /// `prefix` is the prefix of these options' names.
    pub(super) fn check(&self, prefix: &str) -> Result<(), UrlFault> {
        if self.cert.is_some() == self.key.is_some() {
            return Ok(());
        }
        let both = format!("options \"{prefix}cert\" and \"{prefix}key\"");
        Err(UrlFault::new(both, "must be given together"))
    }
}

/// How connections to the sentinels differ from those to the servers.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct SentinelTlsSettings {
    /// The option `sentinel_tls`, if set.
    pub(crate) wanted: Option<bool>,
    pub(crate) own: TlsSettings,
}

impl SentinelTlsSettings {
    /// Sets an option, if it is a TLS option of sentinels.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Option<Result<(), Rule>> {
        let name = name.strip_prefix("sentinel_")?;
        if name != "tls" {
            return self.own.set(name, value);
        }
        self.wanted = match value {
            "on" => Some(true),
            "off" => Some(false),
            _ => return Some(Err("must be on or off")),
        };
        Some(Ok(()))
    }

    pub(crate) fn differ(&self) -> bool {
        self.wanted.is_some() || self.own.says_anything()
    }

    pub(super) fn check(&self) -> Result<(), UrlFault> {
        self.own.check("sentinel_")?;
        if self.wanted == Some(false) && self.own.says_anything() {
            let problem = "leaves the other TLS options for sentinels without meaning";
            return Err(UrlFault::new("option sentinel_tls=off", problem));
        }
        Ok(())
    }
}
