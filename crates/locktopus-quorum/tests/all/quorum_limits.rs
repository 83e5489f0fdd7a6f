//! RedLock at its limits: its waits for nodes, its accepted settings, and its reports about nodes.

use crate::quorum_common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktopus_contract::{
    AcquireAttempt, Announcement, AttemptOutcome, BackendError, BackendErrorKind, Diagnostics,
    ExtendOutcome, ExtendRequest, FencingToken, Finding, InstanceId, InstanceQuery, InstanceRecord,
    Instances, Linger, LockBackend, LockKind, LockName, LockTarget, MutexProfile, NodeIdentity,
    NodeProbe, OwnerId, ReleaseOutcome, ReleaseRequest, Severity, ValidityMargin,
};
use locktopus_quorum::{QuorumBackend, QuorumBuilder};
use quorum_common::{
    Peer, cut, holders, mutex, peer, peers, probed, probing, trusted, trusting, until,
};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(10);
const MS: Duration = Duration::from_millis(1);

fn soon() -> Instant {
    Instant::now() + SECOND
}

fn attempt(target: &LockTarget, owner: &OwnerId) -> AcquireAttempt {
    AcquireAttempt::new(target.clone(), owner.clone(), LEASE, soon())
}

async fn try_once(quorum: &QuorumBackend) -> Result<AttemptOutcome, BackendErrorKind> {
    let attempt = attempt(&mutex("job"), &OwnerId::generate());
    let outcome = quorum.attempt(&attempt).await;
    outcome.map_err(|error| error.kind())
}

fn is_granted(outcome: &Result<AttemptOutcome, BackendErrorKind>) -> bool {
    matches!(outcome, Ok(AttemptOutcome::Granted { .. }))
}

#[tokio::test(start_paused = true)]
async fn a_node_that_answered_the_last_time_gets_all_its_time() {
    let peers = peers(3, 50);
    let quorum = trusted(&peers).node_timeout(SECOND).build().unwrap();
    peers[1].kill();
    peers[2].far(300 * MS);
    assert!(is_granted(&try_once(&quorum).await));
}

/// Only a silent node is missing. It gets as long again as the others took, plus a little.
#[tokio::test(start_paused = true)]
async fn a_silent_node_gets_as_long_again_as_the_others_took() {
    for (far, granted) in [(400 * MS, true), (500 * MS, false)] {
        let peers = peers(3, 51);
        let quorum = trusted(&peers).node_timeout(SECOND).build().unwrap();
        peers[2].kill();
        let other = attempt(&mutex("other"), &OwnerId::generate());
        let _ = quorum.attempt(&other).await.unwrap();
        until("nobody asks it any more", || quorum.background_tasks() == 0).await;
        peers[2].revive();
        peers[2].far(far);
        peers[1].kill();
        peers[0].far(200 * MS);
        assert_eq!(is_granted(&try_once(&quorum).await), granted, "{far:?}");
    }
}

/// A grant at the very end of its validity is not given out.
#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_when_its_validity_ends_comes_too_late() {
    let margin = ValidityMargin {
        drift_ppm: 0,
        clock_step: 28 * MS,
    };
    for (far, granted) in [(8 * MS, true), (10 * MS, false)] {
        let peers = peers(3, 52);
        let builder = trusted(&peers).node_timeout(SECOND);
        let quorum = builder.validity_margin(margin).build().unwrap();
        peers.iter().for_each(|peer| peer.far(far));
        let begun = Instant::now();
        // Without a token there is one round.
        let kind = LockKind::Mutex(Arc::new(MutexProfile::single_key()));
        let target = LockTarget::new(LockName::new("job").unwrap(), kind);
        let attempt = AcquireAttempt {
            lease: 40 * MS,
            ..attempt(&target, &OwnerId::generate())
        };
        let outcome = quorum.attempt(&attempt).await;
        if granted {
            assert!(matches!(outcome, Ok(AttemptOutcome::Granted { .. })));
            assert_eq!(begun.elapsed(), far);
        } else {
            assert_eq!(outcome.unwrap_err().kind(), BackendErrorKind::Timeout);
        }
    }
}

/// The same owner finds nodes that are still being cleaned of its last round, and waits for them.
#[tokio::test(start_paused = true)]
async fn an_owner_that_comes_again_waits_until_its_leavings_are_gone() {
    let (peers, quorum) = trusting(3, 53);
    peers.iter().for_each(|peer| peer.far(20 * MS));
    let again = attempt(&mutex("job"), &OwnerId::generate());
    assert!(cut(1, quorum.attempt(&again)).await.is_none());
    let outcome = quorum.attempt(&again).await.unwrap();
    assert!(matches!(outcome, AttemptOutcome::Granted { .. }));
    until("stragglers", || quorum.background_tasks() == 0).await;
    assert_eq!(holders(&peers), 3);
}

/// An attempt without an answer may run until its deadline, by the server's clock. Only a release
/// after that is final.
#[tokio::test(start_paused = true)]
async fn the_last_release_waits_until_no_attempt_can_arrive() {
    let (peers, quorum) = trusting(3, 54);
    let (target, owner) = (mutex("job"), OwnerId::generate());
    peers[2].freeze(true);
    let begun = Instant::now();
    let _ = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
    let release = ReleaseRequest::new(target.clone(), owner.clone(), soon());
    let released = quorum.release(&release).await.unwrap();
    assert_eq!(released, ReleaseOutcome::Released);
    sleep(150 * MS).await;
    peers[2].freeze(false);
    until("given back", || quorum.background_tasks() == 0).await;
    let (timeout, took) = (100 * MS, begun.elapsed());
    assert!(took >= 2 * timeout && took < 4 * timeout, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn what_may_be_configured_may_be_at_its_limits() {
    type Setter = fn(QuorumBuilder, Duration) -> QuorumBuilder;
    let (hour, year) = (3_600 * SECOND, 365 * 24 * 3_600 * SECOND);
    let nodes = || trusted(&peers(3, 55));
    let ways: [(&str, Setter, Duration); 3] = [
        ("node_timeout", QuorumBuilder::node_timeout, hour),
        ("max_lease", QuorumBuilder::max_lease, year),
        ("probe_every", QuorumBuilder::probe_every, year),
    ];
    for (option, set, most) in ways {
        // The margin uses up a lease of 1 ms.
        let least = if option == "max_lease" { 10 * MS } else { MS };
        for time in [least, most] {
            assert!(set(nodes(), time).build().is_ok(), "{option} {time:?}");
        }
        for time in [MS - Duration::from_nanos(1), most + MS] {
            let error = set(nodes(), time).build().unwrap_err();
            assert_eq!(error.option, option, "{time:?}");
        }
    }
    let quorum = nodes().node_timeout(300 * MS).build().unwrap();
    let info = quorum.info();
    let described = "quorum of 3 (a: peer (test), b: peer (test), c: peer (test))";
    assert_eq!(info.description, described);
    // Two calls, and something to spare.
    assert_eq!(info.call_timeout, 650 * MS);
    assert!(quorum.instances().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_probed_node_is_asked_again_as_often_as_is_configured() {
    let peers = peers(3, 56);
    let quorum = probed(&peers).probe_every(10 * SECOND).build().unwrap();
    for (pause, asked) in [(SECOND, 1), (10 * SECOND, 1), (MS, 2)] {
        assert!(is_granted(&try_once(&quorum).await));
        until("stragglers", || quorum.background_tasks() == 0).await;
        for peer in &peers {
            assert_eq!(peer.calls("identity"), asked);
            peer.store.clear();
        }
        sleep(pause).await;
    }
}

/// A majority decides without the silent nodes, and one refused lock does not hold up the others.
#[tokio::test(start_paused = true)]
async fn an_extension_is_decided_by_a_majority_and_told_as_each_node_tells_it() {
    let (peers, quorum) = trusting(5, 57);
    let (target, owner) = (mutex("job"), OwnerId::generate());
    let _ = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
    until("stragglers", || quorum.background_tasks() == 0).await;
    peers[4].freeze(true);
    let begun = Instant::now();
    let extend = ExtendRequest::new(target.clone(), owner.clone(), LEASE);
    let mut refused = extend.clone();
    refused.lease = 3_600 * SECOND;
    let answers = quorum.extend(&[extend.clone(), refused], soon()).await;
    assert_eq!(answers[0].as_ref().unwrap(), &ExtendOutcome::Extended);
    assert!(answers[1].is_err());
    assert_eq!(begun.elapsed(), Duration::ZERO);

    // Two have it, one lost it, one gave it to another owner, and one does not answer.
    assert!(peers[2].store.forget(&target) && peers[3].store.forget(&target));
    let other = attempt(&target, &OwnerId::generate());
    let _ = peers[3].store.attempt(&other).await.unwrap();
    let until = Instant::now() + 50 * MS;
    let mut answers = quorum.extend(&[extend], until).await;
    let error = answers.remove(0).unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::NoQuorum);
    for part in [
        "the extension needs 3 of 5 nodes",
        "a, b: extended; c: not held there; d: held by somebody else; e: no answer in time",
    ] {
        assert!(error.message().contains(part), "{error}");
    }
    peers[4].freeze(false);
}

#[tokio::test(start_paused = true)]
async fn when_all_have_answered_nothing_goes_on() {
    let (peers, quorum) = trusting(3, 58);
    peers.iter().for_each(|peer| peer.far(40 * MS));
    let begun = Instant::now();
    let _ = quorum.inspect(&mutex("job"), soon()).await.unwrap();
    assert_eq!(begun.elapsed(), 40 * MS);
    assert_eq!(quorum.background_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_may_answer_until_its_time_is_over_and_a_moment_longer() {
    for (far, granted) in [(108 * MS, true), (112 * MS, false)] {
        for builder in [trusted, probed] {
            let peers = peers(3, 62);
            let quorum = builder(&peers).build().unwrap();
            peers.iter().for_each(|peer| peer.far(far));
            assert_eq!(is_granted(&try_once(&quorum).await), granted, "{far:?}");
        }
    }
}

/// For a lease of 400 ms it has 100 ms, even if its timeout is longer.
#[tokio::test(start_paused = true)]
async fn a_node_may_take_a_quarter_of_the_lease() {
    for (far, granted) in [(108 * MS, true), (112 * MS, false)] {
        let peers = peers(3, 66);
        let quorum = trusted(&peers).node_timeout(SECOND).build().unwrap();
        peers.iter().for_each(|peer| peer.far(far));
        let kind = LockKind::Mutex(Arc::new(MutexProfile::single_key()));
        let target = LockTarget::new(LockName::new("job").unwrap(), kind);
        let attempt = AcquireAttempt {
            lease: 400 * MS,
            ..attempt(&target, &OwnerId::generate())
        };
        assert_eq!(quorum.attempt(&attempt).await.is_ok(), granted, "{far:?}");
    }
}

/// A node that tells its identity at the last moment can still vote.
#[tokio::test(start_paused = true)]
async fn a_node_may_say_who_it_is_until_the_deadline() {
    let peers = peers(3, 67);
    let nodes = ["a", "b", "c"].into_iter().zip(&peers);
    let builder = nodes.fold(QuorumBackend::builder(), |builder, (label, peer)| {
        let says = Says(NodeIdentity::new(label, 3_600 * SECOND), 995 * MS);
        builder.probed_node(label, Arc::new(peer.clone()), Arc::new(says))
    });
    let quorum = builder.node_timeout(2 * SECOND).build().unwrap();
    assert!(is_granted(&try_once(&quorum).await));
}

/// The server behind a node may change, and may then be behind another node.
#[derive(Debug, Clone)]
struct Moves(Arc<Mutex<(u64, &'static str)>>);

#[async_trait::async_trait]
impl NodeProbe for Moves {
    fn generation(&self) -> u64 {
        self.0.lock().unwrap().0
    }

    async fn identity(&self, _deadline: Instant) -> Result<NodeIdentity, BackendError> {
        let server = self.0.lock().unwrap().1;
        Ok(NodeIdentity::new(server, 3_600 * SECOND))
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_behind_another_node_now_votes_there() {
    let peers = peers(3, 68);
    let probes = ["x", "y", "z"].map(|server| Moves(Arc::new(Mutex::new((1, server)))));
    let nodes = ["a", "b", "c"].into_iter().zip(peers.iter().zip(&probes));
    let builder = nodes.fold(
        QuorumBackend::builder(),
        |builder, (label, (peer, probe))| {
            builder.probed_node(label, Arc::new(peer.clone()), Arc::new(probe.clone()))
        },
    );
    let quorum = builder.build().unwrap();
    assert!(is_granted(&try_once(&quorum).await));
    for (probe, server) in probes.iter().zip(["new", "y", "x"]) {
        *probe.0.lock().unwrap() = (2, server);
    }
    // The quorum reads their identities, and they are too young to vote.
    let diagnosis = quorum.diagnose(soon()).await.unwrap();
    assert!(diagnosis.findings.len() >= 2, "{diagnosis:?}");
    sleep(61 * SECOND).await;
    peers[1].kill();
    assert!(is_granted(&try_once(&quorum).await));
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_call_failed_is_asked_again_who_it_is() {
    let (peers, quorum) = probing(3, 69);
    for (lost, asked) in [(0, 1), (1000, 1), (0, 2)] {
        peers[2].lose(lost);
        let attempt = attempt(&mutex(&format!("job-{asked}-{lost}")), &OwnerId::generate());
        let _ = quorum.attempt(&attempt).await.unwrap();
        until("stragglers", || quorum.background_tasks() == 0).await;
        assert_eq!(peers[2].calls("identity"), asked, "{lost}");
    }
    // One of several answers is enough.
    let failing = FailsToExtend {
        peer: peers[2].clone(),
    };
    let quorum = QuorumBackend::builder()
        .probed_node("a", Arc::new(peers[0].clone()), Arc::new(peers[0].clone()))
        .probed_node("b", Arc::new(peers[1].clone()), Arc::new(peers[1].clone()))
        .probed_node("c", Arc::new(failing), Arc::new(peers[2].clone()))
        .build()
        .unwrap();
    for asked in [3, 4] {
        let extend = ExtendRequest::new(mutex("job"), OwnerId::generate(), LEASE);
        let _ = quorum.extend(&[extend], soon()).await;
        until("stragglers", || quorum.background_tasks() == 0).await;
        assert_eq!(peers[2].calls("identity"), asked);
    }
}

/// Fails every extension, in time.
#[derive(Debug)]
struct FailsToExtend {
    peer: Peer,
}

#[async_trait::async_trait]
impl locktopus_contract::Layer for FailsToExtend {
    fn inner(&self) -> &dyn LockBackend {
        &self.peer
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        self.peer.lose(1000);
        let answers = self.inner().extend(batch, deadline).await;
        self.peer.lose(0);
        answers
    }
}

/// A place in a queue, and whether the lease can be recalled.
type Asked = (Option<Duration>, bool);

/// Notes what its attempts ask for besides the lock.
#[derive(Debug)]
struct Notes {
    peer: Peer,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[async_trait::async_trait]
impl locktopus_contract::Layer for Notes {
    fn inner(&self) -> &dyn LockBackend {
        &self.peer
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let asked = (attempt.place, attempt.recall);
        self.asked.lock().unwrap().push(asked);
        self.inner().attempt(attempt).await
    }
}

/// Nodes have no common order, so no one queues at a node or has a lease recalled there.
#[tokio::test(start_paused = true)]
async fn nobody_queues_at_a_node() {
    let peers = peers(3, 70);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let nodes = ["a", "b", "c"].into_iter().zip(&peers);
    let builder = nodes.fold(QuorumBackend::builder(), |builder, (label, peer)| {
        let (peer, asked) = (peer.clone(), Arc::clone(&asked));
        builder.node(label, Arc::new(Notes { peer, asked }))
    });
    let attempt = AcquireAttempt {
        place: Some(SECOND),
        recall: true,
        ..attempt(&mutex("job"), &OwnerId::generate())
    };
    let _ = builder.build().unwrap().attempt(&attempt).await.unwrap();
    let asked = asked.lock().unwrap().clone();
    assert!(
        asked.len() >= 3 && asked.iter().all(|asked| *asked == (None, false)),
        "{asked:?}"
    );
}

/// A node that forgot the lock gets the lock's token. Otherwise the next holder's token could be
/// smaller. The node was down, because these nodes forget their locks but not their counters.
#[tokio::test(start_paused = true)]
async fn what_is_put_back_has_the_token_that_was_given_out() {
    let (peers, quorum) = trusting(3, 71);
    let (target, owner) = (mutex("job"), OwnerId::generate());
    // Ahead of all clocks: those of the nodes count microseconds since 1970.
    let far_ahead = FencingToken::new(1 << 52);
    assert!(far_ahead.is_some());
    let attempt = AcquireAttempt {
        floor: far_ahead,
        ..attempt(&target, &owner)
    };
    peers[2].kill();
    let outcome = quorum.attempt(&attempt).await.unwrap();
    assert!(matches!(outcome, AttemptOutcome::Granted { token } if token >= far_ahead));
    until("stragglers", || quorum.background_tasks() == 0).await;
    assert_eq!(holders(&peers), 2);
    peers[2].revive();
    let extend = ExtendRequest::new(target.clone(), owner, LEASE);
    let _ = quorum.extend(&[extend], soon()).await;
    until("put back", || holders(&peers) == 3).await;
    let state = peers[2].store.inspect(&target, soon()).await.unwrap();
    assert!(state.last_token >= far_ahead, "{:?}", state.last_token);
}

/// A node with a restored lock remembers it as long as the others do: jobs read from tokens which
/// runs have begun.
#[tokio::test(start_paused = true)]
async fn what_is_put_back_is_remembered_as_long_as_was_asked_for() {
    let (peers, quorum) = trusting(3, 72);
    let (target, owner) = (mutex("job"), OwnerId::generate());
    let keep = 100 * LEASE;
    let attempt = AcquireAttempt {
        token_retention: Some(keep.into()),
        ..attempt(&target, &owner)
    };
    let outcome = quorum.attempt(&attempt).await.unwrap();
    let AttemptOutcome::Granted { token } = outcome else {
        panic!("{outcome:?}");
    };
    until("stragglers", || quorum.background_tasks() == 0).await;
    peers[2].store.clear();
    let extend = ExtendRequest::new(target.clone(), owner.clone(), LEASE);
    let _ = quorum.extend(&[extend], soon()).await;
    until("put back", || holders(&peers) == 3).await;
    let put_back = Instant::now();
    let release = ReleaseRequest::new(target.clone(), owner, soon());
    let released = quorum.release(&release).await.unwrap();
    assert_eq!(released, ReleaseOutcome::Released);
    until("given back", || holders(&peers) == 0).await;
    let remembered = async || {
        let state = peers[2].store.inspect(&target, soon()).await.unwrap();
        state.last_token
    };
    assert!(token.is_some() && remembered().await >= token);
    sleep(keep - put_back.elapsed() + SECOND).await;
    assert_eq!(remembered().await, None);
}

/// A release counts if a majority released the lock or at least did not deny it. Otherwise the
/// error lists each node's answer.
#[tokio::test(start_paused = true)]
async fn a_release_is_told_as_each_node_tells_it() {
    let (peers, quorum) = trusting(5, 63);
    let (target, owner) = (mutex("job"), OwnerId::generate());
    let release = || ReleaseRequest::new(target.clone(), owner.clone(), Instant::now() + 90 * MS);
    let _ = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
    until("stragglers", || quorum.background_tasks() == 0).await;
    peers.iter().for_each(|peer| peer.far(40 * MS));
    assert_eq!(
        quorum.release(&release()).await.unwrap(),
        ReleaseOutcome::Released
    );

    let _ = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
    until("stragglers", || quorum.background_tasks() == 0).await;
    assert!(peers[1].store.forget(&target));
    peers[2].kill();
    peers[3].kill();
    peers[4].freeze(true);
    let error = quorum.release(&release()).await.unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::NoQuorum);
    let told = error.message();
    for part in [
        "the release needs 3 of 5 nodes; a: released; b: not held; c, d: ",
        "e: no answer in time",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(told.matches("it is down").count(), 1, "{told}");
}

/// A node that is down gets fewer and fewer releases, and none once the lease is over.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_down_is_not_asked_without_end() {
    let (peers, quorum) = trusting(3, 64);
    let (target, owner) = (mutex("job"), OwnerId::generate());
    let _ = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
    until("stragglers", || quorum.background_tasks() == 0).await;
    peers[2].kill();
    let begun = Instant::now();
    let release = ReleaseRequest::new(target.clone(), owner.clone(), soon());
    let _ = quorum.release(&release).await.unwrap();
    until("given up", || quorum.background_tasks() == 0).await;
    let (took, asked) = (begun.elapsed(), peers[2].calls("release"));
    // The attempt could have run until its deadline.
    assert!(took >= LEASE && took <= LEASE + 2 * SECOND, "{took:?}");
    // After 20, 40, 80, 160, 320 and 640 ms, and then every second.
    assert!((15..=19).contains(&asked), "{asked}");
}

/// The quorum waits for an attempt under way before it releases, so one release is enough.
#[tokio::test(start_paused = true)]
async fn a_release_follows_the_attempt_that_is_on_its_way() {
    let (peers, quorum) = trusting(3, 65);
    peers.iter().for_each(|peer| peer.far(40 * MS));
    let dropped = attempt(&mutex("job"), &OwnerId::generate());
    assert!(cut(1, quorum.attempt(&dropped)).await.is_none());
    sleep(35 * MS).await;
    let released = || peers.iter().map(|peer| peer.calls("release"));
    assert_eq!(released().sum::<usize>(), 0);
    until("given back", || quorum.background_tasks() == 0).await;
    assert_eq!(released().sum::<usize>(), 3);
    assert_eq!(holders(&peers), 0);
}

#[tokio::test(start_paused = true)]
async fn a_quorum_says_what_it_is() {
    let (_, quorum) = trusting(5, 60);
    assert_eq!(quorum.majority(), 3);
    // The shard number is that of a node.
    assert_eq!(quorum.shard(&mutex("seven.7")), 7);
    let shown = format!("{quorum:?}");
    for part in ["QuorumBackend", "label: \"e\"", "max_lease: 60s"] {
        assert!(shown.contains(part), "{shown}");
    }
    for (kind, why) in [
        (LockKind::Reentrant, "plain mutexes"),
        (LockKind::Fair, "arrival order"),
        (LockKind::Read, "readers and writers"),
        (LockKind::Write, "readers and writers"),
        (LockKind::Semaphore, "several permits"),
        (LockKind::PermitSemaphore, "several permits"),
        (LockKind::RateLimiter, "a clock of its own"),
        (LockKind::Latch, "a count"),
    ] {
        let target = LockTarget::new(LockName::new("job").unwrap(), kind);
        let refused = quorum.check(&target).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    assert!(quorum.check(&mutex("job")).is_ok());
}

/// Pending releases get a moment. After that, nothing is sent.
#[tokio::test(start_paused = true)]
async fn a_closed_quorum_asks_nobody() {
    let (peers, quorum) = trusting(3, 61);
    peers.iter().for_each(|peer| peer.far(20 * MS));
    let dropped = attempt(&mutex("job"), &OwnerId::generate());
    assert!(cut(1, quorum.attempt(&dropped)).await.is_none());
    let begun = Instant::now();
    quorum.close().await;
    assert!(begun.elapsed() >= 40 * MS, "{:?}", begun.elapsed());
    let asked = peers[0].calls("attempt");
    assert_eq!(try_once(&quorum).await, Err(BackendErrorKind::Closed));
    assert_eq!(peers[0].calls("attempt"), asked);
    for peer in &peers {
        assert_eq!(peer.calls("release"), 1);
        let error = peer.store.attempt(&dropped).await.unwrap_err();
        assert_eq!(error.kind(), BackendErrorKind::Closed);
    }
}

/// A probe that gives a fixed answer after a delay.
#[derive(Debug)]
struct Says(NodeIdentity, Duration);

#[async_trait::async_trait]
impl NodeProbe for Says {
    fn generation(&self) -> u64 {
        1
    }

    async fn identity(&self, _deadline: Instant) -> Result<NodeIdentity, BackendError> {
        sleep(self.1).await;
        Ok(self.0.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_fail_together_are_told() {
    // The first two and the fifth have one address. The third has the data of the fourth, and the
    // fifth is the second. Each pair is reported once.
    let peers = [peer(1), peer(1), peer(2), peer(3), peer(1)];
    let up = |run: &str| NodeIdentity::new(run, 3_600 * SECOND);
    let identities = [
        up("1"),
        up("2"),
        up("3").with_replication_id("x"),
        up("4").with_replication_id("x"),
        up("2").with_replication_id("y"),
    ];
    let nodes = ["a", "b", "c", "d", "e"].into_iter().zip(&peers);
    let builder = nodes.zip(identities).fold(
        QuorumBackend::builder(),
        |builder, ((label, peer), says)| {
            let says = Arc::new(Says(says, Duration::ZERO));
            builder.probed_node(label, Arc::new(peer.clone()), says)
        },
    );
    let diagnosis = builder.build().unwrap().diagnose(soon()).await.unwrap();
    let findings = || diagnosis.findings.iter();
    let found = findings().filter(|finding| finding.check == "independent");
    let found = found.map(|finding: &Finding| finding.message.split(';').next().unwrap());
    let mut found: Vec<&str> = found.collect();
    found.sort_unstable();
    let expected = [
        "a and b have the same address",
        "a and e have the same address",
        "b and e are the same server",
        "c and d are replicas of each other",
    ];
    assert_eq!(found, expected);
    assert!(findings().all(|finding| finding.severity != Severity::Warning));
    assert_eq!(diagnosis.findings[0].severity, Severity::Danger);
}

fn keeping() -> (Vec<Peer>, QuorumBackend) {
    let peers = peers(3, 59).into_iter();
    let peers: Vec<_> = peers.map(Peer::keeping_instances).collect();
    let quorum = trusted(&peers).build().unwrap();
    assert!(quorum.instances().is_some());
    (peers, quorum)
}

fn announcement(instance: InstanceId, record: Option<&str>) -> Announcement {
    Announcement {
        namespace: "ns".to_owned(),
        instance,
        record: record.map(InstanceRecord::new),
        keep: 60 * SECOND,
        deadline: soon(),
    }
}

fn query(instances: &[InstanceId]) -> InstanceQuery {
    InstanceQuery {
        namespace: "ns".to_owned(),
        instances: instances.to_vec(),
        deadline: soon(),
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_instance_says_is_kept_by_every_node_and_taken_back_from_every_node() {
    let (peers, quorum) = keeping();
    let [known, unknown] = [1, 2].map(|n| InstanceId::from_bytes([n; 6]));
    for (far, peer) in (1..).zip(&peers) {
        peer.far(far * 20 * MS);
    }
    let begun = Instant::now();
    quorum
        .announce(&announcement(known, Some("web")))
        .await
        .unwrap();
    assert_eq!(begun.elapsed(), 20 * MS, "one that has it is enough");
    until("the others are told", || quorum.background_tasks() == 0).await;
    for peer in &peers {
        let told = peer.store.records(&query(&[known])).await.unwrap();
        assert_eq!(told, [Some(InstanceRecord::new("web"))]);
    }
    let begun = Instant::now();
    let told = quorum.records(&query(&[known])).await.unwrap();
    assert_eq!(told, [Some(InstanceRecord::new("web"))]);
    assert_eq!(begun.elapsed(), 20 * MS, "nobody else is asked");
    let told = quorum.records(&query(&[unknown, known])).await.unwrap();
    assert_eq!(told, [None, Some(InstanceRecord::new("web"))]);

    let begun = Instant::now();
    quorum.announce(&announcement(known, None)).await.unwrap();
    assert_eq!(begun.elapsed(), 60 * MS, "it is to be gone");
    for peer in &peers {
        let told = peer.store.records(&query(&[known])).await.unwrap();
        assert_eq!(told, [None]);
    }
}

#[tokio::test(start_paused = true)]
async fn where_no_node_answers_nobody_knows_an_instance() {
    let (peers, quorum) = keeping();
    let instance = InstanceId::from_bytes([1; 6]);
    peers.iter().for_each(|peer| peer.kill());
    let error = quorum.announce(&announcement(instance, Some("web"))).await;
    assert_eq!(error.unwrap_err().kind(), BackendErrorKind::Unavailable);
    let error = quorum.records(&query(&[instance])).await;
    assert_eq!(error.unwrap_err().kind(), BackendErrorKind::Unavailable);
    for peer in &peers {
        peer.revive();
        peer.freeze(true);
    }
    let begun = Instant::now();
    let error = quorum.announce(&announcement(instance, Some("web"))).await;
    assert_eq!(error.unwrap_err().kind(), BackendErrorKind::Timeout);
    // A node has the timeout of its calls, even if the overall deadline is later.
    assert_eq!(begun.elapsed(), 100 * MS);
    let begun = Instant::now();
    let error = quorum.records(&query(&[instance])).await;
    assert_eq!(error.unwrap_err().kind(), BackendErrorKind::Timeout);
    assert_eq!(begun.elapsed(), 100 * MS);
}

/// The deadlines of its calls, counted from when they were made.
#[derive(Debug)]
struct Timed {
    peer: Peer,
    told: Arc<Mutex<Vec<(&'static str, Duration)>>>,
}

impl Timed {
    fn note(&self, call: &'static str, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now());
        self.told.lock().unwrap().push((call, left));
    }
}

#[async_trait::async_trait]
impl locktopus_contract::Layer for Timed {
    fn inner(&self) -> &dyn LockBackend {
        &self.peer
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        self.note("release", request.deadline);
        self.inner().release(request).await
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }
}

#[async_trait::async_trait]
impl Instances for Timed {
    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        self.note("announce", announcement.deadline);
        self.peer.announce(announcement).await
    }

    async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        self.note("instances", query.deadline);
        self.peer.records(query).await
    }
}

/// A server that waits for a lock must not wait for longer than its caller does.
#[tokio::test(start_paused = true)]
async fn a_node_is_told_its_own_deadline_and_not_that_of_the_whole() {
    let (peers, _) = keeping();
    let told = Arc::new(Mutex::new(Vec::new()));
    let nodes = ["a", "b", "c"].into_iter().zip(&peers);
    let builder = nodes.fold(QuorumBackend::builder(), |builder, (label, peer)| {
        let (peer, told) = (peer.clone(), Arc::clone(&told));
        builder.node(label, Arc::new(Timed { peer, told }))
    });
    let quorum = builder.node_timeout(70 * MS).build().unwrap();
    let instance = InstanceId::from_bytes([1; 6]);
    let says = announcement(instance, Some("web"));
    quorum.announce(&says).await.unwrap();
    let known = quorum.records(&query(&[instance])).await.unwrap();
    assert_eq!(known, [says.record]);
    let release = ReleaseRequest::new(mutex("job"), OwnerId::generate(), soon());
    let released = quorum.release(&release).await.unwrap();
    assert_eq!(released, ReleaseOutcome::NotHeld);
    until("stragglers", || quorum.background_tasks() == 0).await;
    let told = told.lock().unwrap().clone();
    for call in ["announce", "instances", "release"] {
        let calls: Vec<_> = told.iter().filter(|(made, _)| *made == call).collect();
        assert!(!calls.is_empty(), "{call}: {told:?}");
        assert!(calls.iter().all(|(_, left)| *left == 70 * MS), "{told:?}");
    }
}

/// A node that was down during the release hears of it later, and keeps the lock held as long as
/// the others.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_cleaned_later_leaves_the_lock_held_as_well() {
    let (peers, quorum) = trusting(3, 72);
    let (target, owner, heir) = (mutex("job"), OwnerId::generate(), OwnerId::generate());
    let _ = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
    until("stragglers", || quorum.background_tasks() == 0).await;
    peers[2].kill();
    let mut release = ReleaseRequest::new(target.clone(), owner, soon());
    release.linger = Some(Linger {
        heir: heir.clone(),
        time: 5 * SECOND,
    });
    let released = quorum.release(&release).await.unwrap();
    assert_eq!(released, ReleaseOutcome::Released);
    sleep(100 * MS).await;
    peers[2].revive();
    until("given back", || quorum.background_tasks() == 0).await;
    for peer in &peers {
        let state = peer.store.inspect(&target, soon()).await.unwrap();
        let owners: Vec<_> = state.holders.iter().map(|holder| &holder.owner).collect();
        assert_eq!(owners, [&heir]);
    }
}
