//! The least that a user must be allowed, and what happens with less.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{
    BackendErrorKind, Finding, LockError, Locktopus, LostCause, MutexProfile, Severity,
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
/// | `PING` | to tell a dead connection from an idle one |
pub(crate) const COMMANDS: &str = "+eval +evalsha +time +pttl +pexpire +exists +get +set +hset +hexists +hdel \
     +hgetall +del +ping";

/// More for the messages that wake waiters, outside a cluster.
pub(crate) const PLAIN_MESSAGES: &str = "+publish +subscribe +unsubscribe";

/// More for a cluster: sharded messages, and the map of slots.
pub(crate) const CLUSTER: &str = "+spublish +ssubscribe +sunsubscribe +cluster|slots";

/// Keys and channels of locks whose names start with `app:`, by `lock` and `mutex` together.
pub(crate) const PLACES: &str = "~app:* ~redisson_lock_token:{app:* &redisson_lock__channel:{app:* \
     &locktopus_mutex__channel:{app:*";

fn recipe(kind: TopologyKind) -> String {
    let messages = match kind {
        TopologyKind::Cluster { .. } => CLUSTER,
        _ => PLAIN_MESSAGES,
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
    for request in [
        locks.lock(format!("{name}-l")),
        locks.mutex(format!("{name}-m")),
        locks.mutex_as(format!("{name}-s"), single),
    ] {
        let request = request.watchdog(Duration::from_millis(600));
        let guard = request.clone().acquire().await?;
        assert!(request.clone().try_acquire().await?.is_none());
        assert!(request.clone().inspect().await?.holder.is_some());
        let until = guard.extend(Duration::from_millis(600)).await?;
        let waiter = request.clone().strategy(ONLY_MESSAGES).wait_at_most(SOON);
        // A single-key mutex has no message; the rest must do with it.
        let waiter = match guard.token() {
            Some(_) => tokio::spawn(waiter.acquire()),
            None => tokio::spawn(request.clone().wait_at_most(SOON).acquire()),
        };
        let renewed = async {
            while guard.valid_until() <= until {
                guard.ensure_valid()?;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok::<_, LockError>(())
        };
        timeout(SOON, renewed).await.expect("renewed")?;
        guard.release().await?;
        waiter.await.unwrap()?.release().await?;
    }
    Ok(())
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

    // Without the right to publish locks still work; waiters fall back to their heartbeats.
    let locks = connect(&url_of(&place, client, "mute")).await;
    let guard = locks.lock(unique("mute")).acquire().await.unwrap();
    let lease = guard.lease();
    guard.release().await.unwrap();
    assert_eq!(lease.lost().await, LostCause::Released);
    let mute = findings(&locks).await;
    observed.push(format!("mute: {} findings {mute:?}", mute.len()));
    close(locks).await;
    observed.join("; ")
}

/// Takes one right away after the other: each must be missed by something.
pub(crate) async fn recipe_is_minimal(place: Arc<Deployment>) -> String {
    let recipe = recipe(place.kind());
    let mut spare = Vec::new();
    for right in recipe
        .split_whitespace()
        .filter(|word| word.starts_with('+'))
    {
        let rules = recipe.replace(&format!("{right} "), "");
        for node in place.nodes() {
            let mut words = vec!["ACL", "SETUSER", "less", "reset", "on", ">secret"];
            words.extend(rules.split_whitespace());
            node.command(&words).await.unwrap();
        }
        let mut missed_by = Vec::new();
        for client in CLIENTS {
            if is_missed(&place, client).await {
                missed_by.push(client);
            }
        }
        if missed_by.len() < CLIENTS.len() {
            spare.push(format!("{right} is missed by {missed_by:?} only"));
        }
    }
    format!("{spare:?}")
}

async fn is_missed(place: &Deployment, client: &str) -> bool {
    let Ok(locks) = locktopus::connect(&url_of(place, client, "less")).await else {
        return true;
    };
    let complete = |findings: Vec<Finding>| {
        findings
            .iter()
            .all(|finding| finding.severity == Severity::Note)
    };
    let good = complete(findings(&locks).await)
        && timeout(SOON, every_operation(&locks))
            .await
            .is_ok_and(|done| done.is_ok());
    let _ = locks.shutdown(SOON).await;
    !good
}
