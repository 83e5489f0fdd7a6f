//! TLS that a program has configured, and the names that certificates must carry.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locktopus::fred::fred::types::config::{Config, Server, ServerConfig, TlsConnector};
use locktopus::redis::redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo,
};
use locktopus_servers::topology::Deployment;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig as TlsServer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::common::{chain, close, connect, url_for};
use crate::own_client::{PASSWORD, USER, lock_once, refused, works_as};
use crate::security::tls::relay_to;

pub(crate) async fn own_settings(place: &Deployment) {
    let (node, files) = (&place.nodes()[0], place.tls().unwrap());
    let addr = node.addr();
    let ca = |path: &Path| format!("ca={}", path.display());

    // redis-rs does not show which certificates it trusts, only whether it checks them.
    let of = |insecure| locktopus::redis::from_connection_info(&info(addr, insecure));
    works_as(node, of(true), 3).await;
    works_as(node, of(false).options(&ca(&files.ca)), 3).await;
    works_as(node, of(false).rustls(Arc::new(trusting(&files.ca))), 3).await;
    for said in [
        refused(of(false)).await,
        refused(of(false).options(&ca(&files.untrusted_ca))).await,
        refused(of(true).rustls(Arc::new(trusting(&files.untrusted_ca)))).await,
    ] {
        assert!(said.to_lowercase().contains("certificate"), "{said}");
    }
    let plain = ConnectionAddr::Tcp(addr.ip().to_string(), addr.port());
    let plain = plain.into_connection_info().unwrap();
    let plain = locktopus::redis::from_connection_info(&plain);
    let said = refused(plain.rustls(Arc::new(trusting(&files.ca)))).await;
    assert!(said.contains("does not use TLS"), "{said}");

    // A fred configuration is used unchanged.
    let config = |ca| Config {
        username: Some(USER.to_owned()),
        password: Some(PASSWORD.to_owned()),
        database: Some(3),
        server: ServerConfig::Centralized {
            server: Server::new(addr.ip().to_string(), addr.port()),
        },
        tls: Some(TlsConnector::from(trusting(ca)).into()),
        ..Config::default()
    };
    works_as(node, locktopus::fred::from_config(&config(&files.ca)), 3).await;
    let wrong = locktopus::fred::from_config(&config(&files.untrusted_ca));
    let said = refused(wrong.clone()).await;
    assert!(said.to_lowercase().contains("certificate"), "{said}");
    // But an option overrides it.
    works_as(node, wrong.options(&ca(&files.ca)), 3).await;
}

fn info(addr: SocketAddr, insecure: bool) -> ConnectionInfo {
    let login = RedisConnectionInfo::default()
        .set_username(USER)
        .set_password(PASSWORD)
        .set_db(3);
    let addr = ConnectionAddr::TcpTls {
        host: addr.ip().to_string(),
        port: addr.port(),
        insecure,
        tls_params: None,
    };
    addr.into_connection_info()
        .unwrap()
        .set_redis_settings(login)
}

/// The certificate names another address of this machine than the one of the connection.
pub(crate) async fn another_name(place: &Deployment, client: &str) {
    let (port, relaying) = relay_to(place.nodes()[0].addr()).await;
    let ca = place.tls().unwrap().ca.display().to_string();
    let url = |name: &str| {
        format!("rediss://127.0.0.2:{port}?client={client}&connect_timeout=5s&ca={ca}{name}")
    };
    for wrong in [
        url(""),
        url("&tls_server_name=elsewhere"),
        url("&tls_server_name=a%20b"),
    ] {
        let error = locktopus::connect(&wrong).await.unwrap_err();
        let said = chain(&error).to_lowercase();
        let named = ["certificate", "server name", "dns name", "dnsname"];
        assert!(
            named.iter().any(|word| said.contains(word)),
            "{wrong}: {said}"
        );
    }
    let locks = connect(&url("&tls_server_name=localhost")).await;
    lock_once(&locks).await;
    close(locks).await;
    relaying.abort();
}

/// The sentinels use TLS, the servers do not.
pub(crate) async fn only_sentinels(certificates: &Deployment, place: &Deployment, client: &str) {
    let sentinel = place.sentinels()[0].addr();
    let relay = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = relay.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(serving(certificates.run_dir())));
    let relaying = tokio::spawn(async move {
        while let Ok((inward, _)) = relay.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut inward) = acceptor.accept(inward).await else {
                    return;
                };
                let mut outward = TcpStream::connect(sentinel).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut inward, &mut outward).await;
            });
        }
    });
    let files = certificates.tls().unwrap();
    let (master, ca) = (place.master_name(), files.ca.display());
    let url = |options: &str| {
        format!("redis-sentinel://{at}/{master}?client={client}&connect_timeout=5s{options}")
    };
    let locks = connect(&url(&format!("&sentinel_ca={ca}"))).await;
    lock_once(&locks).await;
    close(locks).await;
    let stranger = files.untrusted_ca.display();
    for wrong in [
        url(""),
        url("&sentinel_tls=on"),
        url(&format!("&sentinel_ca={stranger}")),
        url(&format!(
            "&sentinel_ca={ca}&sentinel_tls_server_name=elsewhere"
        )),
    ] {
        let error = locktopus::connect(&wrong).await.unwrap_err();
        assert!(chain(&error).contains(&at.to_string()), "{}", chain(&error));
    }
    // The other way round: the servers use TLS, and the sentinels do not. This sentinel then names
    // a server without TLS, which shows that the client asked it.
    let off =
        format!("rediss-sentinel://{sentinel}/{master}?client={client}&ca={ca}&sentinel_tls=off");
    let said = chain(&locktopus::connect(&off).await.unwrap_err());
    let server = place.nodes()[0].addr().to_string();
    assert!(said.contains(&server), "{said}");
    relaying.abort();
}

/// All use TLS. The primary that the sentinels name must have the requested name, and they may have
/// another.
pub(crate) async fn a_named_primary(place: &Deployment, client: &str) {
    let (sentinel, server) = (place.sentinels()[0].addr(), place.nodes()[0].addr());
    let own = format!("&sentinel_ca={}", place.tls().unwrap().ca.display());
    let url = |options: &str| format!("{}{options}", url_for(place, client));
    for right in [
        "&tls_server_name=localhost".to_owned(),
        format!("&tls_server_name=localhost{own}"),
        format!("{own}&sentinel_tls_server_name=localhost"),
    ] {
        let locks = connect(&url(&right)).await;
        lock_once(&locks).await;
        close(locks).await;
    }
    for (wrong, whose) in [
        ("&tls_server_name=elsewhere".to_owned(), sentinel),
        (format!("&tls_server_name=elsewhere{own}"), server),
        (
            format!("{own}&sentinel_tls_server_name=elsewhere"),
            sentinel,
        ),
    ] {
        let error = locktopus::connect(&url(&wrong)).await.unwrap_err();
        let said = chain(&error);
        let certificate = said.to_lowercase().contains("certificate");
        assert!(
            certificate && said.contains(&whose.to_string()),
            "{wrong}: {said}"
        );
    }
}

fn trusting(ca: &Path) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// With the certificate of the servers that run in this directory.
fn serving(run_dir: &Path) -> TlsServer {
    let chain = CertificateDer::pem_file_iter(found(run_dir, "server.pem").unwrap()).unwrap();
    let key = PrivateKeyDer::from_pem_file(found(run_dir, "server.key").unwrap()).unwrap();
    TlsServer::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.collect::<Result<_, _>>().unwrap(), key)
        .unwrap()
}

fn found(dir: &Path, name: &str) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(dir).ok()?.flatten();
    entries.find_map(|entry| match entry.path() {
        path if path.is_dir() => found(&path, name),
        path if path.ends_with(name) => Some(path),
        _ => None,
    })
}
