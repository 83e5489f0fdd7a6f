//! Which calls are sent together, and the outcome of each. The test decides what the server
//! answers, and when.

use locktopus_contract::{BackendErrorKind, Executed};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use super::bench::{Answer, Bench, Caller};
use super::*;
use crate::scripts::{LOCK, MUTEX};

fn refused(line: &str) -> Answer {
    Err(ClientError::rejected(line))
}

async fn executed(caller: Caller) -> (BackendErrorKind, Executed) {
    let error = caller.await.unwrap().unwrap_err();
    (error.kind(), error.executed())
}

#[tokio::test(start_paused = true)]
async fn those_that_wait_go_together_and_each_is_told_its_own() {
    let (mut bench, mut under_way) = Bench::busy().await;
    let script = &LOCK.acquire;
    let mut callers = Vec::new();
    for key in ["a", "b", "c", "d"] {
        callers.push(bench.call(script, key, "me").await);
    }
    assert!(bench.is_silent());
    under_way.remove(0).answer(Ok(Reply::Int(1)));
    let batch = bench.sent().await;
    let digest = script.together().digest();
    assert_eq!(batch.words[..2], ["EVALSHA", digest]);
    assert_eq!(batch.words[2..].join(" "), "4 a b c d 4  me");
    let mut told = vec![Reply::Int(7), Reply::Nil, Reply::Nil, Reply::Int(9)];
    for (place, line) in [(1, "WRONGTYPE x"), (2, "OOM y")] {
        told.extend([Reply::Int(place), Reply::Bytes(line.into())]);
    }
    batch.answer(Ok(Reply::Array(told)));
    let [a, b, c, d] = callers.try_into().unwrap();
    assert_eq!(a.await.unwrap().unwrap(), Reply::Int(7));
    let refused = BackendErrorKind::Refused;
    assert_eq!(executed(b).await, (refused, Executed::Maybe));
    assert_eq!(executed(c).await, (refused, Executed::No));
    assert_eq!(d.await.unwrap().unwrap(), Reply::Int(9));
}

/// Common arguments are sent once, even if the oldest caller has left.
#[tokio::test(start_paused = true)]
async fn arguments_that_differ_are_sent_for_each() {
    for (oldest_stays, words) in [
        (true, "3 a b c 3 1 3  me 9 5 you 5 me 6"),
        (false, "2 b c 2 1 3  you 9 5 me 6"),
    ] {
        let (mut bench, mut under_way) = Bench::busy().await;
        let a = bench.call(&LOCK.acquire, "a", "me 9 5").await;
        let _others = [
            bench.call(&LOCK.acquire, "b", "you 9 5").await,
            bench.call(&LOCK.acquire, "x", "me 9").await,
            bench.call(&LOCK.acquire, "c", "me 9 6").await,
        ];
        if !oldest_stays {
            a.abort();
            yield_now().await;
        }
        under_way.remove(0).answer(Ok(Reply::Int(1)));
        assert_eq!(bench.sent().await.words[2..].join(" "), words);
        under_way.remove(0).answer(Ok(Reply::Int(1)));
        assert_eq!(bench.sent().await.words[2..].join(" "), "1 x me 9");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_alone_goes_as_it_is() {
    let (mut bench, mut under_way) = Bench::busy().await;
    let caller = bench.call(&LOCK.acquire, "a", "me").await;
    under_way.remove(0).answer(Ok(Reply::Int(1)));
    let request = bench.sent().await;
    let digest = LOCK.acquire.digest();
    assert_eq!(request.words, ["EVALSHA", digest, "1", "a", "me"]);
    request.answer(Ok(Reply::Int(3)));
    assert_eq!(caller.await.unwrap().unwrap(), Reply::Int(3));
}

#[tokio::test(start_paused = true)]
async fn each_script_has_its_own_batch_and_a_full_one_takes_nobody() {
    let (mut bench, mut under_way) = Bench::busy().await;
    let mut callers = vec![bench.call(&MUTEX.acquire, "m", "me").await];
    for _ in 0..=MEMBERS {
        callers.push(bench.call(&LOCK.acquire, "a", "me").await);
    }
    let long = "x".repeat(BYTES);
    callers.push(bench.call(&LOCK.acquire, &long, "me").await);
    // The mutex; as many as a batch takes; the last, which is not together with the long one.
    for keys in [1, MEMBERS, 1, 1] {
        assert!(bench.is_silent());
        under_way.remove(0).answer(Ok(Reply::Int(1)));
        let batch = bench.sent().await;
        assert_eq!(batch.words[2], keys.to_string());
        under_way.push(batch);
    }
    drop(callers);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_long_for_a_server_that_is_far_away() {
    let (mut bench, _under_way) = Bench::busy().await;
    let begun = Instant::now();
    let _callers = [
        bench.call(&LOCK.acquire, "a", "me").await,
        bench.call(&LOCK.acquire, "b", "me").await,
    ];
    assert_eq!(bench.sent().await.words[2], "2");
    assert!(begun.elapsed() <= LONGEST_WAIT * 2, "{:?}", begun.elapsed());
}

/// It is left out if its batch has not been sent. Otherwise the others still get their answers.
#[tokio::test(start_paused = true)]
async fn a_member_that_is_dropped_stops_no_other() {
    let (mut bench, mut under_way) = Bench::busy().await;
    let mut callers = Vec::new();
    for key in ["a", "b", "c"] {
        callers.push(bench.call(&LOCK.acquire, key, "me").await);
    }
    callers.remove(0).abort();
    yield_now().await;
    under_way.remove(0).answer(Ok(Reply::Int(1)));
    let batch = bench.sent().await;
    assert_eq!(batch.words[2..].join(" "), "2 b c 2  me");
    callers.remove(0).abort();
    yield_now().await;
    batch.answer(Ok(Reply::Array(vec![Reply::Int(1), Reply::Int(2)])));
    assert_eq!(callers.remove(0).await.unwrap().unwrap(), Reply::Int(2));
}

/// Its caller may have released what it asked for, so it must not arrive after that.
#[tokio::test(start_paused = true)]
async fn one_that_left_while_the_client_connects_is_not_sent() {
    let (mut bench, mut under_way) = Bench::busy().await;
    let a = bench.call(&LOCK.acquire, "a", "me").await;
    let _b = bench.call(&LOCK.acquire, "b", "me").await;
    bench.connected.send_replace(false);
    under_way.remove(0).answer(Ok(Reply::Int(1)));
    sleep(LONGEST_WAIT).await;
    a.abort();
    yield_now().await;
    bench.connected.send_replace(true);
    assert_eq!(bench.sent().await.words[2..], ["1", "b", "me"]);
}

/// As does one without a connection, and one without an answer.
#[tokio::test(start_paused = true)]
async fn a_batch_that_everyone_left_gives_up_its_turn() {
    for connected in [true, false] {
        let (mut bench, mut under_way) = Bench::busy().await;
        let a = bench.call(&LOCK.acquire, "a", "me").await;
        let b = bench.call(&LOCK.acquire, "b", "me").await;
        bench.connected.send_replace(connected);
        under_way.remove(0).answer(Ok(Reply::Int(1)));
        if connected {
            under_way.push(bench.sent().await);
        }
        sleep(LONGEST_WAIT).await;
        assert_eq!(bench.gather.turns.available_permits(), 0);
        a.abort();
        b.abort();
        let turn = timeout(LONGEST_WAIT, bench.gather.turns.acquire()).await;
        assert!(turn.is_ok(), "connected: {connected}");
    }
}

/// The server ran none of it, so each member is sent again by itself.
#[tokio::test(start_paused = true)]
async fn a_batch_that_was_refused_is_sent_one_by_one() {
    for line in [
        "READONLY x",
        "BUSY x",
        "OOM x",
        "NOPERM this user has no permissions to access one of the keys used as arguments",
        "ERR unknown command 'EVALSHA'",
    ] {
        let (mut bench, mut under_way) = Bench::busy().await;
        let a = bench.call(&LOCK.acquire, "a", "me").await;
        let b = bench.call(&LOCK.acquire, "b", "me").await;
        under_way.remove(0).answer(Ok(Reply::Int(1)));
        bench.sent().await.answer(refused(line));
        let (one, other) = (bench.sent().await, bench.sent().await);
        assert_eq!([&one.words[3], &other.words[3]], ["a", "b"], "{line}");
        one.answer(Ok(Reply::Int(1)));
        other.answer(refused("OOM x"));
        assert!(a.await.unwrap().is_ok(), "{line}");
        let told = (BackendErrorKind::Refused, Executed::No);
        assert_eq!(executed(b).await, told, "{line}");
    }
}

/// A proxy of a cluster refuses every batch, so there is only one.
#[tokio::test(start_paused = true)]
async fn calls_go_alone_where_keys_of_several_slots_are_refused() {
    let (mut bench, mut under_way) = Bench::busy().await;
    let callers = [
        bench.call(&LOCK.acquire, "a", "me").await,
        bench.call(&LOCK.acquire, "b", "me").await,
    ];
    under_way.remove(0).answer(Ok(Reply::Int(1)));
    bench.sent().await.answer(refused("CROSSSLOT x"));
    for caller in callers {
        bench.sent().await.answer(Ok(Reply::Int(1)));
        assert!(caller.await.unwrap().is_ok());
    }
    for key in ["c", "d"] {
        drop(bench.call(&LOCK.acquire, key, "me").await);
        let request = bench.requests.try_recv().unwrap();
        assert_eq!(request.words[3], key);
        under_way.push(request);
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_the_server_does_not_know_is_sent_in_full() {
    let (mut bench, mut under_way) = Bench::busy().await;
    let a = bench.call(&LOCK.acquire, "a", "me").await;
    let _b = bench.call(&LOCK.acquire, "b", "me").await;
    under_way.remove(0).answer(Ok(Reply::Int(1)));
    bench.sent().await.answer(refused("NOSCRIPT x"));
    let again = bench.sent().await;
    assert_eq!(again.words[..2], ["EVAL", LOCK.acquire.together().source]);
    again.answer(Ok(Reply::Array(vec![Reply::Int(5), Reply::Int(6)])));
    assert_eq!(a.await.unwrap().unwrap(), Reply::Int(5));
}

/// The error is the one that a single call gets.
#[tokio::test(start_paused = true)]
async fn a_batch_whose_answer_is_lost_may_have_run() {
    use BackendErrorKind::{Refused, Timeout, Unavailable};
    let lost = || Err(ClientError::MaybeExecuted("lost".to_owned()));
    let nonsense = |items| Ok(Reply::Array(items));
    for (answer, kind) in [
        (Some(lost()), Unavailable),
        (Some(refused("ERR x")), Refused),
        (Some(Ok(Reply::Int(1))), Unavailable),
        (Some(nonsense(vec![Reply::Int(1)])), Unavailable),
        (
            Some(nonsense([0, 1, 2].map(Reply::Int).to_vec())),
            Unavailable,
        ),
        (None, Timeout),
    ] {
        let (mut bench, mut under_way) = Bench::busy().await;
        let a = bench.call(&LOCK.acquire, "a", "me").await;
        let b = bench.call(&LOCK.acquire, "b", "me").await;
        under_way.remove(0).answer(Ok(Reply::Int(1)));
        let batch = bench.sent().await;
        let _kept = match answer.clone() {
            Some(answer) => (batch.answer(answer), None),
            None => ((), Some(batch)),
        };
        for caller in [a, b] {
            assert_eq!(
                executed(caller).await,
                (kind, Executed::Maybe),
                "{answer:?}"
            );
        }
        assert!(bench.is_silent(), "{answer:?}");
    }
}

/// Its task ends with the runtime that the server's calls belong to; its callers may be elsewhere.
#[tokio::test]
async fn a_batch_whose_runtime_ends_may_have_run() {
    let elsewhere = tokio::runtime::Runtime::new().unwrap();
    let bench = {
        let _inside = elsewhere.enter();
        Bench::new()
    };
    let (mut bench, mut under_way) = bench.with_calls().await;
    let a = bench.call(&LOCK.acquire, "a", "me").await;
    under_way.remove(0).answer(Ok(Reply::Int(1)));
    let _batch = bench.sent().await;
    elsewhere.shutdown_background();
    let told = (BackendErrorKind::Unavailable, Executed::Maybe);
    assert_eq!(executed(a).await, told);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_was_not_sent_is_sent_again() {
    let (mut bench, mut under_way) = Bench::busy().await;
    let a = bench.call(&LOCK.acquire, "a", "me").await;
    let b = bench.call(&LOCK.acquire, "b", "me").await;
    under_way.remove(0).answer(Ok(Reply::Int(1)));
    let not_sent = ClientError::NotSent("no connection".to_owned());
    bench.sent().await.answer(Err(not_sent));
    for caller in [a, b] {
        bench.sent().await.answer(Ok(Reply::Int(1)));
        assert!(caller.await.unwrap().is_ok());
    }
}
