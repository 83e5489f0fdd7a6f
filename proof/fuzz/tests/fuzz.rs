//! Every target on its corpus, and on random changes of it.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use locktopus_fuzz::{TARGETS, Target};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

/// All targets together take some seconds, unoptimised.
const CASES: u32 = 20_000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text}: not a number")),
    )
}

/// The files of a target's corpus, in the order of their names.
fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let entries = folder
        .read_dir()
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{name} has no corpus");
    files
        .into_iter()
        .map(|file| (file.clone(), std::fs::read(&file).unwrap()))
        .collect()
}

/// The failure of these bytes, if any.
fn fault((_, target): Target, data: &[u8]) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| target(data))).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    Some(text.unwrap_or_default())
}

#[test]
fn the_corpus_is_fine() {
    for target in TARGETS {
        for (file, data) in corpus(target.0) {
            if let Some(fault) = fault(target, &data) {
                panic!("{}: {fault}", file.display());
            }
        }
    }
}

/// One change of a file.
#[derive(Debug, Clone)]
enum Change {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// The rest of another file from there on.
    Join(Index, Vec<u8>, Index),
}

fn changed(mut data: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let place = |at: &Index, data: &[u8]| at.index(data.len() + 1);
        match change {
            Change::Set(at, byte) => {
                let at = place(at, &data);
                if let Some(old) = data.get_mut(at) {
                    *old = *byte;
                }
            }
            Change::Insert(at, bytes) => {
                let at = place(at, &data);
                data.splice(at..at, bytes.iter().copied());
            }
            Change::Remove(at, count) => {
                let at = place(at, &data);
                data.drain(at..data.len().min(at + count));
            }
            Change::Join(at, other, from) => {
                data.truncate(place(at, &data));
                data.extend(&other[place(from, other).min(other.len())..]);
            }
        }
    }
    data
}

fn inputs(files: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    // Words that are special to some target.
    let words: Vec<Vec<u8>> = [
        "{",
        "}",
        ":",
        "@",
        "/",
        "?",
        "&",
        "=",
        "%",
        "***",
        ".",
        "\0",
        "\n",
        "\"",
        "[",
        "]",
        "-1",
        "locktopus1.",
    ]
    .map(|word| word.as_bytes().to_vec())
    .into_iter()
    .chain([
        vec![0xff; 8],
        vec![0; 8],
        i64::MAX.to_le_bytes().to_vec(),
        i64::MIN.to_le_bytes().to_vec(),
    ])
    .collect();
    let bytes =
        || prop_oneof![3 => select(words.clone()), 1 => prop::collection::vec(any::<u8>(), 1..9)];
    let change = prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        4 => (any::<Index>(), bytes()).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => (any::<Index>(), 1..9_usize).prop_map(|(at, count)| Change::Remove(at, count)),
        1 => (any::<Index>(), select(files.clone()), any::<Index>()).prop_map(|(at, other, from)| Change::Join(at, other, from)),
    ];
    let changes = prop::collection::vec(change, 1..6);
    prop_oneof![
        9 => (select(files), changes).prop_map(|(data, changes)| changed(data, &changes)),
        1 => prop::collection::vec(any::<u8>(), 0..64),
    ]
}

/// How many changes of a target to try. With none, every test would pass.
fn cases(asked: Option<u64>, share: u32) -> u32 {
    let cases = asked.map_or(CASES, |cases| cases.try_into().unwrap()) / share;
    assert!(cases > 0, "nothing would be tried of {asked:?}");
    cases
}

#[test]
#[should_panic(expected = "nothing would be tried")]
fn to_try_nothing_is_no_success() {
    cases(Some(9), 10);
}

/// Tries one target, `share` times less often. A failure is shown in its smallest form, to be kept
/// in the corpus.
fn is_fine(target: Target, share: u32) {
    let config = Config {
        cases: cases(number("LOCKTOPUS_FUZZ"), share),
        rng_seed: RngSeed::Fixed(number("LOCKTOPUS_FUZZ_SEED").unwrap_or(1)),
        failure_persistence: None,
        ..Config::default()
    };
    let files = corpus(target.0).into_iter().map(|(_, data)| data).collect();
    let tried = TestRunner::new(config).run(&inputs(files), |data| {
        fault(target, &data).map_or(Ok(()), |fault| Err(TestCaseError::fail(fault)))
    });
    match tried {
        Ok(()) => {}
        Err(TestError::Fail(fault, data)) => {
            panic!("{} b\"{}\": {fault}", target.0, data.escape_ascii())
        }
        Err(TestError::Abort(why)) => panic!("{}: {why}", target.0),
    }
}

#[test]
fn names_and_their_neighbours() {
    is_fine(TARGETS[0], 1);
}

#[test]
fn urls_and_their_neighbours() {
    is_fine(TARGETS[1], 1);
}

#[test]
fn plans_and_their_neighbours() {
    // Each input is a whole file.
    is_fine(TARGETS[2], 10);
}

#[test]
fn replies_and_their_neighbours() {
    is_fine(TARGETS[3], 1);
}

#[test]
fn ids_and_their_neighbours() {
    is_fine(TARGETS[4], 1);
}
