//! A program that must use a certain cryptography library installs its provider, and connections to
//! servers use that one.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::future_not_send,
    reason = "helpers of tests are tests too"
)]

#[path = "suite/common/mod.rs"]
mod common;

use std::sync::atomic::{AtomicU32, Ordering};

use common::{CLIENTS, close, connect, servers, unique, url};
use locktopus_servers::topology::TopologyKind;
use rustls::crypto::{CryptoProvider, GetRandomFailed, SecureRandom, ring};

/// How often rustls used the program's own source of random numbers.
static ASKED: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
struct Counted(&'static dyn SecureRandom);

impl SecureRandom for Counted {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        ASKED.fetch_add(1, Ordering::Relaxed);
        self.0.fill(bytes)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_programs_own_is_used() {
    let usual = ring::default_provider();
    let own = CryptoProvider {
        secure_random: Box::leak(Box::new(Counted(usual.secure_random))),
        ..usual
    };
    own.install_default().unwrap();
    let place = servers(TopologyKind::Tls).await;
    let ca = place.tls().unwrap().ca.display().to_string();
    let base = format!("rediss://127.0.0.1:{}", place.nodes()[0].addr().port());
    for client in CLIENTS {
        let before = ASKED.load(Ordering::Relaxed);
        let options = format!("client={client}&connect_timeout=5s&ca={ca}");
        let locks = connect(&url(&base, &options)).await;
        let guard = locks.lock(unique("tls")).acquire().await.unwrap();
        guard.release().await.unwrap();
        close(locks).await;
        assert!(
            ASKED.load(Ordering::Relaxed) > before,
            "{client} used another provider"
        );
    }
}
