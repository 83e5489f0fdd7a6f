//! Requests whose futures are dropped after one poll, faster than the server answers.

use futures_util::FutureExt as _;
use locktopus::client::{ClientError, Reply, Route};
use locktopus_servers::topology::TopologyKind;

use crate::clients::deaf::counted;
use crate::common::{LONG, connect, eventually, plain_url_for, servers, unique};

/// How many, while the server does not answer.
const DROPPED: usize = 20_000;

pub(crate) async fn leave_no_backlog(client: &'static str) -> String {
    let place = servers(TopologyKind::Standalone).await;
    let node = &place.nodes()[0];
    let url = plain_url_for(&place, client);
    let connected = locktopus::connect_client(&url).await.unwrap();
    let payload = [b'x'; 1024];
    node.freeze().await.unwrap();
    for at in 0..DROPPED {
        let request: [&[u8]; 3] = [b"SET", b"k", &payload];
        let polled = connected.command(Route::Any, &request).now_or_never();
        assert!(polled.is_none(), "{polled:?}");
        if at % 20 == 0 {
            // The client's own tasks send what they have.
            tokio::task::yield_now().await;
        }
    }
    node.thaw().await.unwrap();
    // Behind all others, whose number is bounded, so the answer comes soon.
    let pong = eventually("an answer", LONG, async || {
        match connected.command(Route::Any, &[b"PING"]).await {
            Ok(Reply::Bytes(pong)) => Ok(pong),
            Ok(other) => Err(ClientError::NotSent(format!("{other:?}"))),
            Err(error) => Err(error),
        }
    })
    .await;
    assert_eq!(pong, "PONG");
    let ran = counted(node, "set", "calls=").await as usize;
    assert!(ran < DROPPED / 2, "{ran} of {DROPPED} were sent");
    connected.close().await;
    format!("{ran} of {DROPPED} were sent")
}

/// Each acquisition is for its own lock. Requests that were never sent need no clean-up.
pub(crate) async fn owe_little(client: &'static str) -> String {
    let place = servers(TopologyKind::Standalone).await;
    let node = &place.nodes()[0];
    let locks = connect(&plain_url_for(&place, client)).await;
    let name = unique("dropped");
    node.freeze().await.unwrap();
    for at in 0..DROPPED {
        let lock = locks.lock(format!("{name}:{at}"));
        drop(lock.acquire().now_or_never());
        if at % 20 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let owed = locks.background_tasks();
    node.thaw().await.unwrap();
    // A new acquisition waits its turn, and gets it.
    let guard = locks.lock(&name).wait_at_most(LONG).acquire().await;
    guard.unwrap().release().await.unwrap();
    assert_eq!(locks.shutdown(LONG).await.abandoned, 0);
    assert!((1..=1_100).contains(&owed), "{owed} are owed");
    let left = node.command(&["KEYS", &format!("{name}*")]).await.unwrap();
    assert!(left.items().is_empty(), "{left:?}");
    format!("{owed} releases were owed")
}
