//! Opens the byte stream to a server: TCP, TLS over TCP, or a unix socket.
//!
//! redis-rs could open it, but takes its cryptography from the process-wide default, which a
//! library must not set.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::select_ok;
use locktopus_protocol::HostPort;
use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};

use crate::connection::tls::Tls;

/// How long a peer may be silent before the kernel probes it.
const SILENCE: Duration = Duration::from_secs(5);

/// A plain TCP stream, or TLS over one.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

pub(crate) type Stream = Box<dyn Duplex>;

/// An address that a server's name resolves to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    /// The unix socket at the path that is the name.
    Socket,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Socket => f.write_str("the unix socket"),
        }
    }
}

/// Resolves a name. Returns at least one address.
pub(crate) async fn addresses(server: &HostPort) -> redis::RedisResult<Vec<Address>> {
    if server.socket_path().is_some() {
        return Ok(vec![Address::Socket]);
    }
    #[cfg(test)]
    if let Some(known) = names::addresses(&server.host) {
        return Ok(known);
    }
    let found = lookup_host((server.host.as_str(), server.port)).await?;
    let mut addresses: Vec<_> = found.map(Address::Tcp).collect();
    addresses.dedup();
    if addresses.is_empty() {
        let message = "the name has no address";
        return Err(io::Error::new(io::ErrorKind::NotFound, message).into());
    }
    Ok(addresses)
}

/// Connects to the first address that answers.
pub(crate) async fn open(
    server: &HostPort,
    addresses: &[Address],
    tls: Option<&Tls>,
) -> io::Result<(Stream, Address)> {
    let attempts = addresses.iter().map(|address| {
        Box::pin(async move { Ok((connect(server, address, tls).await?, *address)) })
    });
    select_ok(attempts).await.map(|(opened, _others)| opened)
}

async fn connect(server: &HostPort, address: &Address, tls: Option<&Tls>) -> io::Result<Stream> {
    let stream = match address {
        Address::Tcp(address) => TcpStream::connect(address).await?,
        Address::Socket => return socket(server.socket_path().unwrap_or_default()).await,
    };
    configure(&stream)?;
    match tls {
        None => Ok(Box::new(stream)),
        Some(tls) => tls.wrap(&server.host, stream).await,
    }
}

#[cfg(unix)]
async fn socket(path: &str) -> io::Result<Stream> {
    Ok(Box::new(tokio::net::UnixStream::connect(path).await?))
}

#[cfg(not(unix))]
async fn socket(_: &str) -> io::Result<Stream> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The same TCP settings, for connections that redis-rs makes.
#[cfg(feature = "cluster-async")]
pub(crate) fn settings() -> redis::io::tcp::TcpSettings {
    let settings = redis::io::tcp::TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive());
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let settings = settings.set_user_timeout(SILENCE * 2);
    settings
}

fn keepalive() -> TcpKeepalive {
    TcpKeepalive::new()
        .with_time(SILENCE)
        .with_interval(SILENCE / 2)
}

fn configure(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&keepalive())?;
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    socket.set_tcp_user_timeout(Some(SILENCE * 2))?;
    Ok(())
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
        let mut names = lock(&NAMES);
        names
            .get_or_insert_default()
            .insert(host.to_owned(), addresses);
    }

    pub(super) fn addresses(host: &str) -> Option<Vec<Address>> {
        lock(&NAMES).as_ref()?.get(host).cloned()
    }
}
