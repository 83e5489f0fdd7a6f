//! Edge cases of semaphores, latches and extensions.

use locktopus_model::redis::Reply;

use super::common::{Bench, ME, show};

/// Permits are free from the millisecond in which their lease ends, and not before.
#[test]
fn permits_that_end_now_are_counted_as_free() {
    let keys = ["n", "t", "q", "w", "s", "kind", "p"];
    for (script, kind, member) in [
        ("semaphore_read", "semaphore", "2 x"),
        ("permits_read", "permit_semaphore", "0123456789abcdef"),
    ] {
        for (micros, free) in [(0, 0), (400, 0), (999, 0), (1_000, 1)] {
            let mut bench = Bench::new();
            let now = bench.server.clock / 1_000;
            bench.server.clock = now * 1_000 + micros;
            bench.command("SET n 3");
            bench.command(&format!("SET kind {kind}"));
            let end = (now + 1).to_string().into_bytes();
            let add = [
                b"ZADD".to_vec(),
                b"s".to_vec(),
                end,
                member.as_bytes().to_vec(),
            ];
            bench.server.command(&add).unwrap();
            let each = if member.starts_with('2') { 2 } else { 1 };
            let value = 3 + free * each;
            let answer = bench.eval(script, &keys, &[]);
            assert_eq!(answer, format!("[{value} 0]"), "{script} at {micros}");
        }
    }
}

/// A lost lock differs from a lookup that the server refused, or a key of another type.
#[test]
fn an_extension_that_may_not_look_is_not_one_that_is_lost() {
    for (script, key, argument, lost) in [
        ("lock_extend", "k", ME, "[-1]"),
        ("mutex_extend", "k", ME, "[-1]"),
        ("write_lock_extend", "k", ME, "[-1]"),
    ] {
        let mut bench = Bench::new();
        bench.command("SADD k x");
        assert_eq!(
            bench.eval(script, &[key], &["1000", argument]),
            lost,
            "{script}"
        );
        bench.fail(1, "NOPERM no");
        assert_eq!(
            bench.eval(script, &[key], &["1000", argument]),
            "[-2]",
            "{script}"
        );
    }
    let mut bench = Bench::new();
    bench.command("SADD k x");
    assert_eq!(
        bench.eval("read_lock_extend", &["k", "o"], &["1000", ME]),
        "[0]"
    );
    bench.fail(1, "NOPERM no");
    assert_eq!(
        bench.eval("read_lock_extend", &["k", "o"], &["1000", ME]),
        "[-2]"
    );
    for (script, first, second) in [
        ("semaphore_extend", ME, "1"),
        ("permit_semaphore_extend", "0123456789abcd\0\0", "1"),
    ] {
        let mut bench = Bench::new();
        bench.command("SADD k x");
        assert_eq!(
            bench.eval(script, &["k"], &["1000", first, second]),
            "[0]",
            "{script}"
        );
        bench.fail(2, "NOPERM no");
        assert_eq!(
            bench.eval(script, &["k"], &["1000", first, second]),
            "[-2]",
            "{script}"
        );
    }
}

/// From eight locks on, the script sets an absolute time instead of a duration. The result is the
/// same, to the millisecond.
#[test]
fn a_batch_is_extended_as_each_lock_alone() {
    for (script, taken, others) in [("lock_extend", "HSET", "1"), ("mutex_extend", "SET", "")] {
        for count in [1, 7, 8, 9] {
            let mut bench = Bench::new();
            // A fraction of a millisecond does not lengthen a lease.
            bench.server.clock = bench.server.clock / 1_000_000 * 1_000_000 + 777_999;
            let names: Vec<_> = (0..count).map(|at| format!("k{at}")).collect();
            let keys: Vec<_> = names.iter().map(String::as_str).collect();
            for key in &keys {
                bench.command(format!("{taken} {key} {ME} {others}").trim_end());
                bench.command(&format!("PEXPIRE {key} 1000"));
            }
            let arguments = [&["5000"], vec![ME; count].as_slice()].concat();
            let all = bench.eval(script, &keys, &arguments);
            assert_eq!(all, count.to_string(), "{script}, {count}");
            for key in &keys {
                let left = show(&bench.command(&format!("PTTL {key}")));
                assert_eq!(left, "5000", "{script}, {count}: {key}");
            }
            // A longer lease stays, and one without an expiry gets one.
            let [first, last] = [keys[0], keys[count - 1]];
            bench.command(&format!("PEXPIRE {first} 9000"));
            if count > 1 {
                bench.command(&format!("PERSIST {last}"));
            }
            bench.eval(script, &keys, &arguments);
            let left = show(&bench.command(&format!("PTTL {first}")));
            assert_eq!(left, "9000", "{script}, {count}");
            if count > 1 {
                let left = show(&bench.command(&format!("PTTL {last}")));
                assert_eq!(left, "5000", "{script}, {count}");
                // A lost lock is reported, wherever it is in the batch.
                for gone in [last, first] {
                    bench.command(&format!("DEL {gone}"));
                    let answer = bench.eval(script, &keys, &arguments);
                    let expected: Vec<_> = keys
                        .iter()
                        .map(|key| {
                            if bench.command(&format!("EXISTS {key}")) == Reply::Int(1) {
                                "1"
                            } else {
                                "0"
                            }
                        })
                        .collect();
                    assert_eq!(answer, format!("[{}]", expected.join(" ")), "{script}");
                }
            }
        }
    }
}

/// A lease that ends now is over, and an extension brings no permit back.
#[test]
fn permits_are_extended_before_they_end_and_only_those_that_are_there() {
    for (off, answer) in [(-1, "[0]"), (0, "[0]"), (1, "[1]")] {
        let mut bench = Bench::new();
        let now = bench.server.clock / 1_000;
        bench.server.clock = now * 1_000;
        let (end, longer) = (now + off, now + 5_000);
        bench.command(&format!("ZADD s {end} 1:{ME}"));
        // A space separates the number from the owner.
        let member = format!("2 {ME}").into_bytes();
        let add = [
            b"ZADD".to_vec(),
            b"s".to_vec(),
            end.to_string().into_bytes(),
            member,
        ];
        bench.server.command(&add).unwrap();
        let extended = bench.eval("semaphore_extend", &["s"], &["5000", ME, "2"]);
        assert_eq!(extended, answer, "{off}");
        let kept = show(&bench.command("ZRANGE s 0 -1 WITHSCORES"));
        let left = if answer == "[1]" { longer } else { end };
        assert!(kept.contains(&format!("2 {ME} {left}")), "{off}: {kept}");
        // Only the first of an acquisition's two permits is left.
        let permit = "0123456789abcd\0\0";
        bench.command(&format!("ZADD p {end} {permit}"));
        let extended = bench.eval("permit_semaphore_extend", &["p"], &["5000", permit, "2"]);
        assert_eq!(extended, answer, "{off}");
        let kept = show(&bench.command("ZRANGE p 0 -1 WITHSCORES"));
        assert_eq!(kept, format!("[{permit} {left}]"), "{off}");
    }
}

/// A number without a kind is a latch's, unless permits beside it have holders.
#[test]
fn a_latch_is_told_from_semaphores_by_their_holders() {
    let keys = ["n", "kind", "s", "p"];
    let count = [&keys[..], &["answer"]].concat();
    for holders in ["s", "p"] {
        let mut bench = Bench::new();
        bench.command("SET n 2");
        assert_eq!(bench.eval("latch_read", &keys, &[]), "[2 0]");
        let later = bench.server.clock / 1_000 + 1_000;
        bench.command(&format!("ZADD {holders} {later} x"));
        let other = "WRONGKIND 0 a number (semaphore, permit_semaphore or latch)";
        let read = bench.eval("latch_read", &keys, &[]);
        let down = ["count_down", "0", "PUBLISH", "c", "1000"];
        // The kind of the semaphore is unknown.
        assert!(read.starts_with(other), "{holders}: {read}");
        let changed = bench.eval("latch", &count, &down);
        assert!(changed.starts_with(other), "{holders}: {changed}");
        assert_eq!(show(&bench.command("GET n")), "2");
        // The last of them holds until its lease is over, even within a millisecond.
        bench.server.clock = later * 1_000 - 1;
        assert!(bench.eval("latch_read", &keys, &[]).starts_with(other));
        bench.server.clock += 1;
        assert_eq!(bench.eval("latch_read", &keys, &[]), "[2 0]");
    }
    // A latch with an expiry keeps it.
    let mut bench = Bench::new();
    bench.command("SET n 2 PX 5000");
    bench.command("SET kind latch");
    let down = ["count_down", "0", "PUBLISH", "c", "1000"];
    assert_eq!(bench.eval("latch", &count, &down), "[1 1]");
    assert_eq!(bench.command("PTTL n"), Reply::Int(5_000));
}

/// Inspecting or evicting a number of another kind reports that kind.
#[test]
fn a_number_of_another_kind_is_named() {
    let keys = ["n", "t", "q", "w", "s", "kind", "p"];
    for kind in ["semaphore", "permit_semaphore", "rate_limiter"] {
        let mut bench = Bench::new();
        bench.command("SET n 2");
        bench.command("SET kind latch");
        for (script, arguments) in [
            (format!("{kind}_inspect"), vec![]),
            (format!("{kind}_evict"), vec!["PUBLISH", "c", "0", "0"]),
        ] {
            let answer = bench.eval(&script, &keys, &arguments);
            assert_eq!(answer, "WRONGKIND 0 latch", "{script}");
        }
    }
}

/// A semaphore and a rate limiter keep their holders in the same key. Expired permits go back to
/// the kind that the number has.
#[test]
fn a_release_as_another_kind_takes_nothing_back() {
    for (kind, mark, other) in [
        ("semaphore", "semaphore 1 0", "rate_limiter"),
        ("rate", "rate_limiter 1 9000", "semaphore"),
    ] {
        let mut bench = limiter(mark, -1);
        let release = [ME, "s", "1", "PUBLISH", "c", "0", "c"];
        let released = bench.eval(&format!("{other}_release"), &NUMBER, &release);
        let free = bench.eval(&format!("{kind}_read"), &NUMBER, &[]);
        assert_eq!((&*released, &*free), ("[0]", "[1 0]"), "{kind}");
    }
}

/// However far the clock is set back, a permit returns after at most one more period.
#[test]
fn a_permit_comes_back_a_period_after_the_clock_was_set_back() {
    let mut bench = limiter("rate_limiter 1 9000", 3_600_000);
    let ask = [ME, "30000", "0", "0", "t", "1", "0", "0", "PUBLISH"];
    for (later, left) in [(0, "[0 9000 "), (8_999, "[0 1 "), (1, "17")] {
        bench.server.clock += later * 1_000;
        let answer = bench.eval("rate_limiter_acquire", &NUMBER, &ask);
        assert!(answer.starts_with(left), "{left}: {answer}");
    }
}

const NUMBER: [&str; 7] = ["n", "t", "q", "w", "s", "kind", "p"];

/// A number whose only permit returns in so many ms.
fn limiter(mark: &str, back: i64) -> Bench {
    let mut bench = Bench::new();
    bench.server.clock = bench.server.clock / 1_000 * 1_000;
    let back = (bench.server.clock / 1_000 + back).to_string();
    bench.command("SET n 0");
    for words in [&["SET", "kind", mark][..], &["ZADD", "s", &back, "1 x"]] {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        bench.server.command(&words).unwrap();
    }
    bench
}
