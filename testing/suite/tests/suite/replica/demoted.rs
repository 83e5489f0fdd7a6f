//! A primary becomes a replica and still answers, behind an address that leads to the new primary
//! from then on.

use std::time::Duration;

use locktopus_servers::topology::{Node, Role, TopologyKind, Vip};
use tokio::time::Instant;

use crate::common::{LONG, becomes, close_both, eventually, servers};
use crate::replica::misled::{connect, handed, inboxes, listens_once};

/// Servers without sentinels.
const SERVERS: TopologyKind = TopologyKind::Quorum { nodes: 2 };

/// How long a subscription may stay on the wrong server.
const NOTICED: Duration = Duration::from_secs(5);

pub(crate) async fn behind_one_address(client: &'static str) -> String {
    let place = servers(SERVERS).await;
    let (old, new) = (&place.nodes()[0], &place.nodes()[1]);
    follow(new, old).await;
    let vip = Vip::start(old.addr()).await.unwrap();
    let locks = connect(vip.addr(), client, "").await;
    listens_once(&locks, old).await;

    // An orderly swap that closes no connection.
    new.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    vip.point_at(new.addr());
    follow(old, new).await;
    let begun = Instant::now();

    // The old one refuses writes, so commands go to the new one from then on, and subscriptions
    // follow.
    let passing = locks.lock("any").acquire().await.unwrap();
    passing.release().await.unwrap();
    let direct = connect(new.addr(), client, "").await;
    handed(&direct, &locks, new).await;
    let found = begun.elapsed();
    assert!(found < NOTICED + LONG / 4, "after {found:?}");
    assert_eq!(
        inboxes(old).await,
        0,
        "somebody still listens to the old one"
    );
    assert_eq!(
        vip.connections_to(old.addr()),
        0,
        "a connection to the old one is left"
    );

    // Swapped back without any notice: the client finds out all the same.
    old.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    vip.point_at(old.addr());
    follow(new, old).await;
    let begun = Instant::now();
    eventually(
        "the connection for messages to be given up",
        LONG,
        async || {
            // The connection for commands stays until a command is refused.
            match vip.connections_to(new.addr()) {
                0 | 1 => Ok(()),
                more => Err(more),
            }
        },
    )
    .await;
    let idle = begun.elapsed();
    close_both(direct, locks).await;
    place.stop().await.unwrap();
    format!("found after {found:.1?}, and without any command after {idle:.1?}")
}

async fn follow(replica: &Node, primary: &Node) {
    let port = primary.addr().port().to_string();
    replica
        .command(&["REPLICAOF", "127.0.0.1", &port])
        .await
        .unwrap();
    let linked = Role::Replica { linked: true };
    let role = async || replica.role().await.unwrap();
    becomes("a replica that is up to date", LONG, linked, role).await;
}
