//! Resolves a server's name to all its addresses. fred would take the first that accepts.

use std::fmt;
use std::net::SocketAddr;

use locktopus_protocol::HostPort;
use tokio::net::lookup_host;

/// An address that a name resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    /// The path of a unix socket.
    #[cfg(unix)]
    Socket(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            #[cfg(unix)]
            Self::Socket(path) => f.write_str(path),
        }
    }
}

/// Resolves a name. Returns at least one address. The error is one line for people.
pub(crate) async fn all(node: &HostPort) -> Result<Vec<Address>, String> {
    #[cfg(unix)]
    if let Some(path) = node.socket_path() {
        return Ok(vec![Address::Socket(path.to_owned())]);
    }
    #[cfg(test)]
    if let Some(known) = names::addresses(&node.host) {
        return Ok(known);
    }
    let found = lookup_host((node.host.as_str(), node.port)).await;
    let found = found.map_err(|error| error.to_string())?;
    let mut addresses: Vec<_> = found.map(Address::Tcp).collect();
    addresses.dedup();
    if addresses.is_empty() {
        return Err("the name has no address".to_owned());
    }
    Ok(addresses)
}

/// Host names known only to tests.
#[cfg(test)]
pub(crate) mod names {
    use std::collections::HashMap;
    use std::net::SocketAddr;
    use std::sync::Mutex;

    use locktopus_protocol::lock;

    use super::Address;

    static NAMES: Mutex<Option<HashMap<String, Vec<Address>>>> = Mutex::new(None);

    pub(crate) fn set(host: &str, addresses: &[SocketAddr]) {
        let addresses = addresses.iter().copied().map(Address::Tcp).collect();
        lock(&NAMES)
            .get_or_insert_default()
            .insert(host.to_owned(), addresses);
    }

    pub(super) fn addresses(host: &str) -> Option<Vec<Address>> {
        lock(&NAMES).as_ref()?.get(host).cloned()
    }
}
