//! The least that a user must be allowed, and what happens with less.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use locktopus::{
    BackendErrorKind, Finding, LockError, LockRequest, Locktopus, LostCause, MutexProfile, Severity,
};
use locktopus_testkit::topology::{Deployment, TopologyKind};
use tokio::time::timeout;

use crate::At;
use crate::common::{CLIENTS, ONLY_MESSAGES, SOON, close, connect, unique, url_for};

/// The commands that locks are made of: what clients send, and what scripts call.
///
/// | command | why |
/// |---|---|
/// | `EVALSHA`, `EVAL` | every operation is one script |
/// | `TIME` | fencing tokens, refusal of late attempts |
/// | `PTTL`, `PEXPIRE`, `EXISTS`, `GET`, `SET` | both kinds of lock, and tokens |
/// | `HSET`, `HEXISTS`, `HDEL`, `HGETALL` | `lock` |
/// | `DEL` | `mutex` |
/// | `PING` | to tell a dead connection from an idle one; fred also to confirm subscriptions |
pub(crate) const COMMANDS: &str = "+eval +evalsha +time +pttl +pexpire +exists +get +set +hset +hexists +hdel \
     +hgetall +del +ping";

/// More for the messages that wake waiters, outside a cluster.
pub(crate) const PLAIN_MESSAGES: &str = "+publish +subscribe +unsubscribe";

/// More where sentinels are asked: whether the server they name is really the primary.
pub(crate) const SENTINEL: &str = "+role";

/// More for a cluster: sharded messages, and the map of slots.
pub(crate) const CLUSTER: &str = "+spublish +ssubscribe +sunsubscribe +cluster|slots";

/// Keys and channels of locks whose names start with `app:`, by `lock` and `mutex` together. A name with
/// braces of its own (`app:{user:7}:cart`) is not put in braces again, hence two forms of everything.
pub(crate) const PLACES: &str = "~app:* \
     ~redisson_lock_token:{app:* ~redisson_lock_token:app:* \
     &redisson_lock__channel:{app:* &redisson_lock__channel:app:* \
     &locktopus_mutex__channel:{app:* &locktopus_mutex__channel:app:*";

fn recipe(kind: TopologyKind) -> String {
    let messages = match kind {
        TopologyKind::Cluster { .. } => CLUSTER.to_owned(),
        TopologyKind::Sentinel { .. } => format!("{PLAIN_MESSAGES} {SENTINEL}"),
        _ => PLAIN_MESSAGES.to_owned(),
    };
    format!("resetchannels -@all {COMMANDS} {messages} {PLACES}")
}

/// The users of the tests, in the server's syntax.
pub(crate) fn users(kind: TopologyKind) -> Vec<String> {
    let recipe = recipe(kind);
    let publish = recipe.replace("+spublish", "").replace("+publish", "");
    let channels = recipe.replace('&', "&no-");
    let tokens = recipe.replace("~redisson", "~no-redisson");
    [
        // The conformance suite's names have a prefix of their own.
        ("suite", recipe.replace("app:", "conformance:")),
        ("app", recipe),
        ("mute", publish),
        ("deaf", channels),
        ("tokenless", tokens),
    ]
    .map(|(name, rules)| format!("{name} on >secret {rules}"))
    .to_vec()
}

/// The URL for a user, with checks on and a namespace.
fn url_of(place: &Deployment, client: &str, user: &str) -> String {
    let url = url_for(place, client).replace("://", &format!("://{user}:secret@"));
    format!("{url}&namespace=app:")
}

/// Every operation that there is, with the least rights.
pub(crate) async fn recipe_suffices((place, client): At) -> String {
    let url = format!("{}&checks=refuse", url_of(&place, client, "app"));
    let locks = connect(&url).await;
    every_operation(&locks).await.unwrap();
    let findings = findings(&locks).await;
    assert!(
        findings
            .iter()
            .all(|finding| finding.severity == Severity::Note),
        "{findings:?}"
    );
    close(locks).await;
    let notes: Vec<_> = findings.iter().map(|finding| finding.check).collect();
    format!("notes only: {notes:?}")
}

async fn every_operation(locks: &Locktopus) -> Result<(), LockError> {
    let single = MutexProfile::single_key();
    let name = unique("op");
    let kinds = [
        locks.lock(format!("{{{name}}}-b")),
        locks.lock(format!("{name}-l")),
        locks.mutex(format!("{name}-m")),
        locks.mutex_as(format!("{name}-s"), single),
    ];
    let outcomes = kinds.map(|request| async move {
        waited_for(&request).await?;
        renewed(&request).await?;
        handed_over(request).await
    });
    for outcome in join_all(outcomes).await {
        outcome?;
    }
    Ok(())
}

/// Somebody waits, and only a message can wake him.
async fn waited_for(request: &LockRequest) -> Result<(), LockError> {
    let guard = request.clone().acquire().await?;
    assert!(request.clone().try_acquire().await?.is_none());
    assert!(request.clone().inspect().await?.holder.is_some());
    let waiter = match guard.token() {
        Some(_) => request.clone().strategy(ONLY_MESSAGES),
        // A single-key mutex has no message.
        None => request.clone(),
    };
    let waiter = tokio::spawn(waiter.wait_at_most(SOON / 2).acquire());
    // Until he has asked once and subscribed; a release before that would not need a message.
    tokio::time::sleep(Duration::from_millis(50)).await;
    guard.release().await?;
    waiter.await.unwrap()?.release().await
}

async fn renewed(request: &LockRequest) -> Result<(), LockError> {
    let guard = request
        .clone()
        .watchdog(Duration::from_millis(300))
        .acquire()
        .await?;
    let until = guard.extend(Duration::from_millis(300)).await?;
    while guard.valid_until() <= until {
        guard.ensure_valid()?;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    guard.release().await
}

async fn handed_over(request: LockRequest) -> Result<(), LockError> {
    let guard = request.clone().acquire().await?;
    let ticket = guard.into_ticket().expect("a fresh lock");
    request.clone().adopt(&ticket).await?.release().await?;
    match request.adopt(&ticket).await {
        Err(LockError::Lost {
            cause: LostCause::Missing,
            ..
        }) => Ok(()),
        Err(other) => Err(other),
        Ok(guard) => panic!("adopted twice: {guard:?}"),
    }
}

async fn findings(locks: &Locktopus) -> Vec<Finding> {
    locks.diagnose().await.unwrap().findings
}

pub(crate) async fn foreign_keys_are_denied((place, client): At) -> String {
    // The user's own namespace would hide what this is about.
    let url = url_of(&place, client, "app").replace("namespace=app:", "checks=off");
    let locks = connect(&url).await;
    let mut said = String::new();
    let name = unique("other");
    for request in [locks.lock(&name), locks.mutex(&name)] {
        // Short: a refusal may have come half-way through a script, so it is cleaned up after until then.
        let request = request.lease(Duration::from_secs(1));
        let errors = [
            request.clone().acquire().await.map(drop).unwrap_err(),
            request.clone().try_acquire().await.map(drop).unwrap_err(),
            request.inspect().await.map(drop).unwrap_err(),
        ];
        for error in errors {
            let LockError::Backend { source, .. } = &error else {
                panic!("{error:?}");
            };
            assert_eq!(source.kind(), BackendErrorKind::Denied, "{error:?}");
            said = source.to_string();
        }
    }
    let node = place.primary_for(&name).await.unwrap();
    let left = node.command(&["EXISTS", &name]).await.unwrap();
    assert_eq!(left.text(), "0");
    close(locks).await;
    said
}

pub(crate) async fn missing_rights_are_found((place, client): At) -> String {
    let mut observed = Vec::new();
    for (user, what) in [
        ("deaf", "listening for releases"),
        ("tokenless", "taking a lock"),
        ("mute", "announcing a release"),
    ] {
        let url = url_of(&place, client, user);
        let locks = connect(&url).await;
        let findings = findings(&locks).await;
        let found = findings
            .iter()
            .find(|finding| finding.check == "permission" && finding.message.contains(what))
            .unwrap_or_else(|| panic!("{user}: {findings:?}"));
        assert_eq!(found.severity, Severity::Danger);
        let refused = locktopus::connect(&format!("{url}&checks=refuse")).await;
        let refused = refused.map(drop).unwrap_err();
        assert!(
            matches!(refused, locktopus::ConnectError::Unsafe { .. }),
            "{refused:?}"
        );
        observed.push(format!("{user}: {found}"));
        close(locks).await;
    }

    // Without the right to publish, locks work all the same; waiters fall back to their heartbeats.
    let locks = connect(&url_of(&place, client, "mute")).await;
    locks
        .lock(unique("mute"))
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    close(locks).await;
    observed.join("; ")
}

/// Rights whose absence is felt only later: connections are checked when they have been idle, channels are
/// given up when nobody waits any more. (fred needs PING at once for plain subscriptions.)
const FELT_LATER: [&str; 3] = ["+ping", "+unsubscribe", "+sunsubscribe"];

/// Takes one right away after the other: each must be missed by something.
pub(crate) async fn recipe_is_minimal(place: Arc<Deployment>) -> String {
    let recipe = recipe(place.kind());
    let rights = recipe
        .split_whitespace()
        .filter(|word| word.starts_with('+'));
    let mut spare = Vec::new();
    let mut needed = 0;
    for right in rights {
        let missed =
            join_all(CLIENTS.map(|client| is_missed(&place, client, &recipe, right))).await;
        for (client, missed) in CLIENTS.iter().zip(missed) {
            needed += usize::from(missed);
            if !missed && !FELT_LATER.contains(&right) {
                spare.push(format!("{right} is not missed by {client}"));
            }
        }
    }
    // redis-rs does without ROLE if it is not allowed to ask.
    spare.retain(|right| right != "+role is not missed by redis");
    assert!(spare.is_empty(), "{spare:?}");
    format!("{needed} times something was missing; {recipe}")
}

async fn is_missed(place: &Deployment, client: &str, recipe: &str, right: &str) -> bool {
    let user = format!("less-{client}");
    let rules = recipe.split_whitespace().filter(|word| *word != right);
    let start = ["ACL", "SETUSER", &user, "reset", "on", ">secret"];
    let words: Vec<_> = start.into_iter().chain(rules).collect();
    for node in place.nodes() {
        node.command(&words).await.unwrap();
        node.command(&["SCRIPT", "FLUSH"]).await.unwrap();
    }
    let Ok(locks) = locktopus::connect(&url_of(place, client, &user)).await else {
        return true;
    };
    let findings = findings(&locks).await;
    let good = findings
        .iter()
        .all(|finding| finding.severity == Severity::Note)
        && timeout(SOON, every_operation(&locks))
            .await
            .is_ok_and(|done| done.is_ok());
    let _ = locks.shutdown(Duration::ZERO).await;
    !good
}
