//! Connecting with the settings of a client that the program has configured for itself.
//!
//! The settings become a URL like any other, so every option means the same and is checked by the
//! same code. Settings that a URL cannot carry are kept beside it.

use std::fmt;

use locktopus_core::{DynBackend, Locktopus, LocktopusBuilder};
use locktopus_protocol::{
    CredentialsProvider, HostPort, ProvideCredentials, ReadSettings, Servers, SettingsError,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::connect;
use crate::connect_error::ConnectError;
#[cfg(feature = "cluster-async")]
use crate::url::OwnConnection;
use crate::url::{Authority, BackendUrl, ClientChoice, Endpoint, Providers};

/// The characters that need no encoding in a path.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.');

/// The settings of your own client, for connections that Locktopus makes: addresses, logins,
/// database and TLS.
///
/// Made by the functions of `locktopus::redis` and `locktopus::fred`. The client itself is not
/// used. A pool repeats requests that failed and delays those it queues, and a lock request that is
/// sent twice, or late, can take a lock without a holder. And a wake-up must not wait behind other
/// traffic. So locks need their own connections, but only a few.
///
/// The client's time limits, retries and TCP options are never used. `Debug` shows no secret.
///
/// ```no_run
/// # #[cfg(feature = "redis")]
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use locktopus::redis::redis;
///
/// let client = redis::Client::open("redis://app:s3cret@db:6379/3")?;
/// let locks = locktopus::redis::from_client(&client)
///     .options("namespace=shop:&safety=quarantine")
///     .connect()
///     .await?;
/// let guard = locks.lock("invoice:42").acquire().await?;
/// # guard.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "nothing is connected before `connect`"]
pub struct ClientSettings {
    read: Result<ReadSettings, SettingsError>,
    client: ClientChoice,
    options: String,
    providers: Providers,
    #[cfg(feature = "cluster-async")]
    router: Option<OwnConnection>,
}

impl ClientSettings {
    pub(crate) fn new(read: Result<ReadSettings, SettingsError>, client: ClientChoice) -> Self {
        Self {
            read,
            client,
            options: String::new(),
            providers: Providers::default(),
            #[cfg(feature = "cluster-async")]
            router: None,
        }
    }

    /// Adds options, written as after the `?` of a [URL](mod@crate::url), to those of earlier
    /// calls. They override the client's own settings: `ca` replaces its TLS configuration,
    /// `sentinel_password` its login for sentinels, and `client=fred` connects through fred.
    ///
    /// ```
    /// use locktopus::redis::redis::Client;
    ///
    /// let client = Client::open("redis://db:6379").expect("a URL");
    /// let settings = locktopus::redis::from_client(&client).options("namespace=shop:").options("timeout=2s");
    /// # drop(settings);
    /// ```
    pub fn options(mut self, options: &str) -> Self {
        let options = options.strip_prefix('?').unwrap_or(options);
        for part in ["&", options] {
            self.options.push_str(part);
        }
        self
    }

    /// Asks `provider` for user and password before each login, instead of using the client's own.
    /// See [`BackendUrl::credentials`].
    ///
    /// ```
    /// use locktopus::redis::redis::Client;
    /// use locktopus::url::Credentials;
    ///
    /// let client = Client::open("redis://db:6379").expect("a URL");
    /// let settings = locktopus::redis::from_client(&client)
    ///     .credentials(|| async { Ok(Credentials::new("app", "a token that expires")) });
    /// # drop(settings);
    /// ```
    pub fn credentials(mut self, provider: impl ProvideCredentials) -> Self {
        self.providers.servers = Some(CredentialsProvider::new(provider));
        self
    }

    /// As [`credentials`](Self::credentials), for the logins at the sentinels.
    ///
    /// ```
    /// use locktopus::redis::redis::RedisConnectionInfo;
    /// use locktopus::url::Credentials;
    ///
    /// let login = RedisConnectionInfo::default();
    /// let settings = locktopus::redis::from_sentinels(["redis://a:26379"], "mymaster", None, &login)
    ///     .sentinel_credentials(|| async { Ok(Credentials::new("watcher", "a token that expires")) });
    /// # drop(settings);
    /// ```
    pub fn sentinel_credentials(mut self, provider: impl ProvideCredentials) -> Self {
        self.providers.sentinels = Some(CredentialsProvider::new(provider));
        self
    }

    /// Uses the program's own rustls configuration instead of the client's TLS settings. For
    /// clients whose certificates cannot be read back.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use locktopus::redis::redis::Client;
    ///
    /// # let roots = rustls::RootCertStore::empty();
    /// let tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    /// let client = Client::open("rediss://db:6379")?;
    /// let locks = locktopus::redis::from_client(&client).rustls(Arc::new(tls)).connect().await?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "tls")]
    pub fn rustls(mut self, config: std::sync::Arc<rustls::ClientConfig>) -> Self {
        self.read = self.read.and_then(|mut read| {
            let Some(tls) = &mut read.options.tls else {
                let problem = "is given, but the client does not use TLS";
                return Err(SettingsError::new("a rustls configuration", problem));
            };
            tls.prepared = Some(locktopus_protocol::tls::PreparedTls::new(config));
            read.hidden_tls = None;
            Ok(read)
        });
        self
    }

    /// Sends the commands of locks on a cluster through a connection that the program already has.
    /// These settings are used for the rest: subscriptions, redirects, `WAIT`, and questions to all
    /// primaries.
    ///
    /// Build its client with `.retries(0)`. A client that repeats requests is refused when
    /// connecting; a script on the key `locktopus:probe:repeated` that asks to be repeated finds it
    /// out. The connection still belongs to the program. [The
    /// table](https://github.com/locktopus/locktopus/blob/main/docs/routers.md) says when this is
    /// worth it.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus::redis::redis::cluster::ClusterClientBuilder;
    ///
    /// let nodes = ["redis://app:s3cret@a:7000", "redis://app:s3cret@b:7000"];
    /// let client = ClusterClientBuilder::new(nodes).retries(0).build()?;
    /// let connection = client.get_async_connection().await?;
    /// let settings = locktopus::redis::from_cluster_nodes(nodes).router(connection);
    /// let locks = settings.connect().await?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "cluster-async")]
    pub fn router(
        mut self,
        connection: locktopus_redis::redis::cluster_async::ClusterConnection,
    ) -> Self {
        self.router = Some(OwnConnection(std::sync::Arc::new(connection)));
        self
    }

    /// Connects to these servers.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = locktopus::redis::redis::Client::open("redis://db:6379/3")?;
    /// let locks = locktopus::redis::from_client(&client).connect().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConnectError`]; bad settings and options are refused before anything is sent.
    ///
    /// # Cancel safety
    ///
    /// As [`connect`](crate::connect()).
    pub async fn connect(self) -> Result<Locktopus, ConnectError> {
        self.connect_with(|builder| builder).await
    }

    /// As [`connect`](Self::connect), but lets you configure the `Locktopus`. Options are applied
    /// first.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = locktopus::redis::redis::Client::open("redis://db:6379/3")?;
    /// let settings = locktopus::redis::from_client(&client);
    /// let locks = settings.connect_with(|builder| builder.label("billing-worker")).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConnectError`]; bad settings and options are refused before anything is sent.
    ///
    /// # Cancel safety
    ///
    /// As [`connect`](crate::connect()).
    pub async fn connect_with(
        self,
        configure: impl FnOnce(LocktopusBuilder) -> LocktopusBuilder,
    ) -> Result<Locktopus, ConnectError> {
        let url = self.url()?;
        connect::build(connect::open(&url).await?, &url.options, configure)
    }

    /// As [`connect_backend`](crate::connect_backend).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = locktopus::redis::redis::Client::open("redis://db:6379/3")?;
    /// let backend = locktopus::redis::from_client(&client).connect_backend().await?;
    /// let locks = locktopus::Locktopus::builder_dyn(backend).build()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConnectError`]; bad settings and options are refused before anything is sent.
    ///
    /// # Cancel safety
    ///
    /// As [`connect`](crate::connect()).
    pub async fn connect_backend(self) -> Result<DynBackend, ConnectError> {
        connect::open(&self.url()?).await
    }

    fn url(self) -> Result<BackendUrl, ConnectError> {
        let read = self.read?;
        let mut url = BackendUrl::parse(&written(&read, &self.options), &[])?;
        let Endpoint::Servers { authority, .. } = &url.endpoint else {
            unreachable!("servers were written")
        };
        if !names_the_same(authority, &read.options.servers) {
            let problem = "has a character that no host name has";
            return Err(SettingsError::new("an address", problem).into());
        }
        if let Some(hidden) = &read.hidden_tls
            && !url.options.tls.says_whom_to_trust()
        {
            return Err(hidden.clone().into());
        }
        url.options.client.get_or_insert(self.client);
        #[cfg(feature = "cluster-async")]
        {
            url.connection = self.router;
        }
        url.read = Some(Box::new(read));
        if let Some(provider) = self.providers.servers {
            url = url.ask_for_credentials(provider)?;
        }
        if let Some(provider) = self.providers.sentinels {
            url = url.ask_for_sentinel_credentials(provider)?;
        }
        Ok(url)
    }
}

/// The settings as a URL, without secrets.
fn written(read: &ReadSettings, options: &str) -> String {
    let (tls, database) = (&read.options.tls, read.options.database);
    let s = if tls.is_some() { "s" } else { "" };
    let (scheme, address) = match &read.options.servers {
        Servers::Standalone(server) => match server.socket_path() {
            Some(path) => {
                let path = utf8_percent_encode(path, PATH);
                return format!("redis+unix://{path}?db={database}{options}");
            }
            None => ("", format!("{server}/{database}")),
        },
        Servers::Sentinel {
            sentinels,
            master_name,
        } => {
            let master = utf8_percent_encode(master_name, NON_ALPHANUMERIC);
            let sentinels = listed(sentinels);
            ("-sentinel", format!("{sentinels}/{master}/{database}"))
        }
        Servers::Cluster(nodes) => ("-cluster", format!("{}/{database}", listed(nodes))),
    };
    let options = options.trim_start_matches('&');
    format!("redis{s}{scheme}://{address}?{options}")
}

fn listed(servers: &[HostPort]) -> String {
    let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
    servers.join(",")
}

/// Whether the addresses were parsed as intended.
fn names_the_same(authority: &Authority, servers: &Servers) -> bool {
    let meant = match servers {
        Servers::Standalone(server) => std::slice::from_ref(server),
        Servers::Sentinel { sentinels, .. } => sentinels,
        Servers::Cluster(nodes) => nodes,
    };
    let meant = meant.iter().map(|server| (&server.host, server.port));
    let login = authority.username.is_some() || authority.password.is_some();
    !login && meant.eq(authority.hosts.iter().map(|(host, port)| (host, *port)))
}

impl fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.read.as_ref().map(|read| &read.options.servers);
        f.debug_struct("ClientSettings")
            .field("servers", &servers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use locktopus_protocol::{ConnectOptions, Credentials, Secret, TlsOptions};

    use super::*;

    fn server(host: &str) -> HostPort {
        HostPort {
            host: host.to_owned(),
            port: 7,
        }
    }

    fn settings(servers: Servers) -> ReadSettings {
        ReadSettings {
            options: ConnectOptions {
                credentials: Some(Credentials {
                    username: None,
                    password: Secret::new("hunter2"),
                }),
                ..ConnectOptions::new(servers)
            },
            hidden_tls: None,
        }
    }

    fn of(read: ReadSettings) -> ClientSettings {
        ClientSettings::new(Ok(read), ClientChoice::Redis)
    }

    #[test]
    fn every_kind_of_deployment_is_a_url() {
        let nodes = || vec![server("a"), server("::1")];
        let sentinels = Servers::Sentinel {
            sentinels: nodes(),
            master_name: "my/master".to_owned(),
        };
        let socket = Servers::Standalone(HostPort::unix("/run/a b?.sock"));
        for (servers, database, shown) in [
            (
                Servers::Standalone(server("h")),
                3,
                "redis://h:7/3?renewed_lease=5s",
            ),
            (
                socket,
                2,
                "redis+unix:///run/a%20b%3F.sock?db=2&renewed_lease=5s",
            ),
            (
                sentinels,
                1,
                "redis-sentinel://a:7,[::1]:7/my%2Fmaster/1?renewed_lease=5s",
            ),
            (
                Servers::Cluster(nodes()),
                0,
                "redis-cluster://a:7,[::1]:7/0?renewed_lease=5s",
            ),
        ] {
            let mut read = settings(servers);
            read.options.database = database;
            let settings = of(read.clone()).options("renewed_lease=5s");
            assert!(!format!("{settings:?}").contains("hunter2"));
            let url = settings.url().unwrap();
            let text = format!("{url} {url:?}");
            assert!(text.starts_with(shown), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
            let Endpoint::Servers {
                tls,
                authority,
                topology,
            } = &url.endpoint
            else {
                panic!("no servers")
            };
            let options = connect::options_of(&url, *tls, authority, topology);
            assert_eq!(
                (options.servers, options.database, options.credentials),
                (read.options.servers, database, read.options.credentials)
            );
        }
    }

    #[test]
    fn addresses_are_not_understood_as_something_else() {
        for host in ["a,b", "u:p@h", "h/1", "h?timeout=1s", "h&x", "", "/"] {
            let error = of(settings(Servers::Standalone(server(host)))).url();
            assert!(error.is_err(), "{host:?}");
        }
        let mut read = settings(Servers::Cluster(vec![server("a")]));
        read.options.database = 1;
        let error = of(read).url().unwrap_err().to_string();
        assert!(error.contains("only database 0"), "{error}");
    }

    #[test]
    fn options_are_checked_like_those_of_a_url() {
        for (options, named) in [
            ("timeout=soon", "option \"timeout\" must be a duration"),
            ("?ca=/x.pem", "rediss scheme"),
            ("sentinel_password=hunter3", "without sentinels"),
            ("db=3", "for unix sockets only"),
        ] {
            let read = settings(Servers::Standalone(server("h")));
            let error = of(read).options(options).url().unwrap_err().to_string();
            assert!(
                error.contains(named) && !error.contains("hunter"),
                "{error}"
            );
        }
    }

    #[test]
    fn tls_that_cannot_be_read_must_be_given() {
        let mut read = settings(Servers::Standalone(server("h")));
        read.options.tls = Some(TlsOptions {
            server_name: Some("locks".to_owned()),
            ..TlsOptions::default()
        });
        read.hidden_tls = Some(SettingsError::new("the certificates", "cannot be read"));
        let settings = of(read);
        let error = settings.clone().url().unwrap_err().to_string();
        assert!(error.contains("the certificates cannot be read"), "{error}");
        let url = settings.options("ca=/x.pem").url().unwrap();
        let Endpoint::Servers {
            tls,
            authority,
            topology,
        } = &url.endpoint
        else {
            panic!("no servers")
        };
        let tls = connect::options_of(&url, *tls, authority, topology)
            .tls
            .unwrap();
        assert_eq!(tls.ca_file.as_deref(), Some("/x.pem".as_ref()));
        assert_eq!(tls.server_name.as_deref(), Some("locks"));
    }
}
