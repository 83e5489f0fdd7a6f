//! Backend URLs: what may be written in the text that
//! [`connect`](crate::connect()) is given, such as `redis://db:6379?timeout=2s`. For those who
//! write configuration, and for connectors of further schemes.
//!
//! | URL | backend |
//! |---|---|
//! | `memory:` | embedded, private to this `Locktopus` |
//! | `memory:NAME` | embedded, shared by everybody in this process who uses the same name |
//! | `redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]` | one server |
//! | `redis-sentinel://[USER[:PASSWORD]@]HOST:PORT,HOST:PORT/MASTER[/DB]` | the primary that the sentinels know as `MASTER` |
//! | `redis-cluster://[USER[:PASSWORD]@]HOST:PORT,HOST:PORT` | a cluster; the rest of its nodes is discovered |
//! | `redis+unix://[USER:PASSWORD@]/PATH` or `unix://` | one server on this machine, by its socket |
//! | `rediss://`, `rediss-sentinel://`, `rediss-cluster://` | the same with TLS (feature `tls`) |
//!
//! `valkey` may be written for `redis`, and a scheme in capitals. A port that is left out is 6379,
//! for sentinels 26379. Special characters in users, passwords, names and options are
//! percent-encoded: `/` is `%2F`, `?` is `%3F`, `@` is `%40`, `&` is `%26`, `=` is `%3D`,
//! `#` is `%23`, `,` is `%2C`, `;` is `%3B`. A `+` is a `+`. An
//! `@` behind the address is refused: it would be the end of a password that was not encoded. A raw `,`,
//! `;`, `#` or second
//! `=` in a name or a value is refused too, except in passwords: other libraries write a password behind one. Options follow behind `?`,
//! joined by `&`:
//!
//! | option | values | default | meaning |
//! |---|---|---|---|
//! | `client` | `redis`, `fred` | `redis`, whatever features are on | which client library |
//! | `timeout` | duration | `1s` | longest wait for one answer, in a quorum for that of one node; what else takes time follows from it. Should be four round trips to the servers or more |
//! | `connect_timeout` | duration | `timeout`, at least `1s` | longest wait for one connection with TLS and login, which takes four or five exchanges with the server |
//! | `pubsub` | `auto`, `plain`, `sharded` | `auto` | which pub/sub announces releases; must be the same for all who share locks |
//! | `checks` | `off`, `warn`, `refuse` | `warn` | what to do about findings of the connect-time checks: nothing (and do not look), log them, or refuse if locks could be lost silently |
//! | `connect` | `now`, `lazy` | `now` | whether connecting fails if no server answers; with `lazy` locks fail as not taken until one does, and the checks are made only if one does at once |
//! | `router` | `own`, `client` | `own` | who finds the node of a cluster: Locktopus, or the cluster connection of redis-rs (feature `cluster-async`, without TLS); [when to choose which](https://github.com/locktopus/locktopus/blob/main/docs/routers.md) |
//! | `namespace` | text | empty | put in front of every lock name |
//! | `names` | `plain`, `escaped` | `plain` | whether names may be any bytes ([`NameEncoding`](crate::NameEncoding)); must be the same for all who share locks |
//! | `renewed_lease` | duration | `30s` | lease of locks asked for without one; renewed after a third |
//! | `label` | text of at most 64 characters | none | shown to those who look at locks, with this host and process ([`Label`](crate::Label)) |
//! | `label_host` | text, `off` | the system's name | the host that is shown beside the label; `off`: none |
//! | `token_retention` | duration from `1m`, `forever` | `1d` | how long a token key stays after the last grant ([`TokenRetention`](crate::TokenRetention)); `forever` if Java services use `RFencedLock` on the same names |
//! | `safety` | `plain`, `replicated`, `quarantine` | `plain` | what a grant is worth when a server fails ([`SafetyMode`](crate::SafetyMode)); must be the same for all who share locks |
//! | `replicas` | `one`, `majority`, `all` | `majority` | with `safety=replicated`: how many replicas must confirm a grant; the primary counts towards the majority |
//! | `replication_timeout` | duration | `500ms`, at most half of `timeout` | with `safety=replicated`: how long to wait for the replicas; shorter than `timeout` |
//! | `quarantine_max_lease` | duration | `30s` | with `safety=quarantine`: the longest lease there is, and for how long nothing is granted after a failover; must be the same for all who share the servers. `renewed_lease` is then at most this |
//! | `client_name` | visible ASCII characters without spaces | none | shown by `CLIENT LIST` |
//! | `sentinel_user`, `sentinel_password` | text | none | login for the sentinels |
//! | `ca` | path | system's | PEM file with the authorities to trust |
//! | `cert`, `key` | paths | none | PEM files with a client certificate and its key |
//! | `tls_server_name` | host name | the host of each server | the name that certificates must be for, where servers are reached by addresses that these do not have. One for all servers, and for the sentinels unless they have TLS settings of their own |
//! | `danger_accept_invalid_certs` | `true`, `false` | `false` | accept any certificate |
//! | `sentinel_tls` | `on`, `off` | as the scheme says | whether the sentinels speak TLS, if not all servers do the same |
//! | `sentinel_ca`, `sentinel_cert`, `sentinel_key`, `sentinel_tls_server_name`, `sentinel_danger_accept_invalid_certs` | as without `sentinel_` | as for the servers, if none is given | TLS settings of the sentinels' own; each that is left out has its default then |
//! | `db` | number | `0` | the database, of a unix socket |
//!
//! Features never choose: a URL without `client` means `client=redis` in every build, and where the
//! feature
//! `redis` is off it is an error that says so. Features add up over a program's dependencies, so a default that depends on them would move the users of `fred`
//! to the other client as soon as any crate turns `redis` on.
//!
//! Durations are written like `250ms`, `5s`, `2m`, `7d`. Timeouts are at most an hour, leases and
//! retentions ten years.
//!
//! For a password that expires, leave the login out and give a provider:
//! [`BackendUrl::credentials`].
//!
//! Other schemes are offered by crates of others:
//! [`Connectors`](crate::Connectors). Of the options such a URL has here only `namespace`,
//! `names`, `renewed_lease`, `label`, `label_host` and `checks`; all others are for the connector.
//!
//! Messages show a URL without its login and without the values of `sentinel_password`, `key` and
//! `sentinel_key`. They show a wrong URL only up to its first wrong part, then `***`: a password
//! may stand anywhere behind that. They show nothing of other libraries' connection strings
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
