//! The program chooses the cryptography provider of its process. This test is a program of its own,
//! because a process has only one provider.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::future_not_send,
    reason = "helpers of tests are tests too"
)]

#[path = "suite/common/mod.rs"]
mod common;

use common::{CLIENTS, close, connect, servers, unique, url};
use locktopus_servers::topology::TopologyKind;
use rustls::crypto::CryptoProvider;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn none_is_installed() {
    let place = servers(TopologyKind::Tls).await;
    let ca = &place.tls().unwrap().ca;
    let base = format!("rediss://127.0.0.1:{}", place.nodes()[0].addr().port());
    for client in CLIENTS {
        for trust in [
            format!("ca={}", ca.display()),
            "danger_accept_invalid_certs=true".to_owned(),
        ] {
            let options = format!("client={client}&connect_timeout=5s&{trust}");
            let locks = connect(&url(&base, &options)).await;
            let guard = locks.lock(unique("tls")).acquire().await.unwrap();
            guard.release().await.unwrap();
            close(locks).await;
            assert!(
                CryptoProvider::get_default().is_none(),
                "{client} installed a provider"
            );
        }
    }
    // So the program can still choose.
    rustls::crypto::ring::default_provider()
        .install_default()
        .unwrap();
}
