//! Scripts that no simulated client runs, called directly: their replies, and what they leave on
//! the server.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "edges_common/mod.rs"]
mod common;

use common::{Bench, show};
use locktopus_model::redis::Reply;

/// Writes the key `k`. The arguments: lock, token, holder, how long to keep the fence, and the
/// command. Returns the reply, of an error only its code.
fn write(bench: &mut Bench, arguments: &str) -> String {
    let arguments: Vec<_> = arguments.split(' ').collect();
    let reply = bench.eval("guarded_write", &["k", "f"], &arguments);
    match reply.strip_prefix('[') {
        Some(items) => items.trim_end_matches(']').to_owned(),
        None => reply.split(' ').next().unwrap_or_default().to_owned(),
    }
}

/// All keys on the server, with their expiries.
fn left(bench: &Bench) -> String {
    let lines = bench.server.dump();
    lines.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_guarded_write_is_done_by_the_newest_holder() {
    let mut bench = Bench::new();
    for (arguments, reply, value) in [
        ("l 5 h 1000 SET a 0", "1 5 l", "a"),
        // The same holder again, then one that does not tell who it is.
        ("l 5 h 1000 SET b 0", "1 5 l", "b"),
        ("l 5  1000 SET c 0", "1 5 l", "c"),
        // Another holder with the token, while the fence still knows the first one.
        ("l 5 i 1000 SET x 0", "-1 5 l", "c"),
        ("l 4 h 1000 SET x 0", "0 5 l", "c"),
        ("m 9 h 1000 SET x 0", "-2 5 l", "c"),
        ("l 6 i 1000 SET d 0", "1 6 l", "d"),
        ("l 5 h 1000 SET x 0", "0 6 l", "d"),
        ("l 6 h 1000 SET x 0", "-1 6 l", "d"),
        // This holder is unknown, so any owner of the token may write.
        ("l 7  1000 SET e 0", "1 7 l", "e"),
        ("l 7 h 1000 SET f 0", "1 7 l", "f"),
        (
            "l 9007199254740991 h 1000 SET g 0",
            "1 9007199254740991 l",
            "g",
        ),
    ] {
        assert_eq!(write(&mut bench, arguments), reply, "{arguments}");
        assert_eq!(show(&bench.command("GET k")), value, "{arguments}");
    }
}

#[test]
fn a_token_that_is_none_writes_nothing() {
    for token in ["0", "-1", "9007199254740992", "x", "", "nan", "0.5"] {
        let mut bench = Bench::new();
        let reply = write(&mut bench, &format!("l {token} h 1000 SET a 0"));
        assert_eq!(
            (reply.as_str(), left(&bench).as_str()),
            ("BADTOKEN", ""),
            "{token:?}"
        );
    }
    let mut bench = Bench::new();
    assert_eq!(write(&mut bench, "l 1 h 1000 SET a 0"), "1 1 l");
}

#[test]
fn a_fence_that_is_none_is_left_alone() {
    for spoilt in [
        "SET f x",
        "HSET f lock l",
        "HSET f token 5",
        "HSET f lock l token x",
        "HSET f lock l token 0",
        "HSET f lock l token 9007199254740992",
    ] {
        let mut bench = Bench::new();
        bench.command(spoilt);
        let before = left(&bench);
        assert_eq!(
            write(&mut bench, "l 9 h 1000 SET a 0"),
            "BADTOKEN",
            "{spoilt}"
        );
        assert_eq!(left(&bench), before, "{spoilt}");
    }
    // Other fields of the hash are ignored.
    let mut bench = Bench::new();
    bench.command("HSET f lock l token 1");
    assert_eq!(write(&mut bench, "l 1 h 1000 SET a 0"), "1 1 l");
    let mut bench = Bench::new();
    bench.server.script_fault = Some((1, "NOPERM no".to_owned()));
    assert_eq!(write(&mut bench, "l 1 h 1000 SET a 0"), "NOPERM");
    assert_eq!(left(&bench), "");
}

#[test]
fn fences_and_values_live_for_as_long_as_was_asked() {
    let mut bench = Bench::new();
    for (arguments, fence, value) in [
        ("l 5 h 1000 SET a 700", 1_000, 700),
        // Never earlier than before.
        ("l 5 h 500 SET a 900", 1_000, 900),
        ("l 5 h 2000 SET a 0", 2_000, -1),
        ("l 6 h 2000 DEL  0", 2_000, -2),
        ("l 6 h 0 SET a 10", -1, 10),
        // No expiry is longer than any.
        ("l 6 h 1000 SET a 10", -1, 10),
    ] {
        assert!(
            write(&mut bench, arguments).starts_with("1 "),
            "{arguments}"
        );
        let left = ["f", "k"].map(|key| bench.command(&format!("PTTL {key}")).as_int());
        assert_eq!(left, [Some(fence), Some(value)], "{arguments}");
    }
    // A new fence to be kept for ever has no expiry.
    let mut bench = Bench::new();
    assert_eq!(write(&mut bench, "l 5 h 0 SET a 0"), "1 5 l");
    assert_eq!(bench.command("PTTL f"), Reply::Int(-1));
}

#[test]
fn what_a_key_is_can_be_told() {
    let ours = "00000001-0000-8c70-a705-000000000000";
    let theirs = "00000001-0000-4c70-a705-000000000000";
    let mut bench = Bench::new();
    let mut expected = String::new();
    for (at, (commands, letter)) in [
        (vec![], '-'),
        (vec![format!("HSET k {ours}:2 1")], 'l'),
        (vec![format!("HSET k {ours}:3 1")], 'f'),
        (
            vec![format!("HSET k {ours}:2 1"), "SET f x".to_owned()],
            'l',
        ),
        (vec![format!("HSET k {theirs}:3 1")], 'l'),
        (
            vec![format!("HSET k {theirs}:2 1"), "SET f x".to_owned()],
            'f',
        ),
        (vec![format!("HSET k {theirs}:-7 1")], 'l'),
        (vec![format!("HSET k {theirs}:7 1 more 1")], '-'),
        (vec![format!("HSET k {theirs}07 1")], '-'),
        (vec![format!("HSET k {theirs}: 1")], '-'),
        (vec![format!("HSET k {}:7 1", &theirs[1..])], '-'),
        (vec![format!("HSET k {}:77 1", &theirs[1..])], '-'),
        (vec![format!("HSET k g{}:7 1", &theirs[1..])], '-'),
        (vec!["HSET k mode read a 1".to_owned()], 'r'),
        (vec!["HSET k mode write a 1".to_owned()], 'w'),
        (vec!["HSET k mode other a 1".to_owned()], '-'),
        (vec!["HSET k mode read".to_owned()], 'r'),
        (vec!["SET k 5".to_owned(), "SET s x".to_owned()], 's'),
        (vec!["SET k 5".to_owned(), "SET p x".to_owned()], 'p'),
        (vec!["SET k 5".to_owned()], '-'),
        (vec!["SET k 5".to_owned(), "SET f x".to_owned()], '-'),
        (vec![format!("SET k {ours}:2")], 'm'),
        (vec![format!("SET k {ours}{}", "0".repeat(63))], 'm'),
        (vec![format!("SET k {ours}{}", "0".repeat(64))], '-'),
        (vec![format!("SET k {theirs}:2")], '-'),
        (vec!["RPUSH k a".to_owned()], '-'),
        (vec!["RPUSH k a".to_owned(), "SET s x".to_owned()], '-'),
    ]
    .into_iter()
    .enumerate()
    {
        for command in commands {
            let mut words: Vec<_> = command.split(' ').map(str::to_owned).collect();
            words[1] += &at.to_string();
            bench.command(&words.join(" "));
        }
        expected.push(letter);
        let [k, s, p, f, n] = ["k", "s", "p", "f", "n"].map(|key| format!("{key}{at}"));
        let letters = bench.eval("classify", &[&k, &s, &p, &f, &n], &[]);
        assert_eq!(letters, format!("[{letter}]"), "{at}: {}", left(&bench));
    }
    // All of them in one call.
    let keys = (0..expected.len())
        .flat_map(|at| ["k", "s", "p", "f", "n"].map(|key| format!("{key}{at}")));
    let keys: Vec<_> = keys.collect();
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    let letters = bench.eval("classify", &keys, &[]);
    assert_eq!(letters.replace(' ', ""), format!("[{expected}]"));
}
