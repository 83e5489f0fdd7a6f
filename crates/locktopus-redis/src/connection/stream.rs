//! The bytes to and from one server: TCP with its options, and TLS on top of it; or a unix socket.
//!
//! redis-rs could open a connection by itself, but takes the cryptography for it from the process-wide default, which a
//! library must not set.

use std::io;
use std::time::Duration;

use futures_util::future::select_ok;
use locktopus_protocol::HostPort;
use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};

use crate::connection::duplex::Stream;
use crate::connection::tls::Tls;

/// How long a peer may be silent before the kernel asks whether it is still there.
const SILENCE: Duration = Duration::from_secs(5);

/// Connects to whichever address of the server answers first.
pub(crate) async fn open(server: &HostPort, tls: Option<&Tls>) -> io::Result<Stream> {
    if let Some(path) = server.socket_path() {
        return socket(path).await;
    }
    let addresses = lookup_host((server.host.as_str(), server.port)).await?;
    let attempts: Vec<_> = addresses
        .map(|address| {
            Box::pin(async move {
                let stream = TcpStream::connect(address).await?;
                configure(&stream)?;
                match tls {
                    None => Ok(Box::new(stream) as Stream),
                    Some(tls) => tls.wrap(&server.host, stream).await,
                }
            })
        })
        .collect();
    if attempts.is_empty() {
        let message = "the name has no address";
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    select_ok(attempts).await.map(|(stream, _others)| stream)
}

#[cfg(unix)]
async fn socket(path: &str) -> io::Result<Stream> {
    Ok(Box::new(tokio::net::UnixStream::connect(path).await?))
}

#[cfg(not(unix))]
async fn socket(_: &str) -> io::Result<Stream> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The same for connections that redis-rs makes.
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
