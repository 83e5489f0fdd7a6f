//! Requests whose futures are dropped as soon as they were polled, faster than the server answers.

use futures_util::FutureExt as _;
use locktopus::client::{ClientError, Reply, Route};
use locktopus_testbed::topology::TopologyKind;

use crate::common::{LONG, eventually, plain_url_for, servers};

/// So many, while the server says nothing.
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
            // The client's own tasks write what they have.
            tokio::task::yield_now().await;
        }
    }
    node.thaw().await.unwrap();
    // Behind all others, whose number is bounded, so that it is answered soon.
    let pong = eventually("an answer", LONG, async || {
        match connected.command(Route::Any, &[b"PING"]).await {
            Ok(Reply::Bytes(pong)) => Ok(pong),
            Ok(other) => Err(ClientError::NotSent(format!("{other:?}"))),
            Err(error) => Err(error),
        }
    })
    .await;
    assert_eq!(pong, "PONG");
    let stats = node
        .info("commandstats", "cmdstat_set")
        .await
        .unwrap()
        .unwrap_or_default();
    let ran = stats
        .split(',')
        .find_map(|part| part.strip_prefix("calls="));
    let ran: usize = ran.map_or(0, |calls| calls.parse().unwrap());
    assert!(
        ran < DROPPED / 2,
        "{ran} of {DROPPED} that nobody waited for were sent"
    );
    connected.close().await;
    format!("{ran} of {DROPPED} were sent")
}
