//! The minimal rights of a user, and the effect of missing ones.

use std::time::Duration;

use futures_util::future::try_join_all;
use locktopus::{
    BackendErrorKind, CohortSettings, ConnectError, Finding, LockError, Locktopus, Severity,
};
use locktopus_servers::rights::{self, PARTS, rules};
use locktopus_servers::topology::{Deployment, TopologyKind};

use crate::common::{chain, close, connect, plain_url_for, unique};
use crate::security::At;
use crate::security::operations;

/// The users of the tests, in the server's syntax.
pub(crate) fn users(kind: TopologyKind) -> Vec<String> {
    let recipe = rules(&rights::all(kind));
    let publish = recipe.replace("+spublish", "").replace("+publish", "");
    let channels = recipe.replace('&', "&no-");
    let tokens = recipe.replace("~redisson", "~no-redisson");
    let queues = recipe.replace("+zadd", "");
    let dead = recipe.replace("+hmget", "");
    let instants = recipe.replace("+pexpireat", "");
    [
        // The conformance suite's names have their own prefix.
        ("suite", recipe.replace("app:", "conformance:")),
        ("app", recipe),
        ("mute", publish),
        ("deaf", channels),
        ("tokenless", tokens),
        ("queueless", queues),
        ("deadless", dead),
        ("instantless", instants),
        (
            "select",
            format!("{} {}", rules(&rights::all(kind)), rights::DATABASE),
        ),
    ]
    .map(|(name, rules)| format!("{name} on >secret {rules}"))
    .to_vec()
}

/// Users of the sentinels: with all rights that they need there, and with only one of them.
pub(crate) fn sentinel_users() -> Vec<String> {
    let all: Vec<_> = rights::WATCHERS.split(' ').collect();
    [
        ("watcher", rights::WATCHERS),
        ("blind", all[1]),
        ("alone", all[0]),
    ]
    .map(|(name, rights)| format!("{name} on >secret {}", rules(&[rights.to_owned()])))
    .to_vec()
}

/// A database other than 0 needs one more right, and no other.
pub(crate) async fn another_database((place, client): At) -> String {
    let in_database = |user| url_of(&place, client, user).replacen('?', "/1?", 1);
    let locks = connect(&in_database("select")).await;
    let name = unique("database");
    let guard = locks.lock(&name).acquire().await.unwrap();
    guard.release().await.unwrap();
    close(locks).await;
    let refused = locktopus::connect(&in_database("app")).await;
    let said = chain(&refused.map(drop).unwrap_err());
    assert!(said.contains("select"), "{said}");
    said
}

/// The sentinels' own user needs one right. `two_primaries` shows what the others are worth.
pub(crate) async fn sentinels_have_users((place, client): At) -> String {
    let by = |user| {
        let url = url_of(&place, client, "app");
        format!("{url}&sentinel_user={user}&sentinel_password=secret")
    };
    let locks = connect(&by("watcher")).await;
    let guard = locks.lock(unique("watched")).acquire().await.unwrap();
    guard.release().await.unwrap();
    close(locks).await;
    close(connect(&by("alone")).await).await;
    let refused = locktopus::connect(&by("blind")).await;
    chain(&refused.map(drop).unwrap_err())
}

/// The URL for a user, with a namespace.
pub(crate) fn url_of(place: &Deployment, client: &str, user: &str) -> String {
    let url = plain_url_for(place, client).replace("://", &format!("://{user}:secret@"));
    format!("{url}&namespace=app:")
}

/// Every operation, with the minimal rights.
pub(crate) async fn recipe_suffices((place, client): At) -> String {
    let url = url_of(&place, client, "app") + "&timeout=10s";
    let locks = connect_apart(&format!("{url}&checks=refuse"))
        .await
        .unwrap();
    let every = PARTS.map(|part| Box::pin(operations::of(part.what, &locks, &url)));
    try_join_all(every).await.unwrap();
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

/// Connects so that every waiter is in the server's queue itself.
pub(crate) async fn connect_apart(url: &str) -> Result<Locktopus, ConnectError> {
    let apart = CohortSettings {
        turns: 1,
        ..CohortSettings::default()
    };
    locktopus::connect_with(url, |builder| builder.cohort(apart)).await
}

pub(crate) async fn findings(locks: &Locktopus) -> Vec<Finding> {
    locks.diagnose().await.unwrap().findings
}

pub(crate) async fn foreign_keys_are_denied((place, client): At) -> String {
    // The user's own namespace would hide the error.
    let url = url_of(&place, client, "app").replace("namespace=app:", "checks=off");
    let locks = connect(&url).await;
    let mut said = String::new();
    let name = unique("other");
    for request in [locks.lock(&name), locks.mutex(&name)] {
        // Short: a script may have been refused half-way, so the client cleans up until then.
        let request = request.fixed_lease(Duration::from_secs(1));
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
        ("instantless", "extending a lock"),
        ("queueless", "waiting in the queue of a lock"),
        ("deadless", "releasing a lock"),
        ("mute", "announcing a release"),
    ] {
        // Each time in its own namespace, because a user that may not release the probe leaves it
        // held, and the next probe would find a foreign lock.
        let url = |time: &str| {
            let own = format!("namespace=app:{client}-{user}-{time}:");
            url_of(&place, client, user).replacen("namespace=app:", &own, 1)
        };
        let locks = connect(&url("warned")).await;
        let findings = findings(&locks).await;
        let found = findings
            .iter()
            .find(|finding| finding.check == "permission" && finding.message.contains(what))
            .unwrap_or_else(|| panic!("{user}: {findings:?}"));
        assert_eq!(found.severity, Severity::Danger);
        let refused = locktopus::connect(&format!("{}&checks=refuse", url("refused"))).await;
        let refused = refused.map(drop).unwrap_err();
        assert!(
            matches!(refused, locktopus::ConnectError::Unsafe { .. }),
            "{refused:?}"
        );
        observed.push(format!("{user}: {found}"));
        close(locks).await;
    }

    // Without the right to publish, locks still work; waiters fall back to their heartbeats.
    let locks = connect(&url_of(&place, client, "mute")).await;
    let passing = locks.lock(unique("mute")).acquire().await.unwrap();
    passing.release().await.unwrap();
    close(locks).await;
    observed.join("; ")
}
