//! Compares what the README and the book say about speed and safety with the stored measurements.
//!
//! The sources are `docs/performance.json` and the generated part of `docs/safety.md`; the programs
//! that measure rewrite both. Then
//! `LOCKTOPUS_FIGURES=accept cargo test --workspace --all-features --test figures` rewrites the
//! quoted numbers. A sentence without a number ("costs less than") must be reworded by hand.
//!
//! | module | what is in it |
//! |---|---|
//! | `measured` | figures of `docs/performance.json` |
//! | `safety` | rows of `docs/safety.md`, and the claims of its text |
//! | `constants` | numbers that are not measured: defaults and limits, compared with the sources |
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod constants;
mod measured;
mod safety;

use std::fs;
use std::path::Path;

use locktopus_pages::Repository;
use measured::Measured;
use safety::Rows;
use serde_json::Value;

/// How much text may be between the words before and after a number.
const LONGEST: usize = 20;

/// A number that a page quotes, between words that locate it.
struct Quote {
    page: &'static str,
    before: &'static str,
    after: &'static str,
    now: String,
}

impl Quote {
    /// The page with the number updated.
    fn renewed(&self, text: &str) -> Result<String, String> {
        let nowhere = || format!("{}: nothing after {:?}", self.page, self.before);
        let (head, rest) = text.split_once(self.before).ok_or_else(nowhere)?;
        let at = rest.find(self.after).ok_or_else(nowhere)?;
        if at > LONGEST {
            return Err(format!(
                "{}: {:?} is not before {:?}",
                self.page, self.before, self.after
            ));
        }
        Ok([head, self.before, &self.now, &rest[at..]].concat())
    }
}

fn quotes(performance: &Value, safety: &Rows) -> Result<Vec<Quote>, String> {
    let mut quotes = Vec::new();
    let mut quote = |page, before, after, now| {
        quotes.push(Quote {
            page,
            before,
            after,
            now,
        });
    };
    let commands = Measured::wanted("lock", "commands").read(performance)?;
    for (before, after, now) in [
        (
            "after a grant, Sentinel, through redis-rs: ",
            " granted twice with `plain`",
            safety.doubles("plain")?,
        ),
        (
            " granted twice with `plain`, ",
            " with `quarantine`",
            safety.doubles("quarantine")?,
        ),
        (
            "to the next waiter: ",
            " commands sent for each acquisition, with 32 waiters",
            format!("{commands:.2}"),
        ),
    ] {
        quote("README.md", before, after, now);
    }
    let (before, after) = ("in a row of 80 faults means that after ", " the lock was");
    quote("docs/safety.md", before, after, safety.doubles("plain")?);
    // The rest of a row: the figure through redis-rs, and through fred.
    let both = |of: fn(&'static str) -> Measured| {
        let cell = |client| of(client).whole(performance);
        Ok::<_, String>(format!("{} | {}", cell("redis-rs")?, cell("fred")?))
    };
    let page = "docs/memory.md";
    let before = "| a held lock, its guard included | ";
    quote(page, before, " |\n", both(Measured::held)?);
    let before = "| a task that waits at the server for a lock of its own | ";
    let waiting = both(|client| Measured::waiting(client, 10_000))?;
    quote(page, before, " |\n", waiting);
    let in_line = Measured::waiting("redis-rs", 1).whole(performance)?;
    let before = "| a task in line inside the process | ";
    quote(page, before, " | |\n", in_line);
    Ok(quotes)
}

/// Claims without a number: the page, the words, and the two measurements behind them, the smaller
/// first.
const LESS: [(&str, &str, Measured, Measured); 4] = [
    (
        "docs/book/from/rslock.md",
        "An uncontended pair is slower than rslock's",
        Measured::alone("rslock", "mutex", "acquire+release p50"),
        Measured::alone("locktopus", "lock", "acquire+release p50"),
    ),
    (
        "docs/book/kinds/fair-lock.md",
        "with no waiters it costs the server more than `lock`",
        Measured::alone("locktopus", "lock", "server CPU"),
        Measured::alone("locktopus", "fair-lock", "server CPU"),
    ),
    (
        "docs/book/kinds/rw-lock.md",
        "[`lock`](lock.md) costs the server less",
        Measured::alone("locktopus", "lock", "server CPU"),
        Measured::alone("locktopus", "read-lock", "server CPU"),
    ),
    (
        "docs/book/kinds/rw-lock.md",
        "[`lock`](lock.md) costs the server less",
        Measured::alone("locktopus", "lock", "server CPU"),
        Measured::alone("locktopus", "write-lock", "server CPU"),
    ),
];

/// The sentence about the number of commands of a contended acquisition, in words.
const TWO_COMMANDS: (&str, &str) = (
    "docs/book/waiting.md",
    "a contended acquisition takes two commands",
);

fn sources(repository: &Repository) -> (Value, Rows) {
    let read = |page: &str| repository.read(Path::new(page)).expect("a kept result");
    let performance = serde_json::from_str(&read("docs/performance.json")).expect("JSON");
    let safety = Rows::read(&read("docs/safety.md")).expect("tables");
    (performance, safety)
}

#[test]
fn numbers_that_are_quoted_are_those_that_were_measured() {
    let repository = Repository::this();
    let accept = std::env::var("LOCKTOPUS_FIGURES").is_ok_and(|wish| wish == "accept");
    let (performance, safety) = sources(&repository);
    let mut stale = Vec::new();
    for quote in quotes(&performance, &safety).expect("the kept results have what is quoted") {
        let text = repository.read(Path::new(quote.page)).expect("a page");
        match quote.renewed(&text) {
            Err(error) => stale.push(error),
            Ok(now) if now == text => {}
            Ok(now) if accept => {
                fs::write(repository.root().join(quote.page), now).expect("a page");
            }
            Ok(_) => stale.push(format!(
                "{}: {:?} is now {}{}",
                quote.page, quote.before, quote.now, quote.after
            )),
        }
    }
    assert!(
        stale.is_empty(),
        "{}\nto renew numbers: LOCKTOPUS_FIGURES=accept cargo test --package locktopus-pages --test figures",
        stale.join("\n")
    );
}

#[test]
fn what_is_said_without_a_number_was_measured() {
    let repository = Repository::this();
    let (performance, _) = sources(&repository);
    let read = |what: Measured| what.read(&performance).expect("a kept result");
    let says = |page: &str, words: &str| {
        let text = repository.read(Path::new(page)).expect("a page");
        assert!(
            text.contains(words),
            "{page} no longer says {words:?}: what does it say?"
        );
    };
    for (page, words, less, more) in LESS {
        says(page, words);
        let (a, b) = (read(less), read(more));
        assert!(
            a < b,
            "{page} says {words:?}, but {a} of {less:?} is not below {b} of {more:?}"
        );
    }
    let (page, words) = TWO_COMMANDS;
    says(page, words);
    let commands = read(Measured::wanted("lock", "commands"));
    assert!(
        (1.9..2.1).contains(&commands),
        "{page} says {words:?}: {commands}"
    );
}

#[test]
fn a_number_that_changed_is_noticed() {
    let quote = Quote {
        page: "x",
        before: "it took ",
        after: " ms",
        now: "8".to_owned(),
    };
    assert_eq!(
        quote.renewed("so it took 7 ms.").unwrap(),
        "so it took 8 ms."
    );
    assert!(quote.renewed("so it takes 7 ms.").is_err());
    assert!(
        quote
            .renewed("so it took all the time of the world: 7 ms.")
            .is_err()
    );
}
