//! Which servers a client trusts.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use locktopus::ConnectError;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::common::{chain, close, connect, unique, url};
use crate::security::At;

/// Connecting is limited to a fraction of this; the rest is for a busy machine.
const BOUND: Duration = Duration::from_secs(15);
/// A slow handshake is fine, unless the time limit is under test.
const PATIENT: &str = "connect_timeout=5s";

async fn works(url: &str) {
    let locks = connect(url).await;
    let guard = locks.lock(unique("tls")).acquire().await.unwrap();
    guard.release().await.unwrap();
    close(locks).await;
}

/// The error text of a connect that must fail in bounded time.
pub(crate) async fn refused(url: &str) -> String {
    let begun = Instant::now();
    let error = match locktopus::connect(url).await {
        Ok(_) => panic!("{url}: connected"),
        Err(error) => error,
    };
    assert!(begun.elapsed() < BOUND, "{url}: {:?}", begun.elapsed());
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "{error:?}"
    );
    format!("{} ({:.0?})", chain(&error), begun.elapsed())
}

fn base((place, client): &At, scheme: &str, host: &str) -> String {
    let port = place.nodes()[0].addr().port();
    format!("{scheme}://{host}:{port}?client={client}")
}

fn trusting(base: &str, authority: &Path) -> String {
    url(base, &format!("{PATIENT}&ca={}", authority.display()))
}

fn trusting_anybody(base: &str) -> String {
    url(base, &format!("{PATIENT}&danger_accept_invalid_certs=true"))
}

pub(crate) async fn right_authority(at: At) -> String {
    let ca = &at.0.tls().unwrap().ca;
    works(&trusting(&base(&at, "rediss", "127.0.0.1"), ca)).await;
    works(&trusting(&base(&at, "rediss", "localhost"), ca)).await;
    "by name and by address".to_owned()
}

pub(crate) async fn wrong_authority(at: At) -> String {
    let here = base(&at, "rediss", "127.0.0.1");
    let said = refused(&trusting(&here, &at.0.tls().unwrap().untrusted_ca)).await;
    assert!(names_the_certificate(&said), "{said}");
    // The system does not trust a new authority either.
    let by_system = refused(&url(&here, PATIENT)).await;
    assert!(names_the_certificate(&by_system), "{by_system}");
    said
}

/// Relays bytes from another address of this machine, as a load balancer does.
pub(crate) async fn relay_to(server: SocketAddr) -> (u16, JoinHandle<()>) {
    let relay = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = relay.local_addr().unwrap().port();
    let relaying = tokio::spawn(async move {
        while let Ok((mut inward, _)) = relay.accept().await {
            tokio::spawn(async move {
                let mut outward = TcpStream::connect(server).await.unwrap();
                // It ends when either side does, for any reason.
                let _ = tokio::io::copy_bidirectional(&mut inward, &mut outward).await;
            });
        }
    });
    (port, relaying)
}

/// The certificate is valid, for another address of the same machine.
pub(crate) async fn wrong_name(at: At) -> String {
    let (port, relaying) = relay_to(at.0.nodes()[0].addr()).await;
    let here = format!("rediss://127.0.0.2:{port}?client={}", at.1);
    let said = refused(&trusting(&here, &at.0.tls().unwrap().ca)).await;
    assert!(names_the_certificate(&said), "{said}");
    works(&trusting_anybody(&here)).await;
    relaying.abort();
    said
}

fn names_the_certificate(said: &str) -> bool {
    said.to_lowercase().contains("certificate")
}

pub(crate) async fn danger(at: At) -> String {
    let here = base(&at, "rediss", "127.0.0.1");
    works(&trusting_anybody(&here)).await;
    "accepted".to_owned()
}

pub(crate) async fn plain_text(at: At) -> String {
    let plain = refused(&base(&at, "redis", "127.0.0.1")).await;
    // The other way round: TLS to the plain port of the same server.
    let port = at.0.nodes()[0].admin_addr().port();
    let encrypted = refused(&format!("rediss://127.0.0.1:{port}?client={}", at.1)).await;
    for said in [&plain, &encrypted] {
        assert!(said.contains("127.0.0.1"), "{said}");
    }
    format!("{plain}; and {encrypted}")
}
