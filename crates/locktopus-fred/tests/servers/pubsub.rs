//! Subscriptions: delivery, loss, repair.

use crate::common;

use std::time::Duration;

use common::{Hub, call, client, connections, eventually, kill_connections, servers};
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{Channel, ChannelFlavour, ClientError, PushEvent, RedisClient};
use locktopus_servers::topology::{Deployment, TopologyKind};

fn names(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("chan:{{{number}}}"))
        .collect()
}

async fn publish(hub: &Hub, flavour: ChannelFlavour, channel: &str, payload: &str) {
    let command = match flavour {
        ChannelFlavour::Plain => "PUBLISH",
        ChannelFlavour::Sharded => "SPUBLISH",
    };
    common::until_ok(&hub.client, channel, &[command, channel, payload]).await;
}

/// Publishes once on every channel and expects every message.
async fn all_arrive(hub: &Hub, flavour: ChannelFlavour, names: &[String], payload: &str) {
    for name in names {
        publish(hub, flavour, name, payload).await;
    }
    eventually(&format!("all messages {payload}"), async || {
        names.iter().all(|name| hub.count(name, payload) >= 1)
    })
    .await;
}

async fn kill_all(servers: &Deployment) -> usize {
    let mut killed = 0;
    for node in servers.nodes() {
        killed += kill_connections(node, "pubsub").await;
    }
    killed
}

/// The hub alone repairs everything, however often connections are killed.
async fn survives_a_kill(kind: TopologyKind, flavour: ChannelFlavour, count: usize, rounds: usize) {
    let servers = servers(kind).await;
    let names = names(count);
    let hub = Hub::new(client(&servers).await, flavour, &names).await;
    all_arrive(&hub, flavour, &names, "first").await;
    let mut killed = 0;
    for round in 0..rounds {
        killed += kill_all(&servers).await;
        eventually("every connection is rebuilt", async || {
            let reasons = hub.reasons();
            let rebuilt = reasons
                .iter()
                .filter(|reason| reason.ends_with("rebuilt"))
                .count();
            rebuilt >= killed && hub.restored() == reasons.len()
        })
        .await;
        all_arrive(&hub, flavour, &names, &format!("round {round}")).await;
    }
    assert!(killed >= rounds);
}

/// A confirmation right after a kill holds: no later message is missed.
async fn confirmed_after_a_kill(kind: TopologyKind, flavour: ChannelFlavour) {
    let servers = servers(kind).await;
    let names = names(60);
    let hub = Hub::passive(client(&servers).await, flavour, &names).await;
    for round in 0..20 {
        assert!(kill_all(&servers).await >= 1);
        eventually("a confirmation", async || {
            hub.client.subscribe(&hub.wanted).await.is_ok()
        })
        .await;
        all_arrive(&hub, flavour, &names, &format!("round {round}")).await;
    }
}

#[tokio::test]
async fn plain_confirmations_hold_on_standalone() {
    confirmed_after_a_kill(TopologyKind::Standalone, ChannelFlavour::Plain).await;
}

#[tokio::test]
async fn plain_confirmations_hold_on_cluster() {
    confirmed_after_a_kill(TopologyKind::CLUSTER, ChannelFlavour::Plain).await;
}

#[tokio::test]
async fn sharded_confirmations_hold_on_cluster() {
    confirmed_after_a_kill(TopologyKind::CLUSTER, ChannelFlavour::Sharded).await;
}

#[tokio::test]
async fn plain_channels_survive_a_kill_on_standalone() {
    survives_a_kill(TopologyKind::Standalone, ChannelFlavour::Plain, 200, 5).await;
}

#[tokio::test]
async fn plain_channels_survive_a_kill_on_sentinel() {
    survives_a_kill(TopologyKind::SENTINEL, ChannelFlavour::Plain, 20, 3).await;
}

#[tokio::test]
async fn plain_channels_survive_a_kill_on_cluster() {
    survives_a_kill(TopologyKind::CLUSTER, ChannelFlavour::Plain, 60, 5).await;
}

#[tokio::test]
async fn sixty_shard_channels_survive_twenty_kills() {
    survives_a_kill(TopologyKind::CLUSTER, ChannelFlavour::Sharded, 60, 20).await;
}

#[tokio::test]
async fn a_confirmed_subscription_misses_nothing() {
    let servers = servers(TopologyKind::CLUSTER).await;
    let client = client(&servers).await;
    let mut events = client.take_events().unwrap();
    assert!(client.take_events().is_none());
    for number in 0..200 {
        let name = format!("{{{number}}}once");
        let flavour = if number % 2 == 0 {
            ChannelFlavour::Plain
        } else {
            ChannelFlavour::Sharded
        };
        let channel = Channel {
            name: name.clone().into(),
            flavour,
        };
        let verb = if number % 2 == 0 {
            "PUBLISH"
        } else {
            "SPUBLISH"
        };
        client
            .subscribe(std::slice::from_ref(&channel))
            .await
            .unwrap();
        call(&client, &name, &[verb, &name, "hello"]).await.unwrap();
        let event = tokio::time::timeout(Duration::from_secs(2), events.recv()).await;
        let expected = PushEvent::Message {
            channel: name.into(),
            payload: "hello".into(),
        };
        assert_eq!(event.unwrap(), Some(expected));
        client
            .unsubscribe(std::slice::from_ref(&channel))
            .await
            .unwrap();
    }
    client.close().await;
    assert!(client.subscribe(&[]).await.is_err());
}

#[tokio::test]
async fn a_server_that_freezes_is_noticed_without_traffic() {
    let servers = servers(TopologyKind::Standalone).await;
    let names = names(3);
    let hub = Hub::new(client(&servers).await, ChannelFlavour::Plain, &names).await;
    servers.nodes()[0].freeze().await.unwrap();
    eventually("the loss is noticed", async || !hub.reasons().is_empty()).await;
    servers.nodes()[0].thaw().await.unwrap();
    eventually("subscribed again", async || hub.restored() > 0).await;
    all_arrive(&hub, ChannelFlavour::Plain, &names, "after").await;
}

#[tokio::test]
async fn a_slot_that_moves_takes_its_channels_along() {
    let servers = servers(TopologyKind::CLUSTER).await;
    let name = "{moving}channel".to_owned();
    let slot = key_slot(name.as_bytes()).to_string();
    let names = vec![name.clone()];
    let hub = Hub::new(client(&servers).await, ChannelFlavour::Sharded, &names).await;
    all_arrive(&hub, ChannelFlavour::Sharded, &names, "before").await;

    let source = servers.primary_for(&name).await.unwrap();
    let mut primaries = servers.nodes()[..3].iter();
    let target = primaries.find(|node| node.addr() != source.addr()).unwrap();
    let source_id = source.command(&["CLUSTER", "MYID"]).await.unwrap().text();
    let target_id = target.command(&["CLUSTER", "MYID"]).await.unwrap().text();
    source.command(&["SET", &name, "0"]).await.unwrap();
    let importing = ["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id];
    target.command(&importing).await.unwrap();
    let migrating = ["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id];
    source.command(&migrating).await.unwrap();
    // A script over an existing and a missing key can run on neither node.
    let two = ["EVAL", "return 1", "2", &name, "{moving}elsewhere"];
    let refused = call(&hub.client, &name, &two).await;
    assert!(
        matches!(&refused, Err(ClientError::Rejected { code, .. }) if code == "TRYAGAIN"),
        "{refused:?}"
    );
    source.command(&["DEL", &name]).await.unwrap();
    // A key that has left the source is answered with ASK.
    let set = call(&hub.client, &name, &["SET", &name, "1"]).await;
    assert_eq!(set, Ok(common::bytes("OK")));
    for node in [target, source] {
        node.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &target_id])
            .await
            .unwrap();
    }

    eventually("the move is noticed", async || hub.restored() > 0).await;
    all_arrive(&hub, ChannelFlavour::Sharded, &names, "after").await;
    assert_eq!(
        call(&hub.client, &name, &["GET", &name]).await,
        Ok(common::bytes("1"))
    );
    assert_eq!(connections(target, "pubsub").await.len(), 1);
}
