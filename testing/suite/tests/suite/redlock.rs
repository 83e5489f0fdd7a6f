//! Redlock on five real servers, through different client libraries.

use std::time::{Duration, SystemTime};

use locktopus::{
    BackendErrorKind, CatchUp, Job, LockBackend as _, LockError, Locktopus, MutexProfile, Sighting,
    quorum_of,
};
use locktopus_protocol::{BackendOptions, RedisBackend};
use locktopus_servers::topology::{Deployment, Knobs, Resp, TopologyKind, clock_or_skip};
use tokio::time::Instant;

use crate::common::{
    CLIENTS, SOON, close, close_both, eventually, plain_url_for, servers, servers_with, unique, url,
};

const LEASE: Duration = Duration::from_secs(2);

/// One URL for each node; the clients alternate.
fn urls(place: &Deployment) -> Vec<String> {
    place
        .nodes()
        .iter()
        .enumerate()
        .map(|(at, node)| {
            let client = CLIENTS[at % CLIENTS.len()];
            url(
                &format!("redis://{}", node.addr()),
                &format!("client={client}"),
            )
        })
        .collect()
}

/// Locks whose longest lease is two seconds, so that a restarted node votes again soon.
fn locks(place: &Deployment) -> Locktopus {
    let quorum = quorum_of(&urls(place), |builder| builder.max_lease(LEASE)).unwrap();
    Locktopus::builder(quorum)
        .renewed_lease(LEASE)
        .max_lease(LEASE)
        .tolerate_outage(Duration::from_secs(1))
        .build()
        .unwrap()
}

/// Servers that were just started do not vote yet.
async fn until_granted(locks: &Locktopus) {
    eventually("a majority votes", SOON * 2, async || {
        let guard = locks.mutex(unique("warm")).try_acquire().await;
        match guard {
            Ok(Some(guard)) => guard.release().await.map_err(|error| error.to_string()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

async fn until_all_vote(locks: &Locktopus) {
    until_granted(locks).await;
    eventually("every node votes", SOON, async || {
        let diagnosis = locks.diagnose().await.map_err(|error| error.to_string())?;
        let mut findings = diagnosis.findings.into_iter();
        let not_yet = findings.find(|finding| finding.check == "rejoin");
        not_yet.map_or(Ok(()), |finding| Err(finding.to_string()))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_five_may_die_and_three_may_not() {
    let place = servers(TopologyKind::QUORUM).await;
    let (a, b) = (locks(&place), locks(&place));
    until_all_vote(&a).await;
    until_all_vote(&b).await;
    let name = unique("redlock");
    let guard = a.mutex(&name).acquire().await.unwrap();
    let first = guard.token().expect("written back to a majority");
    assert!(b.mutex(&name).try_acquire().await.unwrap().is_none());

    for node in &place.nodes()[..2] {
        node.crash().await.unwrap();
    }
    // The three remaining servers renew it for longer than its lease.
    let until = Instant::now() + LEASE + LEASE / 2;
    let mut refused = 0;
    while Instant::now() < until || refused == 0 {
        guard.ensure_valid().unwrap();
        match b.mutex(&name).try_acquire().await {
            Ok(None) => refused += 1,
            // All three must answer in time, and on a busy machine one may not.
            Err(LockError::Backend { source, .. })
                if source.kind() == BackendErrorKind::NoQuorum => {}
            other => panic!("{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    guard.release().await.unwrap();
    let guard = b.mutex(&name).wait_at_most(SOON).acquire().await.unwrap();
    assert!(guard.token().unwrap() > first, "tokens grow");

    place.nodes()[2].crash().await.unwrap();
    let lost = tokio::time::timeout(LEASE + SOON, guard.lost()).await;
    assert!(lost.is_ok(), "two of five cannot renew");
    drop(guard);
    let refused = a.mutex(unique("none")).try_acquire().await.unwrap_err();
    let LockError::Backend { source, .. } = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(source.kind(), BackendErrorKind::NoQuorum, "{refused:?}");
    for node in place.nodes() {
        let address = node.addr().to_string();
        assert!(
            source.message().contains(&address),
            "{address} is missing in {}",
            source.message()
        );
    }
    // The servers are gone, so leases that cannot be released expire.
    let _ = a.shutdown(Duration::ZERO).await;
    let _ = b.shutdown(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_node_does_not_vote_until_every_lease_it_forgot_is_over() {
    let place = servers(TopologyKind::Quorum { nodes: 3 }).await;
    let (a, b) = (locks(&place), locks(&place));
    until_all_vote(&a).await;
    until_all_vote(&b).await;
    let name = unique("amnesia");
    // Held on two of three.
    place.nodes()[2].crash().await.unwrap();
    let guard = a.mutex(&name).fixed_lease(LEASE).acquire().await.unwrap();
    let granted = Instant::now();
    // The third is back and knows nothing; one of the two restarts and knows nothing either.
    place.nodes()[2].start().await.unwrap();
    place.nodes()[1].crash().await.unwrap();
    place.nodes()[1].start().await.unwrap();
    while guard.ensure_valid().is_ok() {
        let second = b.mutex(&name).try_acquire().await;
        assert!(
            !matches!(second, Ok(Some(_))) || guard.ensure_valid().is_err(),
            "granted twice {:?} after the first grant",
            granted.elapsed()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let again = b.mutex(&name).wait_at_most(SOON * 2).acquire().await;
    again.unwrap().release().await.unwrap();
    drop(guard);
    close_both(a, b).await;
}

/// Each run of a job starts once, by tokens that a majority keeps. After the third server died, two
/// have the token of the run.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_a_job_is_begun_once_and_any_majority_knows() {
    let place = servers(TopologyKind::Quorum { nodes: 3 }).await;
    let (a, b) = (locks(&place), locks(&place));
    until_all_vote(&a).await;
    until_all_vote(&b).await;
    let name = unique("job");
    let first = SystemTime::now() - Duration::from_secs(30);
    let begun = async |locks: &Locktopus, times: [SystemTime; 2]| {
        let job = Job::new(locks, &name).at_times(times);
        let mut tokens = Vec::new();
        let all = job
            .catch_up(CatchUp::Once)
            .tolerance(SOON * 10)
            .run(|tick| {
                tokens.push(tick.token().unwrap());
                std::future::ready(())
            });
        tokio::time::timeout(SOON, all).await.unwrap().unwrap();
        tokens
    };
    let one = begun(&a, [first - LEASE, first]).await;
    assert_eq!(one.len(), 1);
    assert_eq!(begun(&b, [first - LEASE, first]).await, []);
    place.nodes()[0].crash().await.unwrap();
    assert_eq!(begun(&b, [first - LEASE, first]).await, []);
    let next = begun(&b, [first, first + LEASE]).await;
    assert!(next.len() == 1 && next > one, "{next:?} after {one:?}");
    assert_eq!(begun(&a, [first, first + LEASE]).await, []);
    close_both(b, a).await;
}

/// One server's note about another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_note_says_who_was_there_whatever_the_clock_does_since() {
    let place = servers(TopologyKind::Standalone).await;
    for client in CLIENTS {
        let client = locktopus::connect_client(&*plain_url_for(&place, client)).await;
        let backend = RedisBackend::new(client.unwrap(), BackendOptions::default()).await;
        let probe = backend.unwrap().probe().unwrap();
        let soon = || Instant::now() + SOON;
        let (label, minute) = (unique("node"), Duration::from_secs(60));
        assert_eq!(probe.sighting(&label, soon()).await.unwrap(), None);
        let seen = Sighting::new("run", minute);
        probe.note_sighting(&label, &seen, soon()).await.unwrap();
        let told = probe.sighting(&label, soon()).await.unwrap().unwrap();
        let since = minute..minute + SOON;
        assert!(
            told.run_id == "run" && since.contains(&told.age),
            "{told:?}"
        );
        // A note from a clock that was far ahead before it was corrected.
        let note = "9999999999999 run";
        let ahead = ["HSET", "locktopus_history_runs", &label, note];
        place.nodes()[0].command(&ahead).await.unwrap();
        let told = probe.sighting(&label, soon()).await.unwrap();
        assert_eq!(told, Some(Sighting::new("run", Duration::MAX)));
    }
}

/// Every server is up and the lock is free: the lack of earlier connections is no reason to refuse.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_attempt_of_a_program_is_granted() {
    let place = servers(TopologyKind::Quorum { nodes: 3 }).await;
    let first = locks(&place);
    until_all_vote(&first).await;
    // Uptimes are rounded down, by up to two seconds.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let fresh = locks(&place);
    let guard = fresh.mutex(unique("fresh")).try_acquire().await.unwrap();
    guard.unwrap().release().await.unwrap();
    close_both(first, fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_starts_while_a_minority_is_down() {
    let place = servers(TopologyKind::Quorum { nodes: 3 }).await;
    place.nodes()[0].crash().await.unwrap();
    let locks = locks(&place);
    until_granted(&locks).await;
    let guard = locks.mutex(unique("late")).acquire().await.unwrap();
    place.nodes()[0].start().await.unwrap();
    guard.release().await.unwrap();
    close(locks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_look_as_to_other_redlocks() {
    let place = servers(TopologyKind::Quorum { nodes: 3 }).await;
    let locks = locks(&place);
    until_all_vote(&locks).await;
    let name = unique("shared");
    let request = locks.mutex_as(&name, MutexProfile::single_key());
    let guard = request.acquire().await.unwrap();
    // A majority grants at once; requests to the others may still be on their way, or be too late.
    let mut holders = 0;
    for node in place.nodes() {
        let value = node.command(&["GET", &name]).await.unwrap();
        if value == Resp::Nil {
            continue;
        }
        holders += 1;
        assert_eq!(value.text().as_bytes(), guard.owner_id().expose());
        let left = node.command(&["PTTL", &name]).await.unwrap().text();
        assert!(left.parse::<i64>().unwrap() > 0, "{left}");
    }
    assert!(holders >= 2, "{holders} of 3 have it");
    guard.release().await.unwrap();
    eventually("released everywhere", SOON, async || {
        for node in place.nodes() {
            let there = node.command(&["EXISTS", &name]).await.unwrap().text();
            if there != "0" {
                return Err(there);
            }
        }
        Ok(())
    })
    .await;
    close(locks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_kinds_and_other_deployments_are_refused() {
    let place = servers(TopologyKind::Quorum { nodes: 3 }).await;
    let quorum = quorum_of(&urls(&place), |builder| builder).unwrap();
    assert!(!quorum.info().supports_queue);
    let locks = Locktopus::builder(quorum).build().unwrap();
    let error = locks.fair_lock("f").try_acquire().await.unwrap_err();
    assert!(error.to_string().contains("quorum"), "{error}");
    let error =
        locktopus::connect_quorum(&["redis-cluster://127.0.0.1:1", "redis://b", "redis://c"])
            .await
            .unwrap_err();
    assert!(error.to_string().contains("standalone"), "{error}");
    close(locks).await;
}

/// Three of five servers lose their data while their clocks are an hour behind. The clocks are soon
/// corrected, and the servers then report an uptime of an hour.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_started_with_a_wrong_clock_do_not_vote_early() {
    const HELD: Duration = Duration::from_secs(8);
    if !clock_or_skip().unwrap() {
        return;
    }
    let knobs = Knobs {
        settable_clock: true,
        ..Knobs::default()
    };
    let place = servers_with(TopologyKind::QUORUM, knobs).await;
    let fresh = || {
        let quorum = quorum_of(&urls(&place), |builder| builder.max_lease(HELD)).unwrap();
        Locktopus::builder(quorum)
            .renewed_lease(LEASE)
            .max_lease(HELD)
            .build()
            .unwrap()
    };
    let holder = fresh();
    until_all_vote(&holder).await;
    let name = unique("clocks");
    let request = holder.mutex(&name).fixed_lease(HELD);
    let held = request.acquire().await.unwrap();
    let until = Instant::now() + held.remaining();
    for node in &place.nodes()[..3] {
        node.crash().await.unwrap();
        node.start().await.unwrap();
    }
    for node in &place.nodes()[..3] {
        node.set_clock_ahead(Duration::from_secs(3600)).unwrap();
        let info = node.command(&["INFO", "server"]).await.unwrap().text();
        let up = info
            .lines()
            .find_map(|line| line.strip_prefix("uptime_in_seconds:"))
            .unwrap();
        assert!(up.trim().parse::<u64>().unwrap() >= 3600, "{up}");
    }
    assert!(Instant::now() < until, "the machine is too slow for this");
    let others = [fresh(), fresh()];
    let granted = eventually("a grant to somebody else", HELD * 2 + SOON, async || {
        for other in &others {
            if let Ok(Some(guard)) = other.mutex(&name).try_acquire().await {
                let at = Instant::now();
                guard.release().await.unwrap();
                return Ok(at);
            }
        }
        Err("not yet")
    })
    .await;
    assert!(granted >= until, "granted {:?} early", until - granted);
    drop(held);
    let _ = holder.shutdown(Duration::ZERO).await;
    for other in others {
        close(other).await;
    }
}
