//! The primary dies and a replica takes over.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{CohortSettings, FencingToken, Locktopus, LostCause};
use locktopus_servers::topology::{Deployment, TopologyKind};
use tokio::sync::Barrier;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::common::raw::Raw;
use crate::common::{
    CLIENTS, Cases, LONG, SOON, close_both, eventually, locks, servers, unique, unique_of, url_for,
};
use crate::failover::At;
use crate::failover::holder::Holder;
use crate::failover::prober::Prober;
use crate::failover::queue::Queue;

/// Shorter than any failover.
const TOO_SHORT: Duration = Duration::from_millis(900);

/// Long enough for a renewal by the new primary.
const LONG_ENOUGH: Duration = Duration::from_secs(12);

const EACH: usize = 5;

pub(crate) async fn of_a_primary(kind: TopologyKind) {
    let place = Arc::new(servers(kind).await);
    let (armed, crashed) = (Arc::new(Barrier::new(3)), Arc::new(Barrier::new(3)));
    let mut cases = Cases::new();
    for client in CLIENTS {
        let barriers = (Arc::clone(&armed), Arc::clone(&crashed));
        let at = (Arc::clone(&place), client);
        cases.add(
            format!("{kind} {client} crash"),
            lives_through(at, barriers),
        );
    }
    let crash = async move {
        armed.wait().await;
        let key = name_on_the_victim(&place, "writable");
        let old = place.primary().await.unwrap();
        replicated(&place).await;
        let begun = Instant::now();
        old.crash().await.unwrap();
        crashed.wait().await;
        let new = place.wait_writable(&key, LONG).await.unwrap();
        format!(
            "{} replaced {} after {:.2?}",
            new.name(),
            old.name(),
            begun.elapsed()
        )
    };
    cases.add(format!("{kind} servers"), crash);
    cases.all_pass().await;
}

/// Waits until a replica has everything written so far: these tests are about crashes, not about
/// writes lost by asynchronous replication.
async fn replicated(place: &Deployment) {
    let mut raw = Raw::to(place.primary().await.unwrap()).await;
    // Every replica of this primary, because any of them may be promoted.
    let replicas = match place.kind() {
        TopologyKind::Sentinel { replicas, .. } => replicas,
        _ => 1,
    };
    let mark = name_on_the_victim(place, "mark");
    raw.say(&["SET", &mark, "1", "PX", "60000"]).await;
    let acknowledged = raw.say(&["WAIT", &replicas.to_string(), "2000"]).await;
    assert_eq!(acknowledged.int(), i64::from(replicas));
}

async fn lives_through((place, client): At, barriers: (Arc<Barrier>, Arc<Barrier>)) -> String {
    let locks = locks(&place, client).await;
    let waiting = patient(&place, client).await;
    let name = |what: &str| name_on_the_victim(&place, what);
    let (mut doomed, mut saved, mut waiters) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..EACH {
        let holder = Holder::of(&locks, name("doomed"), TOO_SHORT).await;
        waiters.push(wait(&waiting, &holder));
        doomed.push(holder);
        saved.push(Holder::of(&locks, name("saved"), LONG_ENOUGH).await);
    }
    let prober = Prober::start(locks.lock(name("probe")).fixed_lease(TOO_SHORT));
    let queue = Queue::of(&locks, &waiting, name("queue")).await;

    let (armed, crashed) = barriers;
    queue.lose(&place).await;
    armed.wait().await;
    crashed.wait().await;
    let at_crash = Instant::now();

    let mut causes = Vec::new();
    for holder in &doomed {
        causes.push(holder.loses(SOON).await);
    }
    let lost_after = at_crash.elapsed();
    for (holder, waiter) in doomed.iter().zip(waiters) {
        let next = timeout(LONG, waiter).await.expect("served after promotion");
        assert!(next.unwrap() > holder.token, "{}: tokens grow", holder.name);
    }
    let served_after = at_crash.elapsed();
    drop(doomed);

    // The new primary renewed it, so the deadline is later than any that the old one can have
    // given.
    let beyond = at_crash + LONG_ENOUGH;
    for Holder {
        name, guard, token, ..
    } in saved
    {
        eventually("a renewal by the new primary", LONG, async || {
            guard.ensure_valid().unwrap();
            (guard.valid_until() > beyond).then_some(()).ok_or(())
        })
        .await;
        guard.release().await.unwrap();
        let next = locks.lock(&name).acquire().await.unwrap();
        assert!(next.token().unwrap() > token);
        next.release().await.unwrap();
    }
    let rebuilt_after = queue.comes_back_and_is_served(at_crash).await;
    let record = prober.stop().await;
    assert!(record.outage() < LONG, "{record}");
    close_both(locks, waiting).await;
    let unreachable = |cause: &&LostCause| matches!(cause, LostCause::Unreachable { .. });
    format!(
        "short leases lost after {lost_after:.2?} ({}/{EACH} as unreachable), waiters served after \
         {served_after:.2?}, long leases survived, a lost queue was there again after {rebuilt_after:.2?}; prober {record}",
        causes.iter().filter(unreachable).count()
    )
}

/// A `Locktopus` whose waiters outlast any failover and each ask the server themselves.
async fn patient(place: &Deployment, client: &str) -> Locktopus {
    let url = url_for(place, client);
    let apart = CohortSettings {
        turns: 1,
        ..CohortSettings::default()
    };
    locktopus::connect_with(&url, |builder| builder.tolerate_outage(LONG).cohort(apart))
        .await
        .unwrap()
}

fn wait(locks: &Locktopus, holder: &Holder) -> JoinHandle<FencingToken> {
    let request = locks.lock(&holder.name).fixed_lease(LONG_ENOUGH);
    tokio::spawn(async move {
        let guard = request.acquire().await.unwrap();
        let token = guard.token().unwrap();
        guard.release().await.unwrap();
        token
    })
}

/// The first node dies; in a cluster, it serves the first third of the slots.
fn name_on_the_victim(place: &Deployment, what: &str) -> String {
    match place.kind() {
        TopologyKind::Cluster { primaries, .. } => unique_of(usize::from(primaries), 0, what),
        _ => unique(what),
    }
}
