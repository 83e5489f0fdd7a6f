//! From text to a checked backend URL.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

#[cfg(any(feature = "redis", feature = "fred"))]
use locktopus_protocol::ReadSettings;

use super::authority::Authority;
#[cfg(any(feature = "redis", feature = "fred"))]
use super::login::Providers;
use super::options::{ClientChoice, Routing, UrlOptions};
use super::redacted::{Redacted, SCHEMES, UrlError, decode};
use super::scheme::with_small_scheme;

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
    /// What a client of the program's own has that cannot be said in a URL.
    #[cfg(any(feature = "redis", feature = "fred"))]
    pub(crate) read: Option<Box<ReadSettings>>,
    /// The providers of credentials.
    #[cfg(any(feature = "redis", feature = "fred"))]
    pub(crate) providers: Providers,
    /// What a program has handed in to be used for a cluster.
    #[cfg(feature = "cluster-async")]
    pub(crate) connection: Option<HandedIn>,
    redacted: Redacted,
}

/// A connection of the program's own. Only itself is the same.
#[cfg(feature = "cluster-async")]
#[derive(Clone)]
pub(crate) struct HandedIn(
    pub(crate) std::sync::Arc<locktopus_redis::redis::cluster_async::ClusterConnection>,
);

#[cfg(feature = "cluster-async")]
impl PartialEq for HandedIn {
    fn eq(&self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(feature = "cluster-async")]
impl Eq for HandedIn {}

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
    /// The default lease that this URL sets, by `renewed_lease` or by `quarantine_max_lease`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use locktopus::url::BackendUrl;
    /// let url: BackendUrl = "redis://localhost?renewed_lease=12s".parse()?;
    /// assert_eq!(url.renewed_lease(), Some(Duration::from_secs(12)));
    /// # Ok::<(), locktopus::url::UrlError>(())
    /// ```
    #[must_use]
    pub fn renewed_lease(&self) -> Option<Duration> {
        self.options.default_lease()
    }

    /// Parses a URL of this crate's own schemes; `others` are named beside them if the scheme is unknown.
    pub(crate) fn parse(text: &str, others: &[&str]) -> Result<Self, UrlError> {
        let text = &*with_small_scheme(text);
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
        let mut url = Self {
            place,
            options,
            #[cfg(any(feature = "redis", feature = "fred"))]
            read: None,
            #[cfg(any(feature = "redis", feature = "fred"))]
            providers: Providers::default(),
            #[cfg(feature = "cluster-async")]
            connection: None,
            redacted,
        };
        url.check()?;
        url.place_database();
        Ok(url)
    }

    /// An error about this URL.
    #[cfg(any(feature = "redis", feature = "fred"))]
    pub(super) fn error(&self, part: &str, problem: &str) -> UrlError {
        self.redacted.error(part, problem)
    }

    fn check(&self) -> Result<(), UrlError> {
        let Place::Servers {
            tls,
            authority,
            shape,
        } = &self.place
        else {
            return Ok(());
        };
        let (options, error) = (&self.options, |part: &str, problem: &str| {
            Err(self.redacted.error(part, problem))
        });
        if !tls && options.tls.says_anything() {
            return error(
                "a TLS option",
                "needs a rediss scheme, or it would be ignored",
            );
        }
        let has_sentinels = matches!(shape, Shape::Sentinel { .. });
        if options.sentinel_tls.differ() && !has_sentinels {
            return error(
                "a TLS option for sentinels",
                "means nothing without sentinels",
            );
        }
        let is_socket = matches!(&authority.hosts[..], [(path, 0)] if path.starts_with('/'));
        if options.db.is_some() && !is_socket {
            let problem =
                "is for unix sockets only; elsewhere the database is the path: redis://HOST/3";
            return error("option \"db\"", problem);
        }
        if options.router == Routing::Client {
            if *shape != Shape::Cluster {
                return error("option router=client", "means nothing without a cluster");
            }
            if options.client == Some(ClientChoice::Fred) {
                let problem = "is not possible with client=fred, whose router writes commands late; use client=redis";
                return error("option router=client", problem);
            }
        }
        let sentinel_login = options.sentinel_user.is_some() || options.sentinel_password.is_some();
        if sentinel_login && !has_sentinels {
            return error("a sentinel login", "means nothing without sentinels");
        }
        if options.sentinel_user.is_some() && options.sentinel_password.is_none() {
            return error("option \"sentinel_user\"", "needs sentinel_password");
        }
        Ok(())
    }

    /// The database of a unix socket is an option, but belongs to the place.
    fn place_database(&mut self) {
        if let (Some(db), Place::Servers { shape, .. }) = (self.options.db, &mut self.place)
            && let Shape::Standalone { database } = shape
        {
            *database = db;
        }
    }
}

fn servers(text: &str, others: &[&str], url: &Redacted) -> Result<Place, UrlError> {
    let unknown = |scheme: &str| {
        url.error(
            format!("scheme {}", url.quote(scheme)),
            format!(
                "is unknown; known are memory, {}",
                [&SCHEMES[..], others].concat().join(", ")
            ),
        )
    };
    let (scheme, rest) = text.split_once("://").ok_or_else(|| {
        if let Some(scheme) = SCHEMES.iter().find(|scheme| is_cut_short(text, scheme)) {
            let problem = format!("has no two slashes behind its scheme; write {scheme}://");
            return url.error("the URL", problem);
        }
        match scheme_alone(text, url) {
            Some(scheme) => unknown(scheme),
            None => no_scheme(others, url),
        }
    })?;
    let base = scheme.replacen("valkey", "redis", 1);
    if matches!(base.as_str(), "redis+unix" | "unix") {
        return socket(rest, url);
    }
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
        return Err(unknown(scheme));
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

/// Whether a URL has this scheme without `//`. A host of that name has a port instead.
fn is_cut_short(text: &str, scheme: &str) -> bool {
    let rest = text.strip_prefix(scheme);
    let rest = rest.and_then(|rest| rest.strip_prefix(':'));
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The unknown scheme of a URL without `//`. None if it may be something else: a host in front of a port, a part of a login.
fn scheme_alone<'a>(text: &'a str, url: &Redacted) -> Option<&'a str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_known = SCHEMES.contains(&scheme);
    let is_one = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let is_host = rest.starts_with(|c: char| c.is_ascii_digit());
    (is_one && !is_known && !is_host && !url.hides(&url.quote(scheme))).then_some(scheme)
}

fn no_scheme(others: &[&str], url: &Redacted) -> UrlError {
    let others: String = others.iter().map(|scheme| format!(", {scheme}:")).collect();
    let problem = format!(
        "has no scheme; write memory:, redis://HOST, redis-sentinel://HOST,HOST/MASTER or \
         redis-cluster://HOST,HOST{others}"
    );
    url.error("the URL", problem)
}

/// `[USER:PASSWORD@]/PATH`, behind the scheme of a unix socket.
fn socket(rest: &str, url: &Redacted) -> Result<Place, UrlError> {
    let (login, path) = address_and_path(rest, url)?;
    let path = decode(path, "path of the socket", url)?;
    if path.is_empty() || path.contains('\0') {
        let hint = "needs the absolute path of the socket; write redis+unix:///PATH";
        return Err(url.error("a URL of a unix socket", hint));
    }
    Ok(Place::Servers {
        tls: false,
        authority: Authority::of_socket(login, format!("/{path}"), url)?,
        shape: Shape::Standalone { database: 0 },
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
