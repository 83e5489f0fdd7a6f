//! Encryption, users with few rights, and hidden passwords.

#[path = "security/acl.rs"]
mod acl;
use crate::common;
use crate::conformance;
#[path = "security/listed.rs"]
mod listed;
#[path = "security/minimal.rs"]
mod minimal;
#[path = "security/modes.rs"]
mod modes;
#[path = "security/odd.rs"]
mod odd;
#[path = "security/operations.rs"]
mod operations;
#[path = "security/secrets.rs"]
mod secrets;
#[path = "security/tls.rs"]
pub(crate) mod tls;

use std::sync::Arc;

use common::{At, Cases, ONE_SENTINEL, SHARDS, each_client_on, servers, servers_with};
use locktopus_servers::rights;
use locktopus_servers::topology::{Deployment, Knobs, TopologyKind};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn encryption() {
    let place = Arc::new(servers(TopologyKind::Tls).await);
    let mut cases = Cases::new();
    cases.each_on(&place, "right authority", tls::right_authority);
    cases.each_on(&place, "wrong authority", tls::wrong_authority);
    cases.each_on(&place, "wrong name", tls::wrong_name);
    cases.each_on(&place, "danger", tls::danger);
    cases.each_on(&place, "plain text", tls::plain_text);
    cases.all_pass().await;
}

/// Servers with the users of these tests.
async fn servers_with_users(kind: TopologyKind) -> Arc<Deployment> {
    let knobs = Knobs {
        users: acl::users(kind),
        sentinel_users: acl::sentinel_users(),
        ..Knobs::default()
    };
    Arc::new(servers_with(kind, knobs).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_database_needs_a_right() {
    let place = servers_with_users(TopologyKind::Standalone).await;
    each_client_on(&place, "database", acl::another_database).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_sentinels_need_one_right() {
    let place = servers_with_users(ONE_SENTINEL).await;
    each_client_on(&place, "sentinels", acl::sentinels_have_users).await;
}

async fn few_rights_suffice(kind: TopologyKind) {
    let place = servers_with_users(kind).await;
    let mut cases = Cases::new();
    cases.each_on(&place, "recipe suffices", acl::recipe_suffices);
    cases.each_on(&place, "foreign keys", acl::foreign_keys_are_denied);
    cases.each_on(&place, "missing rights", acl::missing_rights_are_found);
    cases.all_pass().await;
    let mut cases = Cases::new();
    for part in &rights::PARTS {
        cases.add(
            format!("{kind} nothing to spare for {}", part.what),
            minimal::nothing_to_spare(Arc::clone(&place), part),
        );
    }
    cases.all_pass().await;
    conformance::passes_as("suite:secret@", &place, conformance::BOTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_rights_suffice_on_one_server() {
    few_rights_suffice(TopologyKind::Standalone).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_rights_suffice_with_a_sentinel() {
    few_rights_suffice(ONE_SENTINEL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_rights_suffice_in_a_cluster() {
    few_rights_suffice(SHARDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn safety_modes_need_a_few_rights_more() {
    let with_a_replica = TopologyKind::Sentinel {
        replicas: 1,
        sentinels: 1,
    };
    let mut cases = Cases::new();
    for (kind, mode) in [
        (with_a_replica, rights::REPLICATED),
        (TopologyKind::Standalone, rights::QUARANTINE),
    ] {
        let place = Arc::new(servers(kind).await);
        let case = modes::just_enough(place, mode);
        cases.add(format!("{kind} {}", mode.options), case);
    }
    cases.all_pass().await;
}

/// One test, because logs belong to the whole process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_stay_secret() {
    secrets::never_shown().await;
}
