//! Subscriptions deliver messages, report losses, and work again after resubscribing.
//!
//! The tests play the layer above: on [`PushEvent::Disrupted`] they resubscribe to everything.

use std::time::Duration;

use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{Channel, ChannelFlavour, PushEvent, RedisClient};
use locktopus_servers::topology::{Deployment, TopologyKind};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout};

use ChannelFlavour::{Plain, Sharded};

use crate::common::*;

fn sixty(flavour: ChannelFlavour) -> Vec<Channel> {
    let names = (0..60).map(|number| format!("ch:{{{number}}}"));
    names.map(|name| channel(&name, flavour)).collect()
}

/// Servers, and a client that hears all of its sixty channels.
struct Listening {
    servers: Deployment,
    client: Client,
    events: UnboundedReceiver<PushEvent>,
    channels: Vec<Channel>,
}

impl Listening {
    async fn on(kind: TopologyKind, flavour: ChannelFlavour) -> Self {
        let servers = servers(kind).await;
        let client = client(&servers).await;
        let events = client.take_events().unwrap();
        let channels = sixty(flavour);
        client.subscribe(&[]).await.unwrap();
        client.subscribe(&channels).await.unwrap();
        let mut listening = Self {
            servers,
            client,
            events,
            channels,
        };
        listening.hears_all().await;
        listening
    }

    async fn hears_all(&mut self) {
        all_heard(&self.client, &mut self.events, &self.channels).await;
    }

    /// Hears of a loss, subscribes again, and hears everything.
    async fn recovers(&mut self) {
        disrupted(&mut self.events).await;
        subscribe_again(&self.client, &self.channels).await;
        self.hears_all().await;
    }

    async fn kill_subscribers(&self) {
        for node in self.servers.nodes() {
            let kill = ["CLIENT", "KILL", "TYPE", "pubsub"];
            node.command(&kill).await.unwrap();
        }
    }
}

async fn messages(kind: TopologyKind, flavour: ChannelFlavour) {
    let mut it = Listening::on(kind, flavour).await;
    // Subscribing again must be harmless.
    it.client.subscribe(&it.channels[..10]).await.unwrap();
    it.hears_all().await;

    let (gone, kept) = it.channels.split_at(30);
    it.client.unsubscribe(gone).await.unwrap();
    for channel in gone {
        publish(&it.client, channel, "2").await;
    }
    // Anything published earlier would have arrived before these.
    for channel in kept {
        publish(&it.client, channel, "3").await;
    }
    let mut missing: Vec<_> = kept.iter().map(|channel| channel.name.clone()).collect();
    while !missing.is_empty() {
        match timeout(LONG, it.events.recv()).await.unwrap().unwrap() {
            PushEvent::Message { channel, payload } => {
                assert_eq!(payload, "3");
                missing.retain(|name| channel != name);
            }
            other @ PushEvent::Disrupted { .. } => panic!("{other:?}"),
        }
    }
    // Repeated unsubscribing and subscribing leaves no trace.
    for _ in 0..20 {
        it.client.unsubscribe(kept).await.unwrap();
        it.client.subscribe(kept).await.unwrap();
    }
    assert!(it.events.try_recv().is_err());
    all_heard(&it.client, &mut it.events, kept).await;
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

/// A message right after a confirmation arrives.
#[tokio::test(flavor = "multi_thread")]
async fn a_confirmed_subscription_misses_nothing() {
    let servers = servers(SHARDS).await;
    let client = client(&servers).await;
    let mut events = client.take_events().unwrap();
    for number in 0..200 {
        let flavour = [Plain, Sharded][number % 2];
        let channel = [channel(&format!("{{{number}}}once"), flavour)];
        client.subscribe(&channel).await.unwrap();
        publish(&client, &channel[0], "hello").await;
        let event = timeout(LONG, events.recv()).await.unwrap();
        let expected = PushEvent::Message {
            channel: channel[0].name.clone(),
            payload: "hello".into(),
        };
        assert_eq!(event, Some(expected));
        client.unsubscribe(&channel).await.unwrap();
    }
}

/// The connections break while the client is idle, again and again.
async fn cut(kind: TopologyKind, flavour: ChannelFlavour, rounds: u32) {
    let mut it = Listening::on(kind, flavour).await;
    for round in 0..rounds {
        it.kill_subscribers().await;
        let since = Instant::now();
        disrupted(&mut it.events).await;
        let took = since.elapsed();
        assert!(took < Duration::from_millis(500), "{round}: {took:?}");
        subscribe_again(&it.client, &it.channels).await;
        it.hears_all().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_standalone() {
    cut(TopologyKind::Standalone, Plain, 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_sentinel() {
    cut(WATCHED, Plain, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_cluster_plain() {
    cut(SHARDS, Plain, 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_cluster_sharded() {
    cut(SHARDS, Sharded, 20).await;
}

/// A confirmation right after a kill holds, even before the client has told of the loss: no later
/// message is missed.
async fn confirmed_after_a_kill(kind: TopologyKind, flavour: ChannelFlavour) {
    let mut it = Listening::on(kind, flavour).await;
    for _ in 0..20 {
        it.kill_subscribers().await;
        subscribe_again(&it.client, &it.channels).await;
        it.hears_all().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmations_hold_standalone() {
    confirmed_after_a_kill(TopologyKind::Standalone, Plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmations_hold_cluster_plain() {
    confirmed_after_a_kill(SHARDS, Plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmations_hold_cluster_sharded() {
    confirmed_after_a_kill(SHARDS, Sharded).await;
}

/// The connection to one of three nodes breaks. Its shard channels come back, the others stay.
#[tokio::test(flavor = "multi_thread")]
async fn sixty_shard_channels_survive_a_cut() {
    let mut it = Listening::on(SHARDS, Sharded).await;
    let kill = ["CLIENT", "KILL", "TYPE", "pubsub"];
    it.servers.nodes()[0].command(&kill).await.unwrap();
    it.recovers().await;
    for node in it.servers.nodes() {
        let held = node.command(&["PUBSUB", "SHARDCHANNELS"]).await.unwrap();
        assert!(!held.items().is_empty(), "{} carries none", node.name());
    }
}

/// A frozen server sends nothing at all. The client notices that without sending a command.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_is_noticed_while_idle() {
    let mut it = Listening::on(TopologyKind::Standalone, Plain).await;
    it.servers.nodes()[0].freeze().await.unwrap();
    let since = Instant::now();
    disrupted(&mut it.events).await;
    let took = since.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    it.client.subscribe(&it.channels).await.unwrap_err();
    it.servers.nodes()[0].thaw().await.unwrap();
    subscribe_again(&it.client, &it.channels).await;
    it.hears_all().await;
}

async fn away(kind: TopologyKind, flavour: ChannelFlavour) {
    let mut it = Listening::on(kind, flavour).await;
    it.servers.nodes()[0].crash().await.unwrap();
    disrupted(&mut it.events).await;
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        it.client.subscribe(&it.channels).await.unwrap_err();
        sleep(Duration::from_millis(50)).await;
    }
    it.servers.nodes()[0].start().await.unwrap();
    subscribe_again(&it.client, &it.channels).await;
    it.hears_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn away_standalone() {
    away(TopologyKind::Standalone, Plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn away_cluster_sharded() {
    away(SHARDS, Sharded).await;
}

/// A slot moves to another node. Its subscription moves too.
pub(crate) async fn migrated(flavour: ChannelFlavour) {
    let mut it = Listening::on(SHARDS, flavour).await;
    let moving = std::str::from_utf8(&it.channels[7].name)
        .unwrap()
        .to_owned();
    let from = it.servers.primary_for(&moving).await.unwrap();
    let mut others = it.servers.nodes().iter();
    let to = others.find(|node| node.name() != from.name()).unwrap();
    let slot = key_slot(moving.as_bytes());
    begin_migration(from, to, slot).await;
    end_migration(&it.servers, from, to, slot).await;
    if flavour == Plain {
        // The server sends nothing; the client learns of the move from its next command there.
        call(&it.client, &moving, &["GET", &moving]).await.unwrap();
    }
    let listed = [
        "PUBSUB",
        if flavour == Sharded {
            "SHARDCHANNELS"
        } else {
            "CHANNELS"
        },
        &moving,
    ];
    let to = to.addr();
    it.recovers().await;
    let mut nodes = it.servers.nodes().iter();
    let there = nodes.find(|node| node.addr() == to).unwrap();
    let there = there.command(&listed).await.unwrap();
    assert_eq!(there.items().len(), 1, "the new owner carries it");
}

#[tokio::test(flavor = "multi_thread")]
async fn migrated_sharded() {
    migrated(Sharded).await;
}
