//! Backend URLs: the text you pass to [`connect`](crate::connect()), such as
//! `redis://db:6379?timeout=2s`. For authors of configuration, and of connectors for other schemes.
//!
//! | URL | backend |
//! |---|---|
//! | `memory:` | embedded, private to this `Locktopus` |
//! | `memory:NAME` | embedded, shared by all users of the same name in this process |
//! | `redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]` | one server |
//! | `redis-sentinel://[USER[:PASSWORD]@]HOST:PORT,HOST:PORT/MASTER[/DB]` | the primary that the sentinels know as `MASTER` |
//! | `redis-cluster://[USER[:PASSWORD]@]HOST:PORT,HOST:PORT` | a cluster; the rest of its nodes is discovered |
//! | `redis+unix://[USER:PASSWORD@]/PATH` or `unix://` | one server on this machine, by its socket |
//! | `rediss://`, `rediss-sentinel://`, `rediss-cluster://` | the same with TLS (feature `tls`) |
//!
//! You may write `valkey` for `redis`, and schemes in capitals. The default port is 6379, for
//! sentinels 26379. Percent-encode special characters in users, passwords, names and options: `/`
//! is `%2F`, `?` is `%3F`, `@` is `%40`, `&` is `%26`, `=` is `%3D`, `#` is `%23`, `,` is `%2C`,
//! `;` is `%3B`. A `+` is a `+`.
//!
//! An `@` after the address is refused, because it may end a password that was not encoded. A raw
//! `,`, `;`, `#` or second `=` in a name or a value is refused too, except in passwords, because
//! other libraries write a password after one of them. Options follow after `?`, joined by `&`:
//!
//! | option | values | default | meaning |
//! |---|---|---|---|
//! | `client` | `redis`, `fred` | `redis`, with any features | the client library |
//! | `timeout` | duration | `1s` | longest wait for one answer, in a quorum for that of one node; other time limits follow from it. Choose at least four round trips to the servers |
//! | `connect_timeout` | duration | `timeout`, at least `1s` | longest wait for one connection with TLS and login, which takes four or five exchanges with the server |
//! | `pubsub` | `auto`, `plain`, `sharded` | `auto` | which pub/sub announces releases; must be the same for all programs that share locks |
//! | `checks` | `off`, `warn`, `refuse` | `warn` | connect-time checks: `off` makes none, `warn` logs the findings, `refuse` also fails if locks could be lost silently |
//! | `connect` | `now`, `lazy` | `now` | `now` fails if no server answers. With `lazy`, locks fail as not taken until one does; the checks are made only if a server answers at once |
//! | `router` | `own`, `client` | `own` | who finds the node of a cluster: Locktopus, or the cluster connection of redis-rs (feature `cluster-async`, without TLS); [when to choose which](https://github.com/locktopus/locktopus/blob/main/docs/routers.md) |
//! | `namespace` | text | empty | prefix of every lock name |
//! | `names` | `plain`, `escaped` | `plain` | whether names may be any bytes ([`NameEncoding`](crate::NameEncoding)); must be the same for all programs that share locks |
//! | `renewed_lease` | duration | `30s` | lease of locks requested without one; renewed after a third |
//! | `label` | text of at most 64 characters | none | shown to everyone who looks at locks, with this host and process ([`Label`](crate::Label)) |
//! | `label_host` | text, `off` | the system's name | the host that is shown with the label; `off`: none |
//! | `token_retention` | duration from `1m`, `forever` | `1d` | how long a token key stays after the last grant ([`TokenRetention`](crate::TokenRetention)); `forever` if Java services use `RFencedLock` on the same names |
//! | `safety` | `plain`, `replicated`, `quarantine` | `plain` | what a grant is worth when a server fails ([`SafetyMode`](crate::SafetyMode)); must be the same for all programs that share locks |
//! | `replicas` | `one`, `majority`, `all` | `majority` | with `safety=replicated`: how many replicas must confirm a grant; the primary counts towards the majority |
//! | `replication_timeout` | duration | `500ms`, at most half of `timeout` | with `safety=replicated`: how long to wait for the replicas; shorter than `timeout` |
//! | `quarantine_max_lease` | duration | `30s` | with `safety=quarantine`: the longest lease allowed, and the time after a failover when nothing is granted. Must be the same for all programs that share the servers. `renewed_lease` is then at most this |
//! | `client_name` | visible ASCII characters without spaces | none | shown by `CLIENT LIST` |
//! | `sentinel_user`, `sentinel_password` | text | none | login for the sentinels |
//! | `ca` | path | system's | PEM file with the authorities to trust |
//! | `cert`, `key` | paths | none | PEM files with a client certificate and its key |
//! | `tls_server_name` | host name | the host of each server | the name that certificates must have, if servers are reached by other addresses. One for all servers, and for the sentinels unless they have their own TLS settings |
//! | `danger_accept_invalid_certs` | `true`, `false` | `false` | accept any certificate |
//! | `sentinel_tls` | `on`, `off` | as the scheme says | whether the sentinels use TLS, if they differ from the servers |
//! | `sentinel_ca`, `sentinel_cert`, `sentinel_key`, `sentinel_tls_server_name`, `sentinel_danger_accept_invalid_certs` | as without `sentinel_` | as for the servers, if none is given | the sentinels' own TLS settings; if you set one, the others have their defaults |
//! | `db` | number | `0` | the database, of a unix socket |
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
pub(crate) use options::{Begin, UrlOptions};
#[cfg(feature = "cluster-async")]
pub(crate) use parse::HandedIn;
pub(crate) use parse::Place;
#[cfg(any(feature = "redis", feature = "fred"))]
pub(crate) use parse::SERVER_PORT;
#[cfg(any(feature = "redis", feature = "fred"))]
pub(crate) use parse::Shape;
pub(crate) use shown::SCHEMES;
