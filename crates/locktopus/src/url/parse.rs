//! From text to a checked backend URL.

use std::fmt;
use std::str::FromStr;

use super::authority::{Authority, decode};
use super::options::UrlOptions;

/// A checked backend URL. See the [module's tables](super) for what may be written.
///
/// `Debug` and `Display` never show a password.
///
/// ```
/// use locktopus::url::BackendUrl;
/// let url: BackendUrl = "redis-sentinel://app:s3cret@a:26379,b:26379/mymaster?client=fred".parse()?;
/// assert!(!format!("{url:?}").contains("s3cret"));
/// let error = "redis://localhost:port".parse::<BackendUrl>().unwrap_err();
/// assert!(error.to_string().contains("localhost:port"));
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
        let redacted = Redacted::new(text);
        let (rest, query) = text.split_once('?').unwrap_or((text, ""));
        let memory = rest.strip_prefix("memory:");
        let options = UrlOptions::parse(query, memory.is_some(), &redacted)?;
        let place = match memory {
            Some(name) => Place::Memory {
                name: (!name.is_empty()).then(|| name.to_owned()),
            },
            None => servers(rest, &redacted)?,
        };
        let url = Self {
            place,
            options,
            redacted,
        };
        url.check()?;
        Ok(url)
    }
}

impl BackendUrl {
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

fn servers(rest: &str, url: &Redacted) -> Result<Place, UrlError> {
    let (scheme, rest) = rest.split_once("://").ok_or_else(|| {
        url.error("the URL", "has no scheme; write memory:, redis://HOST, redis-sentinel://HOST,HOST/MASTER or redis-cluster://HOST,HOST")
    })?;
    let base = scheme.replacen("valkey", "redis", 1);
    let (base, tls) = match base.strip_prefix("rediss") {
        Some(shape) => (format!("redis{shape}"), true),
        None => (base, false),
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let default_port = if base == "redis-sentinel" {
        26_379
    } else {
        6_379
    };
    // An unknown scheme is the first thing to say.
    if !matches!(base.as_str(), "redis" | "redis-sentinel" | "redis-cluster") {
        return Err(url.error(
            format!("scheme {scheme:?}"),
            "is unknown; see the table in locktopus::url",
        ));
    }
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
                    format!("path {path:?}"),
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

fn database(path: &str, url: &Redacted) -> Result<u32, UrlError> {
    match path.strip_suffix('/').unwrap_or(path) {
        "" => Ok(0),
        number => number
            .parse()
            .map_err(|_| url.error(format!("database {number:?}"), "is not a number")),
    }
}

impl fmt::Display for BackendUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted.0)
    }
}

impl fmt::Debug for BackendUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BackendUrl({})", self.redacted.0)
    }
}

/// A URL without its login and without options that are secrets.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Redacted(String);

impl Redacted {
    fn new(text: &str) -> Self {
        let (rest, query) = text
            .split_once('?')
            .map_or((text, None), |(rest, query)| (rest, Some(query)));
        let mut shown = match rest.rsplit_once('@') {
            Some((login, hosts)) => {
                let scheme = login.split_once("://").map_or("", |(scheme, _)| scheme);
                format!("{scheme}://***@{hosts}")
            }
            None => rest.to_owned(),
        };
        if let Some(query) = query {
            shown.push('?');
            let shown_option = |option: &str| {
                let name = option.split_once('=').map_or(option, |(name, _)| name);
                // Compared as it will be parsed: `sentinel%5Fpassword` is a password too.
                let decoded: String = form_urlencoded::parse(name.as_bytes())
                    .map(|(name, _)| name.into_owned())
                    .collect();
                if decoded.contains("password") {
                    format!("{name}=***")
                } else {
                    option.to_owned()
                }
            };
            shown.push_str(
                &query
                    .split('&')
                    .map(shown_option)
                    .collect::<Vec<_>>()
                    .join("&"),
            );
        }
        Self(shown)
    }

    pub(crate) fn error(&self, part: impl Into<String>, problem: impl Into<String>) -> UrlError {
        UrlError {
            url: self.0.clone(),
            part: part.into(),
            problem: problem.into(),
        }
    }
}

/// A backend URL that cannot be used. Nothing was connected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bad backend URL {url:?}: {part} {problem}")]
pub struct UrlError {
    /// The URL, without login and secrets.
    pub url: String,
    /// Which part of it is wrong.
    pub part: String,
    /// What is wrong with it, and what to write instead.
    pub problem: String,
}

#[cfg(test)]
mod tests;
