//! Edge cases of scripts, each called directly in the one situation that shows it: the last
//! microsecond in which an attempt may run, the greatest valid token, a publish that fails, a
//! number without its kind.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

#[path = "edges_common/mod.rs"]
mod common;
#[path = "edges_common/numbers.rs"]
mod numbers;

use common::{Bench, LOCK, ME, OTHER, TOO_MUCH, show};
use locktopus_model::redis::Reply;

#[test]
fn an_attempt_may_run_until_its_last_microsecond() {
    for script in ["lock_acquire", "mutex_acquire"] {
        for (off, late) in [(-1, true), (0, false), (1, false)] {
            let mut bench = Bench::new();
            let now = bench.server.clock;
            let answer = bench.take(script, ME, now + off, 1);
            assert_eq!(
                answer.starts_with("[2 0 "),
                late,
                "{script}, {off}: {answer}"
            );
        }
    }
    for (off, status) in [(-1, "2"), (0, "1"), (1, "1")] {
        let mut bench = Bench::new();
        let latest = (bench.server.clock + off).to_string();
        let member = ["4", "l", ME, "60000", "1", "0"];
        let arguments = [&["0", &latest, "PUBLISH"][..], &member].concat();
        let answer = bench.eval("group_acquire", &LOCK, &arguments);
        assert!(
            answer.starts_with(&format!("[{status} 0 ")),
            "{off}: {answer}"
        );
    }
}

#[test]
fn the_greatest_token_is_the_last() {
    for script in ["lock_acquire", "mutex_acquire"] {
        for (count, last, first) in [
            (1, TOO_MUCH - 3, Some(TOO_MUCH - 2)),
            (1, TOO_MUCH - 2, Some(TOO_MUCH - 1)),
            (1, TOO_MUCH - 1, None),
            (16, TOO_MUCH - 17, Some(TOO_MUCH - 16)),
            (16, TOO_MUCH - 16, None),
        ] {
            let mut bench = Bench::new();
            bench.command(&format!("SET t {last} PX 5000"));
            let answer = bench.take(script, ME, 0, count);
            if let Some(first) = first {
                let granted = format!("[1 {first} ");
                assert!(
                    answer.starts_with(&granted),
                    "{script}, {count} after {last}: {answer}"
                );
                let kept = show(&bench.command("GET t"));
                assert_eq!(
                    kept,
                    (first + count - 1).to_string(),
                    "{script}, {count} after {last}"
                );
            } else {
                assert!(
                    answer.starts_with("BADTOKEN "),
                    "{script}, {count} after {last}: {answer}"
                );
                assert_eq!(show(&bench.command("GET t")), last.to_string());
                assert_eq!(
                    bench.command("PTTL t"),
                    Reply::Int(7_000),
                    "{script}, {count} after {last}"
                );
                assert_eq!(bench.command("EXISTS k"), Reply::Int(0));
            }
        }
        let mut bench = Bench::new();
        bench.command("SET t x PX 5000");
        let answer = bench.take(script, ME, 0, 1);
        assert!(answer.starts_with("BADTOKEN "), "{script}: {answer}");
        assert_eq!(bench.command("PTTL t"), Reply::Int(7_000), "{script}");
    }
}

/// Each member of a batch gets its own keys and arguments. If one fails, the others still run.
#[test]
fn a_batch_runs_each_member_by_itself() {
    let mut bench = Bench::new();
    bench.command("SET t2 x");
    bench.command("SET k3 x");
    let names = ["", "2", "3", "", "4", "5"].map(|number| LOCK.map(|key| format!("{key}{number}")));
    let keys: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
    // The owners differ, and how late each may run.
    let head = ["6", "1 4 "];
    let first = [
        ME, "60000", "7000", "0", "x", "1", "1", "0", "PUBLISH", "50000", "inbox",
    ];
    let others = [ME, "0", ME, "0", OTHER, "0", ME, "0", ME, "1"];
    let arguments = [&head[..], &first, &others].concat();
    let answer = bench.eval("lock_acquire_together", &keys, &arguments);
    let now = bench.server.clock;
    let replies = format!("[{now} Nil Nil [3 60000 {now} 0 {now} 0] {now} [2 0 {now}] 1 BADTOKEN ");
    assert!(answer.starts_with(&replies), "{answer}");
    assert!(answer.contains(" 2 WRONGKIND 0 "), "{answer}");
    for (key, there) in [("k", 1), ("k2", 0), ("q", 1), ("k4", 1), ("k5", 0)] {
        assert_eq!(
            bench.command(&format!("EXISTS {key}")),
            Reply::Int(there),
            "{key}"
        );
    }
}

/// Waiters of a fair lock that were set aside return to their places in any order. They may have
/// come at the same time, as in a batch, or the clock of a new primary may be behind.
#[test]
fn those_set_aside_come_back_in_order_whatever_the_clock() {
    let keys = ["k", "t", "q", "w", "ends"];
    let [holder, a, b, c, d] =
        [1, 2, 3, 4, 5].map(|it| format!("0000000{it}-0000-8c70-a705-000000000000:1"));
    let cases = (0..16).map(|it| [1, 2, 4, 8].map(|bit| it & bit != 0));
    for [back_for_b, java_before_b, back_for_d, java_before_d] in cases {
        let mut bench = Bench::new();
        let asks = |bench: &mut Bench, owner: &str, first: &str| {
            let head = [owner, "60000", "7000", "0", "f", "1", "1", "0", "PUBLISH"];
            let arguments = [&head[..], &["50000", "deaf", "c", "", first]].concat();
            bench.eval("fair_lock_acquire", &keys, &arguments);
        };
        let comes = |bench: &mut Bench, owner: &str, back: bool, java: bool| {
            if java {
                bench.command(&format!(
                    "RPUSH q 11111111-2222-4333-8444-555555555555:{owner}"
                ));
            }
            bench.server.clock -= i64::from(back) * 3_600_000_000;
            asks(bench, owner, "1");
        };
        asks(&mut bench, &holder, "1");
        comes(&mut bench, &a, false, false);
        comes(&mut bench, &b, back_for_b, java_before_b);
        let release = [&holder, "f", "1", "PUBLISH", "c", "7000", "d", "1"];
        bench.eval("fair_lock_release", &keys, &release);
        bench.command(&format!("HSET k {c} 1"));
        comes(&mut bench, &d, back_for_d, java_before_d);
        asks(&mut bench, &b, "");
        asks(&mut bench, &a, "");
        let line = show(&bench.command("LRANGE q 0 -1"));
        let ours: Vec<_> = line.split(['[', ' ', ']']).collect();
        let ours = ours.into_iter().filter(|it| it.starts_with("0000"));
        assert_eq!(ours.collect::<Vec<_>>(), [&a, &b, &d], "{line}");
    }
}

/// The lock is released all the same, and the reply reports that no message went out.
#[test]
fn a_release_that_cannot_be_announced_says_so() {
    for (name, publish) in [("lock", 3), ("mutex", 4)] {
        let mut bench = Bench::new();
        bench.take(&format!("{name}_acquire"), ME, 0, 1);
        bench.fail(publish, "NOPERM no");
        let arguments = [ME, "x", "1", "PUBLISH", "c", "0", "d"];
        let answer = bench.eval(&format!("{name}_release"), &LOCK, &arguments);
        assert_eq!(answer, "-1", "{name}");
        assert_eq!(bench.command("EXISTS k"), Reply::Int(0), "{name}");
        // The same when the caller expects a waiter, so the script looks at the queue first and
        // finds none.
        bench.take(&format!("{name}_acquire"), ME, 0, 1);
        let arguments = [ME, "x", "1", "PUBLISH", "c", "0", "d", "1"];
        bench.fail(publish + 2, "NOPERM no");
        let answer = bench.eval(&format!("{name}_release"), &LOCK, &arguments);
        assert_eq!(answer, "-1", "{name}, where somebody probably waits");
    }
}

/// A mutex shared with other libraries may have a token and no queue, or neither.
#[test]
fn a_mutex_without_a_queue_is_taken_released_and_ended() {
    for keys in [&LOCK[..1], &LOCK[..2]] {
        let tokens = if keys.len() > 1 { "1" } else { "0" };
        let mut bench = Bench::new();
        let take = |bench: &mut Bench, owner| {
            let arguments = [owner, "60000", "0", "0", "m", "1", tokens, "0", "PUBLISH"];
            bench.eval("mutex_acquire", keys, &arguments)
        };
        let now = bench.server.clock;
        assert_eq!(take(&mut bench, ME), now.to_string());
        assert_eq!(bench.command("PTTL k"), Reply::Int(60_000));
        // Without a key for tokens there is no token.
        let token = if keys.len() > 1 {
            now.to_string()
        } else {
            String::new()
        };
        assert_eq!(show(&bench.command("GET t")).replace("Nil", ""), token);
        let state = bench.eval("mutex_inspect", keys, &[]);
        assert_eq!(state, format!("[[[{ME} x 1 60000]] {token} []  {now}]"));
        assert_eq!(take(&mut bench, OTHER), format!("[0 60000 {now}]"));
        let release = [ME, "m", "1", "PUBLISH", "c", "0", "d"];
        assert_eq!(bench.eval("mutex_release", keys, &release), "0");
        assert_eq!(bench.said(), ["c 0"]);
        assert_eq!(bench.eval("mutex_release", keys, &release), "[0]");
        take(&mut bench, OTHER);
        let evict = ["PUBLISH", "c", "0", tokens];
        let ended = bench.eval("mutex_evict", keys, &evict);
        assert!(ended.ends_with(&format!("{OTHER}]")), "{ended}");
        assert_eq!(bench.said(), ["c 0"]);
        assert_eq!(bench.command("EXISTS k"), Reply::Int(0));
        // A lock without a holder shows none.
        let state = bench.eval("mutex_inspect", keys, &[]);
        assert!(state.starts_with("[[] "), "{state}");
    }
}

/// A field of another client may hold anything.
#[test]
fn a_hold_whose_count_is_none_is_shown_as_none() {
    let mut bench = Bench::new();
    bench.command(&format!("HSET k {ME} x"));
    let now = bench.server.clock;
    let state = bench.eval("lock_inspect", &LOCK, &[]);
    assert_eq!(state, format!("[[[{ME} x 0 -1]]  []  {now}]"));
    bench.command("DEL k");
    let state = bench.eval("lock_inspect", &LOCK, &[]);
    assert_eq!(state, format!("[[]  []  {now}]"));
}

/// A malformed recall note is removed, and the request still learns who holds the lock.
#[test]
fn a_recall_note_that_says_nothing_is_forgotten() {
    let mut bench = Bench::new();
    bench.take("lock_acquire", OTHER, 0, 1);
    bench.command("HSET w !recall spoilt");
    let now = bench.server.clock;
    assert_eq!(
        bench.take("lock_acquire", ME, 0, 1),
        format!("[0 60000 {now}]")
    );
    assert_eq!(bench.command("EXISTS w"), Reply::Int(0));
}

/// The message is the one that waiters of the other library expect.
#[test]
fn a_notifying_mutex_says_what_it_was_told_to_say() {
    for (message, list, said) in [
        ("gone", "", "c gone"),
        ("gone", "l", "c gone"),
        ("", "l", "c 0"),
        ("", "", "c 0"),
    ] {
        let mut bench = Bench::new();
        bench.command(&format!("SET k {ME} PX 60000"));
        let release = [ME, "m", "1", "PUBLISH", "c", "0", "d", message, list];
        assert_eq!(
            bench.eval("notifying_mutex_release", &LOCK[..1], &release),
            "0"
        );
        assert_eq!(bench.said(), [said], "{message:?} {list:?}");
        let pushed = i64::from(!list.is_empty());
        assert_eq!(bench.command("LLEN l"), Reply::Int(pushed));
        if pushed == 1 {
            assert_eq!(bench.command("PTTL l"), Reply::Int(1_000));
        }
        assert_eq!(
            bench.eval("notifying_mutex_release", &LOCK[..1], &release),
            "[0]"
        );
    }
}

/// A request for a free name whose queue has waiters of another kind learns what they wait for.
#[test]
fn waiters_of_another_kind_are_named() {
    for (letter, name) in [
        ("x", "lock"),
        ("m", "mutex"),
        ("f", "fair_lock"),
        ("r", "rw_lock"),
        ("w", "rw_lock"),
        ("s", "semaphore"),
        ("p", "permit_semaphore"),
        ("t", "rate_limiter"),
    ] {
        for (script, ours) in [("lock_acquire", "x"), ("mutex_acquire", "m")] {
            if letter == ours {
                continue;
            }
            let mut bench = Bench::new();
            let member = format!("50000 60000 1 1 {letter} {} {OTHER} inbox", OTHER.len());
            let now = bench.server.clock.to_string();
            let words = [
                b"ZADD".to_vec(),
                b"q".to_vec(),
                now.into_bytes(),
                member.into_bytes(),
            ];
            bench.server.command(&words).unwrap();
            let answer = bench.take(script, ME, 0, 1);
            let wanted = format!("WRONGKIND 0 what waiters want as a {name}");
            assert_eq!(answer, wanted, "{script}");
        }
    }
}

/// The token is complete, even if the grant was a second ago.
#[test]
fn a_pushed_token_is_written_out_whole() {
    for (script, letter) in [("lock", "x"), ("mutex", "m")] {
        for (micros, ahead, tokens) in [
            (0, false, 1),
            (5, false, 16),
            (15, false, 16),
            (17, false, 16),
            (999_999, false, 1),
            (500, true, 1),
        ] {
            let mut bench = Bench::new();
            let clock = 1_760_000_001_000_000 + micros;
            bench.server.clock = clock - 1_000;
            bench.take(&format!("{script}_acquire"), ME, 0, 1);
            let tokens_text = tokens.to_string();
            let wait = [
                OTHER,
                "60000",
                "0",
                "0",
                letter,
                "1",
                &tokens_text,
                "0",
                "PUBLISH",
                "50000",
                "inbox",
            ];
            let queued = bench.eval(&format!("{script}_acquire"), &LOCK, &wait);
            assert!(queued.starts_with("[3 "), "{queued}");
            bench.server.listeners.insert((false, b"inbox".to_vec()), 1);
            bench.server.clock = clock;
            let last = if ahead { clock + 7 } else { clock - 1_000 };
            bench.command(&format!("SET t {last}"));
            let release = [ME, letter, "1", "PUBLISH", "c", "0", "d"];
            assert_eq!(
                bench.eval(&format!("{script}_release"), &LOCK, &release),
                "1"
            );
            let first = if ahead { last + 1 } else { clock - tokens + 1 };
            let said = bench.said();
            assert!(
                said.contains(&format!("inbox {first} {OTHER}")),
                "{script} at {micros}: {said:?}, not {first}"
            );
            let kept = show(&bench.command("GET t"));
            assert_eq!(
                kept,
                (first + tokens - 1).to_string(),
                "{script} at {micros}"
            );
        }
    }
}
