//! Our own locks as another program sees them.

use std::time::Duration;

use locktopus_servers::topology::{Deployment, TopologyKind};

use crate::common::raw::{Raw, Value};
use crate::common::{close, locks_apart, unique};
use crate::wire::At;

const LEASE: Duration = Duration::from_secs(10);
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The commands of the pub/sub flavour that Redisson would use here, and of the other one.
pub(crate) fn flavour(place: &Deployment) -> (&'static str, &'static str, &'static str) {
    match place.kind() {
        TopologyKind::Cluster { .. } => ("SPUBLISH", "SSUBSCRIBE", "SUBSCRIBE"),
        _ => ("PUBLISH", "SUBSCRIBE", "SSUBSCRIBE"),
    }
}

pub(crate) async fn lock((place, client): At) -> String {
    let name = unique("layout");
    let locks = locks_apart(&place, client).await; // reserves one token for each grant
    let mut raw = Raw::to(place.primary_for(&name).await.unwrap()).await;

    let request = locks.lock(&name).fixed_lease(LEASE);
    let guard = request.acquire().await.unwrap();
    assert_eq!(raw.say(&["TYPE", &name]).await.text(), "hash");
    let fields = raw.say(&["HGETALL", &name]).await;
    let [owner, holds] = fields.list() else {
        panic!("more than one owner: {fields:?}");
    };
    assert_eq!(owner.bytes(), guard.owner_id().expose());
    looks_like_redisson(&owner.text());
    assert_eq!(holds.bytes(), b"1");
    lease_is_running(&mut raw, &name).await;
    let token = guard.token().unwrap().get();
    token_is_kept(&mut raw, &name, token).await;

    let channel = format!("redisson_lock__channel:{{{name}}}");
    released_with_a_message(&place, &name, &channel, guard.release()).await;
    assert_eq!(raw.say(&["EXISTS", &name]).await, Value::Int(0));
    // The token stays, so that the next one is larger even if clocks go back.
    token_is_kept(&mut raw, &name, token).await;
    close(locks).await;
    format!("owner {} bytes, token {token}", owner.bytes().len())
}

pub(crate) async fn mutex((place, client): At) -> String {
    let name = unique("layout");
    let locks = locks_apart(&place, client).await; // reserves one token for each grant
    let mut raw = Raw::to(place.primary_for(&name).await.unwrap()).await;

    let request = locks.mutex(&name).fixed_lease(LEASE);
    let guard = request.acquire().await.unwrap();
    assert_eq!(raw.say(&["TYPE", &name]).await.text(), "string");
    let value = raw.say(&["GET", &name]).await;
    assert_eq!(value.bytes(), guard.owner_id().expose());
    lease_is_running(&mut raw, &name).await;
    let token = guard.token().unwrap().get();
    token_is_kept(&mut raw, &name, token).await;

    let channel = format!("locktopus_mutex__channel:{{{name}}}");
    released_with_a_message(&place, &name, &channel, guard.release()).await;
    assert_eq!(raw.say(&["EXISTS", &name]).await, Value::Int(0));
    close(locks).await;
    format!("value {} bytes, token {token}", value.bytes().len())
}

/// `<uuid>:<i64>`, with the uuid marked as not Java's.
fn looks_like_redisson(owner: &str) {
    let (uuid, number) = owner.split_once(':').unwrap();
    let groups: Vec<_> = uuid.split('-').map(str::len).collect();
    assert_eq!(groups, [8, 4, 4, 4, 12], "{uuid}");
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c) || c == '-';
    assert!(uuid.chars().all(hex), "{uuid}");
    assert_eq!(&uuid[14..15], "8", "version");
    let number: i64 = number.parse().unwrap();
    assert_eq!(owner, format!("{uuid}:{number}"), "in canonical form");
}

async fn lease_is_running(raw: &mut Raw, key: &str) {
    let left = raw.say(&["PTTL", key]).await.int();
    assert!((5_000..=10_000).contains(&left), "{left} ms");
}

async fn token_is_kept(raw: &mut Raw, name: &str, token: u64) {
    let key = format!("redisson_lock_token:{{{name}}}");
    assert_eq!(raw.say(&["GET", &key]).await.text(), token.to_string());
    let left = raw.say(&["PTTL", &key]).await.int();
    assert!((DAY_MS - 60_000..=DAY_MS).contains(&left), "{left} ms");
}

/// The message is `0`, only in the flavour that Redisson expects.
async fn released_with_a_message(
    place: &Deployment,
    name: &str,
    channel: &str,
    release: impl Future<Output = Result<(), locktopus::LockError>>,
) {
    let node = place.primary_for(name).await.unwrap();
    let (_, right, wrong) = flavour(place);
    let (mut listener, mut deaf) = (Raw::to(node).await, Raw::to(node).await);
    listener.say(&[right, channel]).await;
    // Sharded pub/sub exists outside clusters too.
    deaf.say(&[wrong, channel]).await;
    release.await.unwrap();
    let heard = listener.hear().await;
    let [kind, from, payload] = heard.list() else {
        panic!("no message: {heard:?}");
    };
    assert!(kind.text().ends_with("message"), "{heard:?}");
    assert_eq!(
        (from.text().as_str(), payload.bytes()),
        (channel, &b"0"[..])
    );
    let answer = deaf.say(&["PING"]).await;
    assert!(answer.text().starts_with("pong"), "heard {answer:?}");
}
