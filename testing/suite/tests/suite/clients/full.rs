//! A server that has reached its limit of clients.

use locktopus_servers::topology::{Knobs, TopologyKind};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::common::{LONG, chain, eventually, servers_with, url_for};

pub(crate) async fn says_so(client: &'static str) -> String {
    let place = servers_with(TopologyKind::Standalone, Knobs::default()).await;
    let node = &place.nodes()[0];
    node.command(&["CONFIG", "SET", "maxclients", "1"])
        .await
        .unwrap();
    // The first connection stays.
    let held = eventually("a place is taken", LONG, async || {
        let mut stream = TcpStream::connect(node.addr()).await.unwrap();
        let mut said = [0; 1];
        let refused = tokio::time::timeout(
            std::time::Duration::from_millis(200),
            stream.read(&mut said),
        );
        if refused.await.is_err() {
            Ok(stream)
        } else {
            Err("refused")
        }
    })
    .await;
    let mut said = String::new();
    for _ in 0..10 {
        let refused = locktopus::connect(&url_for(&place, client)).await;
        said = chain(&refused.map(drop).unwrap_err());
        assert!(
            said.contains("maxclients") || said.contains("max number of clients"),
            "{said}"
        );
    }
    drop(held);
    said
}
