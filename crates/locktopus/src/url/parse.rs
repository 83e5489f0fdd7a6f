//! Parsing backend URLs.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

#[cfg(any(feature = "redis", feature = "fred"))]
use locktopus_protocol::ReadSettings;

use super::authority::Authority;
#[cfg(any(feature = "redis", feature = "fred"))]
use super::login::Providers;
use super::options::{ClientChoice, Routing, UrlOptions};
use super::scheme::with_small_scheme;
use super::shown::{RedactedUrl, SCHEMES, UrlError, UrlFault, decode, legible};

/// A checked backend URL. See the [module's tables](super) for all URLs and options.
///
/// `Debug` and `Display` never show a password.
///
/// ```
/// use locktopus::url::BackendUrl;
/// let url: BackendUrl = "redis-sentinel://app:s3cret@a:26379,b:26379/mymaster?client=fred".parse()?;
/// assert!(!format!("{url:?}").contains("s3cret"));
/// let error = "redis://localhost:port".parse::<BackendUrl>().unwrap_err();
/// assert!(error.to_string().contains("the address has a port that is not a number"));
/// # Ok::<(), locktopus::url::UrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct BackendUrl {
    pub(crate) endpoint: Endpoint,
    pub(crate) options: UrlOptions,
    /// Settings of the program's own client that a URL cannot carry.
    #[cfg(any(feature = "redis", feature = "fred"))]
    pub(crate) read: Option<Box<ReadSettings>>,
    #[cfg(any(feature = "redis", feature = "fred"))]
    pub(crate) providers: Providers,
    /// A cluster connection that the program has handed in.
    #[cfg(feature = "cluster-async")]
    pub(crate) connection: Option<OwnConnection>,
    shown: RedactedUrl,
}

/// The program's own connection. Equal only to itself.
#[cfg(feature = "cluster-async")]
#[derive(Clone)]
pub(crate) struct OwnConnection(
    pub(crate) std::sync::Arc<locktopus_redis::redis::cluster_async::ClusterConnection>,
);

#[cfg(feature = "cluster-async")]
impl PartialEq for OwnConnection {
    fn eq(&self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(feature = "cluster-async")]
impl Eq for OwnConnection {}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Memory {
        name: Option<String>,
    },
    Servers {
        tls: bool,
        authority: Authority,
        topology: Topology,
    },
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Topology {
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

    /// Parses a URL with one of this crate's schemes. The error for an unknown scheme lists
    /// `others` too.
    pub(crate) fn parse(text: &str, others: &[&str]) -> Result<Self, UrlError> {
        let mut shown = RedactedUrl::default();
        match read(&with_small_scheme(text), others, &mut shown) {
            Ok((endpoint, options)) => Ok(Self {
                endpoint,
                options,
                #[cfg(any(feature = "redis", feature = "fred"))]
                read: None,
                #[cfg(any(feature = "redis", feature = "fred"))]
                providers: Providers::default(),
                #[cfg(feature = "cluster-async")]
                connection: None,
                shown,
            }),
            Err(fault) => Err(shown.error(fault)),
        }
    }

    #[cfg(any(feature = "redis", feature = "fred"))]
    pub(super) fn error(&self, part: &str, problem: &str) -> UrlError {
        self.shown.error(UrlFault::new(part, problem))
    }
}

fn read(
    text: &str,
    others: &[&str],
    shown: &mut RedactedUrl,
) -> Result<(Endpoint, UrlOptions), UrlFault> {
    let (rest, query) = text.split_once('?').unwrap_or((text, ""));
    let memory = rest.strip_prefix("memory:");
    let mut endpoint = match memory {
        Some(name) => {
            shown.add("memory:");
            if text.contains('@') {
                let problem = "has an @ in it, but no login; write @ as %40";
                return Err(UrlFault::new("a memory: URL", problem));
            }
            legible(name, "the name")?;
            shown.add(name);
            Endpoint::Memory {
                name: (!name.is_empty()).then(|| name.to_owned()),
            }
        }
        None => servers(text, others, shown)?,
    };
    let options = UrlOptions::parse(query, memory.is_some(), shown)?;
    check(&endpoint, &options)?;
    // The database of a unix socket is an option, but it is part of the address.
    if let (Some(db), Endpoint::Servers { topology, .. }) = (options.db, &mut endpoint)
        && let Topology::Standalone { database } = topology
    {
        *database = db;
    }
    Ok((endpoint, options))
}

/// Checks that the options fit the address.
fn check(endpoint: &Endpoint, options: &UrlOptions) -> Result<(), UrlFault> {
    let Endpoint::Servers {
        tls,
        authority,
        topology,
    } = endpoint
    else {
        return Ok(());
    };
    let error = |part: &str, problem: &str| Err(UrlFault::new(part, problem));
    if !tls && options.tls.says_anything() {
        return error(
            "a TLS option",
            "needs a rediss scheme, or it would be ignored",
        );
    }
    let has_sentinels = matches!(topology, Topology::Sentinel { .. });
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
        if *topology != Topology::Cluster {
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

pub(crate) const SERVER_PORT: u16 = 6_379;
const SENTINEL_PORT: u16 = 26_379;

fn servers(text: &str, others: &[&str], shown: &mut RedactedUrl) -> Result<Endpoint, UrlFault> {
    let known = text.split_once("://");
    let known = known.filter(|(scheme, _)| SCHEMES.contains(scheme));
    let (scheme, rest) = known.ok_or_else(|| no_scheme(text, others))?;
    shown.add(scheme);
    shown.add("://");
    let (address, path) = address_and_path(rest)?;
    let base = scheme.replacen("valkey", "redis", 1);
    if matches!(base.as_str(), "redis+unix" | "unix") {
        return socket(address, path, shown);
    }
    let (base, tls) = match base.strip_prefix("rediss") {
        Some(topology) => (format!("redis{topology}"), true),
        None => (base, false),
    };
    let default_port = match base.as_str() {
        "redis-sentinel" => SENTINEL_PORT,
        _ => SERVER_PORT,
    };
    let authority = Authority::parse(address, default_port)?;
    if base == "redis" && authority.hosts.len() > 1 {
        let hint = "names several servers; write redis-sentinel:// or redis-cluster://";
        return Err(UrlFault::new("a redis:// URL", hint));
    }
    shown.add_authority(address);
    let topology = topology(&base, path)?;
    if !path.is_empty() {
        shown.add(&format!("/{path}"));
    }
    Ok(Endpoint::Servers {
        tls,
        authority,
        topology,
    })
}

/// The deployment, from the path after the addresses.
fn topology(base: &str, path: &str) -> Result<Topology, UrlFault> {
    match base {
        "redis" => Ok(Topology::Standalone {
            database: database(path)?,
        }),
        "redis-sentinel" => {
            let (master, db) = path.split_once('/').unwrap_or((path, ""));
            legible(master, "the name of the primary")?;
            let master_name = decode(master, "name of the primary")?;
            if master_name.is_empty() {
                let hint =
                    "lacks the name of the primary; write redis-sentinel://HOST,HOST/mymaster";
                return Err(UrlFault::new("a redis-sentinel:// URL", hint));
            }
            Ok(Topology::Sentinel {
                master_name,
                database: database(db)?,
            })
        }
        _ => match database(path)? {
            0 => Ok(Topology::Cluster),
            _ => Err(UrlFault::new(
                "the path",
                "names a database, but a cluster has only database 0",
            )),
        },
    }
}

/// The error for a text without a scheme, or with an unknown one.
fn no_scheme(text: &str, others: &[&str]) -> UrlFault {
    if let Some(scheme) = SCHEMES.iter().find(|scheme| is_cut_short(text, scheme)) {
        let problem = format!("has no two slashes behind its scheme; write {scheme}://");
        return UrlFault::new("the URL", problem);
    }
    let problem = format!(
        "has no scheme that is known; write memory:, redis://HOST, redis-sentinel://HOST,HOST/MASTER or \
         redis-cluster://HOST,HOST. Known are memory, {}",
        [&SCHEMES[..], others].concat().join(", ")
    );
    UrlFault::new("the URL", problem)
}

/// Whether a URL has this scheme without `//`. A host of that name would be followed by a port.
fn is_cut_short(text: &str, scheme: &str) -> bool {
    let rest = text.strip_prefix(scheme);
    let rest = rest.and_then(|rest| rest.strip_prefix(':'));
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// `[USER:PASSWORD@]/PATH`, after the scheme of a unix socket.
fn socket(login: &str, path: &str, shown: &mut RedactedUrl) -> Result<Endpoint, UrlFault> {
    legible(path, "the path of the socket")?;
    let decoded = decode(path, "path of the socket")?;
    if decoded.is_empty() || decoded.contains('\0') {
        let hint = "needs the absolute path of the socket; write redis+unix:///PATH";
        return Err(UrlFault::new("a URL of a unix socket", hint));
    }
    let authority = Authority::of_socket(login, format!("/{decoded}"))?;
    shown.add_authority(login);
    shown.add(&format!("/{path}"));
    Ok(Endpoint::Servers {
        tls: false,
        authority,
        topology: Topology::Standalone { database: 0 },
    })
}

/// The part before the options: login with addresses, and the path.
///
/// A raw `/` or `?` in a password would end the address in the middle of it, and the rest would be
/// taken for a path or an option. Such a password leaves an `@` where none belongs.
pub(super) fn address_and_path(rest: &str) -> Result<(&str, &str), UrlFault> {
    let (address, behind) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if behind.contains('@') {
        return Err(UrlFault::new(
            "the login",
            "has a / or ? in it, or there is an @ behind the address; in a password write / as %2F, ? as %3F \
             and @ as %40, and elsewhere @ as %40",
        ));
    }
    let path = behind.split_once('?').map_or(behind, |(path, _)| path);
    Ok((address, path.strip_prefix('/').unwrap_or(path)))
}

fn database(path: &str) -> Result<u32, UrlFault> {
    match path.strip_suffix('/').unwrap_or(path) {
        "" => Ok(0),
        number => number
            .parse()
            .map_err(|_| UrlFault::new("the database", "is not a number")),
    }
}

impl fmt::Display for BackendUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown.as_str())
    }
}

impl fmt::Debug for BackendUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BackendUrl({})", self.shown.as_str())
    }
}

#[cfg(test)]
mod tests;
