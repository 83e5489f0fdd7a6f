//! From text to a checked backend URL.

use std::fmt;
use std::str::FromStr;

use super::authority::Authority;
use super::options::UrlOptions;
use super::redacted::{Redacted, SCHEMES, UrlError, decode};

/// A checked backend URL. See the [module's tables](super) for what may be written.
///
/// `Debug` and `Display` never show a password.
///
/// ```
/// use locktopus::url::BackendUrl;
/// let url: BackendUrl = "redis-sentinel://app:s3cret@a:26379,b:26379/mymaster?client=fred".parse()?;
/// assert!(!format!("{url:?}").contains("s3cret"));
/// let error = "redis://localhost:port".parse::<BackendUrl>().unwrap_err();
/// assert!(error.to_string().contains("\"localhost:***\" has a port that is not a number"));
/// # Ok::<(), locktopus::url::UrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct BackendUrl {
    pub(crate) place: Place,
    pub(crate) options: UrlOptions,
    redacted: Redacted,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Memory {
        name: Option<String>,
    },
    Servers {
        tls: bool,
        authority: Authority,
        shape: Shape,
    },
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Standalone { database: u32 },
    Sentinel { master_name: String, database: u32 },
    Cluster,
}

impl FromStr for BackendUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text, &[])
    }
}

impl BackendUrl {
    /// Parses a URL of this crate's own schemes; `others` are named beside them if the scheme is unknown.
    pub(crate) fn parse(text: &str, others: &[&str]) -> Result<Self, UrlError> {
        let redacted = Redacted::new(text);
        let (rest, query) = text.split_once('?').unwrap_or((text, ""));
        let memory = rest.strip_prefix("memory:");
        let place = match memory {
            Some(name) => Place::Memory {
                name: (!name.is_empty()).then(|| name.to_owned()),
            },
            None => servers(text, others, &redacted)?,
        };
        let options = UrlOptions::parse(query, memory.is_some(), &redacted)?;
        let url = Self {
            place,
            options,
            redacted,
        };
        url.check()?;
        Ok(url)
    }

    fn check(&self) -> Result<(), UrlError> {
        let Place::Servers { tls, shape, .. } = &self.place else {
            return Ok(());
        };
        let options = &self.options;
        let has_tls_options =
            options.ca.is_some() || options.cert.is_some() || options.danger_accept_invalid_certs;
        if !tls && has_tls_options {
            return Err(self.redacted.error(
                "a TLS option",
                "needs a rediss scheme, or it would be ignored",
            ));
        }
        let sentinel_login = options.sentinel_user.is_some() || options.sentinel_password.is_some();
        if sentinel_login && !matches!(shape, Shape::Sentinel { .. }) {
            return Err(self
                .redacted
                .error("a sentinel login", "means nothing without sentinels"));
        }
        if options.sentinel_user.is_some() && options.sentinel_password.is_none() {
            return Err(self
                .redacted
                .error("option \"sentinel_user\"", "needs sentinel_password"));
        }
        Ok(())
    }
}

fn servers(text: &str, others: &[&str], url: &Redacted) -> Result<Place, UrlError> {
    let (scheme, rest) = text.split_once("://").ok_or_else(|| {
        let others: String = others.iter().map(|scheme| format!(", {scheme}:")).collect();
        url.error(
            "the URL",
            format!(
                "has no scheme; write memory:, redis://HOST, redis-sentinel://HOST,HOST/MASTER or \
                 redis-cluster://HOST,HOST{others}"
            ),
        )
    })?;
    let base = scheme.replacen("valkey", "redis", 1);
    let (base, tls) = match base.strip_prefix("rediss") {
        Some(shape) => (format!("redis{shape}"), true),
        None => (base, false),
    };
    let default_port = if base == "redis-sentinel" {
        26_379
    } else {
        6_379
    };
    // An unknown scheme is the first thing to say.
    if !matches!(base.as_str(), "redis" | "redis-sentinel" | "redis-cluster") {
        return Err(url.error(
            format!("scheme {}", url.quote(scheme)),
            format!(
                "is unknown; known are memory, {}",
                [&SCHEMES[..], others].concat().join(", ")
            ),
        ));
    }
    let (authority, path) = address_and_path(rest, url)?;
    let authority = Authority::parse(authority, default_port, url)?;
    let shape = match base.as_str() {
        "redis" => {
            if authority.hosts.len() > 1 {
                let hint = "names several servers; write redis-sentinel:// or redis-cluster://";
                return Err(url.error("a redis:// URL", hint));
            }
            Shape::Standalone {
                database: database(path, url)?,
            }
        }
        "redis-sentinel" => {
            let (master, db) = path.split_once('/').unwrap_or((path, ""));
            let master_name = decode(master, "name of the primary", url)?;
            if master_name.is_empty() {
                let hint =
                    "lacks the name of the primary; write redis-sentinel://HOST,HOST/mymaster";
                return Err(url.error("a redis-sentinel:// URL", hint));
            }
            Shape::Sentinel {
                master_name,
                database: database(db, url)?,
            }
        }
        _ => {
            if database(path, url)? != 0 {
                return Err(url.error(
                    format!("path {}", url.quote(path)),
                    "names a database, but a cluster has only database 0",
                ));
            }
            Shape::Cluster
        }
    };
    Ok(Place::Servers {
        tls,
        authority,
        shape,
    })
}

/// What stands before the options: login with addresses, and the path.
///
/// A password with a raw `/` or `?` in it would end the address in its middle, and its rest would be taken for a path
/// or an option. That shows in an `@` where none belongs.
pub(super) fn address_and_path<'a>(
    rest: &'a str,
    url: &Redacted,
) -> Result<(&'a str, &'a str), UrlError> {
    let (address, behind) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if behind.contains('@') {
        return Err(url.error(
            "the login",
            "has a / or ? in it, or there is an @ behind the address; in a password write / as %2F, ? as %3F \
             and @ as %40, and elsewhere @ as %40",
        ));
    }
    let path = behind.split_once('?').map_or(behind, |(path, _)| path);
    Ok((address, path.strip_prefix('/').unwrap_or(path)))
}

fn database(path: &str, url: &Redacted) -> Result<u32, UrlError> {
    match path.strip_suffix('/').unwrap_or(path) {
        "" => Ok(0),
        number => number
            .parse()
            .map_err(|_| url.error(format!("database {}", url.quote(number)), "is not a number")),
    }
}

impl fmt::Display for BackendUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.redacted.as_str())
    }
}

impl fmt::Debug for BackendUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BackendUrl({})", self.redacted.as_str())
    }
}

#[cfg(test)]
mod tests;
