//! Backend URLs: the text you pass to [`connect`](crate::connect()), such as
//! `redis://db:6379?timeout=2s`. For authors of configuration, and of connectors for other schemes.
//!
//! | URL | backend |
//! |---|---|
//! | `memory:` | embedded, private to this `Locktopus` |
//! | `memory:NAME` | embedded, shared by all users of the same name in this process |
//! | `redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]` | one server |
//! | `redis-sentinel://[USER[:PASSWORD]@]HOST:PORT,HOST:PORT/MASTER[/DB]` | the primary `MASTER` |
//! | `redis-cluster://[USER[:PASSWORD]@]HOST:PORT,HOST:PORT` | a cluster, by some of its nodes |
//! | `redis+unix://[USER:PASSWORD@]/PATH` or `unix://` | one server, by its unix socket |
//! | `rediss://`, `rediss-sentinel://`, `rediss-cluster://` | the same with TLS (feature `tls`) |
//!
//! You may write `valkey` for `redis`, and schemes in capitals. The default port is 6379, for
//! sentinels 26379. Percent-encode special characters in users, passwords, names and options: `/`
//! is `%2F`, `?` is `%3F`, `@` is `%40`, `&` is `%26`, `=` is `%3D`, `#` is `%23`, `,` is `%2C`,
//! `;` is `%3B`. A `+` is a `+`.
//!
//! An `@` after the address is refused, because a raw `/` or `?` in a password looks like that. A
//! raw `,`, `;`, `#` or second `=` in a name or a value is refused too, except in passwords,
//! because other libraries write a password after one of them. Options follow after `?`, joined by
//! `&`:
//!
//! | option | values | default | meaning |
//! |---|---|---|---|
//! | `client` | `redis`, `fred` | `redis`, with any features | the client library |
//! | `timeout` | duration | `1s` | longest wait for one answer |
//! | `connect_timeout` | duration | `timeout`, at least `2s` | longest wait for one connection |
//! | `pubsub` | `auto`, `plain`, `sharded` | `auto` | which pub/sub announces releases |
//! | `checks` | `off`, `warn`, `refuse` | `warn` | what the connect-time checks do |
//! | `connect` | `now`, `lazy` | `now` | whether connecting needs a server that answers |
//! | `router` | `own`, `client` | `own` | who finds the node of a cluster |
//! | `namespace` | text | empty | prefix of every lock name |
//! | `names` | `plain`, `escaped` | `plain` | [`escaped`](crate::NameEncoding) allows any bytes |
//! | `renewed_lease` | duration | `30s` | lease of requests without one; renewed after a third |
//! | `label` | text of at most 64 characters | none | [names](crate::Label) this instance |
//! | `label_host` | text, `off` | the system's name | the host shown with the label; `off`: none |
//! | `token_retention` | duration from `1m`, `forever` | `1d` | how long a token key is kept |
//! | `safety` | `plain`, `replicated`, `quarantine` | `plain` | [safety mode](crate::SafetyMode) |
//! | `replicas` | `one`, `majority`, `all` | `majority` | how many replicas must confirm a grant |
//! | `replication_timeout` | duration | `500ms`, at most half of `timeout` | limit for this |
//! | `quarantine_max_lease` | duration | `30s` | longest lease, and length of a quarantine |
//! | `client_name` | visible ASCII characters without spaces | none | shown by `CLIENT LIST` |
//! | `sentinel_user`, `sentinel_password` | text | none | login for the sentinels |
//! | `ca` | path | system's | PEM file with the authorities to trust |
//! | `cert`, `key` | paths | none | PEM files with a client certificate and its key |
//! | `tls_server_name` | host name | the host of each server | the name in the certificates |
//! | `danger_accept_invalid_certs` | `true`, `false` | `false` | accept any certificate |
//! | `sentinel_tls` | `on`, `off` | as the scheme says | whether the sentinels use TLS |
//! | `sentinel_ca`, `sentinel_cert`, `sentinel_key` | paths | see below | for the sentinels |
//! | `sentinel_tls_server_name` | host name | see below | for the sentinels |
//! | `sentinel_danger_accept_invalid_certs` | `true`, `false` | see below | for the sentinels |
//! | `db` | number | `0` | the database, of a unix socket |
//!
//! `pubsub`, `names` and `safety` must be the same for all programs that share locks, and
//! `quarantine_max_lease` for all that share the servers.
//!
//! * **Timeouts.** In a quorum, `timeout` is for the answer of one node. Other time limits follow
//!   from it. Choose at least four round trips to the servers. A connection with TLS and login
//!   takes four or five exchanges with the server.
//! * **`checks`**: `off` makes none, `warn` logs the findings, `refuse` also fails if locks could
//!   be lost silently.
//! * **`connect`**: `now` fails if no server answers. With `lazy`, locks fail as not taken until
//!   one does, and the checks are made only if a server answers at once.
//! * **`router`**: `own` is Locktopus, `client` the cluster connection of redis-rs (feature
//!   `cluster-async`, without TLS). See [when to choose
//!   which](https://github.com/locktopus/locktopus/blob/main/docs/routers.md).
//! * **`label`** is shown to everyone who looks at locks, with this host and process.
//! * **`token_retention`** counts from the last grant ([`TokenRetention`](crate::TokenRetention)).
//!   Choose `forever` if Java services use `RFencedLock` on the same names.
//! * **Safety.** `replicas` and `replication_timeout` need `safety=replicated`. The primary counts
//!   towards the majority, and `replication_timeout` must be shorter than `timeout`.
//!   `quarantine_max_lease` needs `safety=quarantine`: nothing is granted for this long after a
//!   failover, and `renewed_lease` is at most this.
//! * **TLS.** Set `tls_server_name` if servers are reached by addresses that are not in their
//!   certificates. It is one name for all servers, and for the sentinels too. Sentinels use the
//!   servers' TLS settings unless you set one of their own; the others then have their defaults.
//!   Set `sentinel_tls` if only the servers, or only the sentinels, use TLS.
//!
//! Features never choose the client: a URL without `client` means `client=redis` in every build,
//! and is an error if the feature `redis` is off. Features add up over a program's dependencies. If
//! the default depended on them, any crate that enables `redis` would move users of `fred` to the
//! other client.
//!
//! Durations are written like `250ms`, `5s`, `2m`, `7d`. Timeouts are at most an hour, leases and
//! retentions ten years.
//!
//! For a password that expires, leave out the login and set a provider:
//! [`BackendUrl::credentials`].
//!
//! Other crates can offer more schemes: [`Connectors`](crate::Connectors). Such a URL has only the
//! options `namespace`, `names`, `renewed_lease`, `label`, `label_host` and `checks` of this table.
//! All others belong to the connector.
//!
//! Messages show a URL without its login and without the values of `sentinel_password`, `key` and
//! `sentinel_key`. They show a wrong URL only up to its first wrong part, then `***`, because a
//! password may follow anywhere. They show nothing of the connection strings of other libraries
//! (`host:6380,password=...`).

mod authority;
mod custom;
mod encryption;
mod login;
mod option_names;
mod options;
mod parse;
#[cfg(test)]
pub(crate) mod properties;
mod rule;
mod safety;
mod scheme;
mod shown;

pub use custom::CustomUrl;
#[cfg(any(feature = "redis", feature = "fred"))]
pub(crate) use encryption::{SentinelTlsSettings, TlsSettings};
#[cfg(any(feature = "redis", feature = "fred"))]
pub use locktopus_protocol::{Credentials, CredentialsError, ProvideCredentials, Secret};
pub use login::IntoBackendUrl;
#[doc(hidden)]
pub use options::parse_duration;
pub use options::{Checks, ClientChoice};
pub use parse::BackendUrl;
pub use shown::UrlError;

#[cfg(any(feature = "redis", feature = "fred"))]
pub(crate) use authority::{Authority, addresses};
#[cfg(any(feature = "redis", feature = "fred"))]
pub(crate) use login::Providers;
#[cfg(any(feature = "redis", feature = "fred"))]
pub(crate) use options::PubSub;
#[cfg(any(feature = "redis", feature = "fred"))]
pub(crate) use options::Routing;
pub(crate) use options::{ConnectWhen, UrlOptions};
pub(crate) use parse::Endpoint;
#[cfg(feature = "cluster-async")]
pub(crate) use parse::OwnConnection;
#[cfg(any(feature = "redis", feature = "fred"))]
pub(crate) use parse::SERVER_PORT;
#[cfg(any(feature = "redis", feature = "fred"))]
pub(crate) use parse::Topology;
pub(crate) use shown::SCHEMES;
