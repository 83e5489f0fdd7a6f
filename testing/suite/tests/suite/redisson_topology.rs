//! Redisson itself and this library on the same locks.
//!
//! Without a JDK, Maven or the downloads of Maven, these tests skip themselves and say so; in CI
//! that is a failure. Set `LOCKTOPUS_SKIP_JDK` to the reason why this machine has none.

use crate::common;
#[path = "redisson/crashed.rs"]
mod crashed;
#[path = "redisson/exclusive.rs"]
mod exclusive;
#[path = "redisson/fair.rs"]
mod fair;
#[path = "redisson/latch.rs"]
mod latch;
#[path = "redisson/objects.rs"]
mod objects;
#[path = "redisson/ours.rs"]
mod ours;
#[path = "redisson/particular.rs"]
mod particular;
#[path = "redisson/read_write.rs"]
mod read_write;
#[path = "redisson/semaphores.rs"]
mod semaphores;
#[path = "redisson/theirs.rs"]
mod theirs;

use std::sync::Arc;

use common::raw::{Raw, Value};
use common::{CLIENTS, Cases, PATIENT, becomes, close, connect, eventually, servers, url, url_for};
use locktopus::Locktopus;
use locktopus_servers::peers::redisson::{JavaThread, Redisson, Reply, jar_or_skip};
use locktopus_servers::topology::{Deployment, TopologyKind};
use ours::Ours;

/// Servers, our client on them, and a Redisson that uses them too.
#[derive(Clone)]
struct At {
    place: Arc<Deployment>,
    client: &'static str,
    java: Arc<Redisson>,
}

impl At {
    /// With long time limits for a busy machine: these tests are not about outages.
    async fn locks(&self) -> Locktopus {
        self.locks_with("timeout=5s").await
    }

    async fn locks_with(&self, options: &str) -> Locktopus {
        connect(&url(&url_for(&self.place, self.client), options)).await
    }
}

/// Concurrent cases on one place. Each uses a Java thread or two and a connection or two, and two
/// of a hundred start their own Java.
const AT_ONCE: usize = 12;

/// Starts every case for every client.
async fn everything_on(kind: TopologyKind) {
    let Some(jar) = jar_or_skip()
        .await
        .unwrap_or_else(|error| panic!("{error}"))
    else {
        return;
    };
    let place = Arc::new(servers(kind).await);
    let java = Redisson::start(&jar, &place.url()).await.unwrap();
    let java = Arc::new(java);
    let mut cases = Cases::at_once(AT_ONCE);
    for client in CLIENTS {
        let name = |case: &str| format!("{kind} {client} {case}");
        let at = At {
            place: Arc::clone(&place),
            client,
            java: Arc::clone(&java),
        };
        cases.add(name("Java holds"), exclusive::java_holds(at.clone()));
        cases.add(name("we hold"), exclusive::we_hold(at.clone()));
        cases.add(
            name("Java crashes"),
            crashed::everything(at.clone(), jar.clone()),
        );
        for pair in &objects::PAIRS {
            let name = |case: &str| name(&format!("{case} {}", pair.theirs));
            cases.add(name("they hold"), objects::they_hold(at.clone(), pair));
            cases.add(name("we hold"), objects::we_hold(at.clone(), pair));
            cases.add(name("leases end"), objects::leases_end(at.clone(), pair));
            cases.add(name("by force"), objects::by_force(at.clone(), pair));
        }
        macro_rules! case {
            ($($case:path),+ $(,)?) => {
                $(cases.add(name(stringify!($case)), $case(at.clone()));)+
            };
        }
        case!(
            particular::spin_locks_say_nothing,
            particular::tokens_grow,
            particular::forgotten_tokens,
            particular::a_lease_that_is_ignored,
            particular::several_in_one,
            particular::names_in_braces,
            particular::lock_and_fair_lock_mixed,
            fair::in_order,
            fair::killed_head,
            read_write::they_read,
            read_write::they_write,
            read_write::we_downgrade,
            read_write::we_read_on,
            read_write::they_read_on,
            semaphores::one_number,
            semaphores::a_dead_holder_wakes_nobody,
            semaphores::permits_with_ids,
            semaphores::permits_end,
            latch::both_count,
        );
    }
    cases.all_pass().await;
    let java = Arc::into_inner(java).expect("the cases are done with it");
    java.exit().await.unwrap();
    drop(place);
}

common::on_one_server_and_on_a_cluster!(everything_on);

/// A service that adds a prefix to its names and has its own database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mapped_names_in_another_database() {
    const NAMESPACE: &str = "shop:";
    const DATABASE: &str = "3";
    let Some(jar) = jar_or_skip()
        .await
        .unwrap_or_else(|error| panic!("{error}"))
    else {
        return;
    };
    let place = Arc::new(servers(TopologyKind::Standalone).await);
    let node = &place.nodes()[0];
    let base = format!(
        "redis://{}/{DATABASE}?namespace={NAMESPACE}&timeout=5s",
        node.addr()
    );
    let java = Arc::new(Redisson::start(&jar, &base).await.unwrap());
    let mut cases = Cases::at_once(AT_ONCE);
    let mut all = Vec::new();
    for client in CLIENTS {
        let locks = connect(&url(&base, &format!("client={client}"))).await;
        for pair in &objects::PAIRS {
            let at = At {
                place: Arc::clone(&place),
                client,
                java: Arc::clone(&java),
            };
            let name = format!("{client} mapped {}", pair.theirs);
            cases.add(name, objects::under_mapped_names(at, locks.clone(), pair));
        }
        all.push(locks);
    }
    cases.all_pass().await;
    let mut raw = Raw::to(node).await;
    assert_eq!(raw.say(&["DBSIZE"]).await.int(), 0, "in no other database");
    raw.say(&["SELECT", DATABASE]).await;
    let keys = raw.say(&["KEYS", "*"]).await;
    // Waiters and holds left nothing; the last tokens stay.
    assert!(!keys.list().is_empty());
    for key in keys.list() {
        assert!(key.text().contains(NAMESPACE), "{key:?}");
    }
    for locks in all {
        close(locks).await;
    }
    let java = Arc::into_inner(java).expect("the cases are done with it");
    java.exit().await.unwrap();
    drop(place);
}

/// Sends a command to a Java thread and accepts any answer.
async fn ask(thread: &mut JavaThread, command: &[&str]) -> Reply {
    thread
        .ask(command)
        .await
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Waits until only a message, or the end of the lease, can wake a Java thread.
async fn waits_for_message(java: &Redisson, thread: &JavaThread) {
    let mut watcher = java.thread();
    eventually("a Java thread that waits", PATIENT, async || {
        match ask(&mut watcher, &["self", "waits", thread.name()]).await {
            Reply::Done => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

/// The channel of a lock's release.
fn channel(name: &str) -> String {
    format!("redisson_lock__channel:{{{name}}}")
}

fn is_sharded(place: &Deployment) -> bool {
    matches!(place.kind(), TopologyKind::Cluster { .. })
}

/// Waits until this many clients listen to a name's channel.
async fn listeners(place: &Deployment, name: &str, channel: &str, number: i64) {
    let mut raw = Raw::to(place.primary_for(name).await.unwrap()).await;
    let count = match is_sharded(place) {
        true => "SHARDNUMSUB",
        false => "NUMSUB",
    };
    eventually("subscriptions", PATIENT, async || {
        match raw.say(&["PUBSUB", count, channel]).await.list() {
            [_, Value::Int(seen)] if *seen == number => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

async fn subscribe(place: &Deployment, raw: &mut Raw, channel: &str) {
    let subscribe = match is_sharded(place) {
        true => "SSUBSCRIBE",
        false => "SUBSCRIBE",
    };
    raw.say(&[subscribe, channel]).await;
}

async fn publish(place: &Deployment, raw: &mut Raw, channel: &str, word: &str) {
    let publish = match is_sharded(place) {
        true => "SPUBLISH",
        false => "PUBLISH",
    };
    raw.say(&[publish, channel, word]).await;
}

/// Waits until this many waiters are in the queue of a kind, and the last one, ours, listens.
async fn our_waiters(place: &Deployment, name: &str, kind: Ours, number: i64) {
    let mut raw = Raw::to(place.primary_for(name).await.unwrap()).await;
    let side = |prefix: &str| format!("{prefix}:{{{name}}}");
    if kind == Ours::Fair {
        fair::queued(place, name, number).await;
        let last = raw
            .say(&["LINDEX", &side("redisson_lock_queue"), "-1"])
            .await;
        let own = format!("{}:{}", channel(name), last.text());
        return listeners(place, name, &own, 1).await;
    }
    let seen = async || raw.say(&["ZCARD", &side("locktopus_queue")]).await.int();
    becomes("waiters of ours", PATIENT, number, seen).await;
}
