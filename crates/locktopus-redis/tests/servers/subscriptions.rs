//! Subscriptions deliver messages, report losses, and work again after resubscribing.
//!
//! The tests play the layer above: on [`PushEvent::Disrupted`] they resubscribe to everything.

use crate::common;

use std::time::Duration;

use common::*;
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{Channel, ChannelFlavour, PushEvent, RedisClient};
use locktopus_redis::RedisRsClient;
use locktopus_servers::topology::{Deployment, TopologyKind};
use tokio::time::{Instant, sleep, timeout};

use ChannelFlavour::{Plain, Sharded};

/// Publishes on every channel and waits until each message has arrived.
async fn all_heard(
    client: &RedisRsClient,
    events: &mut tokio::sync::mpsc::UnboundedReceiver<PushEvent>,
    channels: &[Channel],
) {
    let names: Vec<_> = channels
        .iter()
        .map(|channel| String::from_utf8(channel.name.to_vec()).unwrap())
        .collect();
    for (channel, name) in channels.iter().zip(&names) {
        let command = if channel.flavour == Sharded {
            "SPUBLISH"
        } else {
            "PUBLISH"
        };
        eventually("publishing", async || {
            call(client, name, &[command, name, "1"]).await
        })
        .await;
    }
    hear_all(events, &names).await;
}

fn sixty(flavour: ChannelFlavour) -> Vec<Channel> {
    (0..60)
        .map(|number| channel(&format!("ch:{{{number}}}"), flavour))
        .collect()
}

async fn messages(kind: TopologyKind, flavour: ChannelFlavour) {
    let servers = servers(kind).await;
    let client = client(&servers).await;
    let mut events = client.take_events().unwrap();
    let channels = sixty(flavour);
    client.subscribe(&[]).await.unwrap();
    client.subscribe(&channels).await.unwrap();
    // Subscribing again must be harmless.
    client.subscribe(&channels[..10]).await.unwrap();
    all_heard(&client, &mut events, &channels).await;

    let (gone, kept) = channels.split_at(30);
    client.unsubscribe(gone).await.unwrap();
    let command = if flavour == Sharded {
        "SPUBLISH"
    } else {
        "PUBLISH"
    };
    for channel in gone {
        let name = std::str::from_utf8(&channel.name).unwrap();
        call(&client, name, &[command, name, "2"]).await.unwrap();
    }
    // Anything published earlier would have arrived before these.
    let names: Vec<_> = kept
        .iter()
        .map(|channel| String::from_utf8(channel.name.to_vec()).unwrap())
        .collect();
    for name in &names {
        call(&client, name, &[command, name, "3"]).await.unwrap();
    }
    let mut missing = names.clone();
    while !missing.is_empty() {
        match timeout(LONG, events.recv()).await.unwrap().unwrap() {
            PushEvent::Message { channel, payload } => {
                assert_eq!(payload, "3");
                missing.retain(|name| channel != name.as_bytes());
            }
            other @ PushEvent::Disrupted { .. } => panic!("{other:?}"),
        }
    }
    // Repeated unsubscribing and subscribing leaves no trace.
    for _ in 0..20 {
        client.unsubscribe(kept).await.unwrap();
        client.subscribe(kept).await.unwrap();
    }
    assert!(events.try_recv().is_err());
    all_heard(&client, &mut events, kept).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_standalone() {
    messages(TopologyKind::Standalone, Plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_sentinel() {
    messages(WATCHED, Plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_cluster_plain() {
    messages(SHARDS, Plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_cluster_sharded() {
    messages(SHARDS, Sharded).await;
}

async fn kill_subscribers(servers: &Deployment) {
    for node in servers.nodes() {
        node.command(&["CLIENT", "KILL", "TYPE", "pubsub"])
            .await
            .unwrap();
    }
}

/// The connection breaks while the client is idle.
async fn cut(kind: TopologyKind, flavour: ChannelFlavour) {
    let servers = servers(kind).await;
    let client = client(&servers).await;
    let mut events = client.take_events().unwrap();
    let channels = sixty(flavour);
    client.subscribe(&channels).await.unwrap();
    all_heard(&client, &mut events, &channels).await;
    for _ in 0..3 {
        kill_subscribers(&servers).await;
        let since = Instant::now();
        disrupted(&mut events).await;
        assert!(
            since.elapsed() < Duration::from_millis(500),
            "{:?}",
            since.elapsed()
        );
        subscribe_again(&client, &channels).await;
        all_heard(&client, &mut events, &channels).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_standalone() {
    cut(TopologyKind::Standalone, Plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_cluster_plain() {
    cut(SHARDS, Plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_cluster_sharded() {
    cut(SHARDS, Sharded).await;
}

/// The connection to one of three nodes breaks. Its shard channels come back, the others stay.
#[tokio::test(flavor = "multi_thread")]
async fn sixty_shard_channels_survive_a_cut() {
    let servers = servers(SHARDS).await;
    let client = client(&servers).await;
    let mut events = client.take_events().unwrap();
    let channels = sixty(Sharded);
    client.subscribe(&channels).await.unwrap();
    all_heard(&client, &mut events, &channels).await;
    servers.nodes()[0]
        .command(&["CLIENT", "KILL", "TYPE", "pubsub"])
        .await
        .unwrap();
    disrupted(&mut events).await;
    subscribe_again(&client, &channels).await;
    all_heard(&client, &mut events, &channels).await;
    for node in servers.nodes() {
        let held = node
            .command(&["PUBSUB", "SHARDCHANNELS"])
            .await
            .unwrap()
            .items()
            .len();
        assert!(held > 0, "{} carries none", node.name());
    }
}

/// A frozen server sends nothing at all. The client notices that without sending a command.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_is_noticed_while_idle() {
    let servers = servers(TopologyKind::Standalone).await;
    let client = client(&servers).await;
    let mut events = client.take_events().unwrap();
    let channels = sixty(Plain);
    client.subscribe(&channels).await.unwrap();
    servers.nodes()[0].freeze().await.unwrap();
    let since = Instant::now();
    assert_eq!(disrupted(&mut events).await, "the server does not answer");
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "{:?}",
        since.elapsed()
    );
    client.subscribe(&channels).await.unwrap_err();
    servers.nodes()[0].thaw().await.unwrap();
    subscribe_again(&client, &channels).await;
    all_heard(&client, &mut events, &channels).await;
}

async fn away(kind: TopologyKind, flavour: ChannelFlavour) {
    let servers = servers(kind).await;
    let client = client(&servers).await;
    let mut events = client.take_events().unwrap();
    let channels = sixty(flavour);
    client.subscribe(&channels).await.unwrap();
    servers.nodes()[0].crash().await.unwrap();
    disrupted(&mut events).await;
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        client.subscribe(&channels).await.unwrap_err();
        sleep(Duration::from_millis(50)).await;
    }
    servers.nodes()[0].start().await.unwrap();
    subscribe_again(&client, &channels).await;
    all_heard(&client, &mut events, &channels).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn away_standalone() {
    away(TopologyKind::Standalone, Plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn away_cluster_sharded() {
    away(SHARDS, Sharded).await;
}

/// The primary dies and another one takes over.
async fn failover(kind: TopologyKind, flavour: ChannelFlavour) {
    let servers = servers(kind).await;
    let client = client(&servers).await;
    let mut events = client.take_events().unwrap();
    let channels = sixty(flavour);
    client.subscribe(&channels).await.unwrap();
    servers.primary().await.unwrap().crash().await.unwrap();
    disrupted(&mut events).await;
    subscribe_again(&client, &channels).await;
    all_heard(&client, &mut events, &channels).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failover_sentinel() {
    failover(TopologyKind::SENTINEL, Plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failover_cluster_plain() {
    failover(TopologyKind::CLUSTER, Plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failover_cluster_sharded() {
    failover(TopologyKind::CLUSTER, Sharded).await;
}

/// A slot moves to another node. Its subscription moves too.
async fn migrated(flavour: ChannelFlavour) {
    let servers = servers(SHARDS).await;
    let client = client(&servers).await;
    let mut events = client.take_events().unwrap();
    let channels = sixty(flavour);
    client.subscribe(&channels).await.unwrap();
    all_heard(&client, &mut events, &channels).await;
    let moving = std::str::from_utf8(&channels[7].name).unwrap();
    let slot = key_slot(moving.as_bytes());
    let from = servers.primary_for(moving).await.unwrap();
    let to = servers
        .nodes()
        .iter()
        .find(|node| node.name() != from.name())
        .unwrap();
    begin_migration(from, to, slot).await;
    end_migration(&servers, from, to, slot).await;
    if flavour == Plain {
        // The server sends nothing; the client learns of the move from its next command there.
        call(&client, moving, &["GET", moving]).await.unwrap();
    }
    disrupted(&mut events).await;
    subscribe_again(&client, &channels).await;
    all_heard(&client, &mut events, &channels).await;
    let listed = if flavour == Sharded {
        "SHARDCHANNELS"
    } else {
        "CHANNELS"
    };
    let there = to.command(&["PUBSUB", listed, moving]).await.unwrap();
    assert_eq!(there.items().len(), 1, "the new owner carries it");
}

#[tokio::test(flavor = "multi_thread")]
async fn migrated_sharded() {
    migrated(Sharded).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn migrated_plain() {
    migrated(Plain).await;
}
