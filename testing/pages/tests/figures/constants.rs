//! Numbers in the book that are not measured, such as defaults and limits, compared with the code.

use std::path::Path;
use std::time::Duration;

use locktopus::{
    CohortSettings, LockName, MutexProfile, Notification, TokenRetention, ValidityMargin,
};
use locktopus_pages::Repository;

/// A page, its words, and the line of a source file that has the same number.
const SAID: &str = r"
docs/memory.md :: at most 448 attempts of a process are under way at once :: crates/locktopus-core/src/engine/holding/limits.rs :: const MAX_ATTEMPTS: usize = 448;
docs/memory.md :: 64 more for each shard :: crates/locktopus-core/src/engine/holding/limits.rs :: const MAX_CALLS_PER_SHARD: usize = 64;
docs/memory.md :: 8 × 64 subscriptions :: crates/locktopus-protocol/src/hub/joining.rs :: const BATCH: usize = 64;
docs/memory.md :: 8 × 64 subscriptions :: crates/locktopus-protocol/src/hub/joining.rs :: const BATCHES: usize = 8;
docs/memory.md :: a sample of a server with 100,000 keys or more :: crates/locktopus-protocol/src/backend/diagnose/token_keys.rs :: const MANY: u64 = 100_000;
docs/book/leases.md :: 30 s is the default :: crates/locktopus-core/src/engine/settings.rs :: renewed_lease: Duration::from_secs(30),
docs/book/choose.md :: the watchdog renews it after a third | 30 s | :: crates/locktopus-core/src/engine/settings.rs :: renewed_lease: Duration::from_secs(30),
docs/book/from/redisson.md :: (../leases.md#a-lease-that-is-renewed), 30 s, renewed every 10 s :: crates/locktopus-core/src/engine/settings.rs :: renewed_lease: Duration::from_secs(30),
docs/book/waiting.md :: A waiter still polls about once a second :: crates/locktopus-core/src/engine/settings.rs :: heartbeat: Duration::from_secs(1),
docs/book/waiting.md :: each twelfth of its lease :: crates/locktopus-core/src/engine/acquisition/waiting.rs :: let often = (self.plan.lease / 12).max(SHORTEST_HEARTBEAT);
docs/book/waiting.md :: but at least 50 ms apart :: crates/locktopus-core/src/engine/acquisition/attempts.rs :: SHORTEST_HEARTBEAT: Duration = Duration::from_millis(50);
docs/book/waiting.md :: after three heartbeats of silence :: crates/locktopus-core/src/engine/acquisition/waiting.rs :: self.heartbeat() * 3 + self.services.call_timeout()
docs/book/waiting.md :: the server leaves one hand-off in sixteen open :: crates/locktopus-protocol/lua/part/fast_head.lua :: turn, counts = now % 16 == 0, nil
docs/book/waiting.md :: for 20 ms, if another client listens :: crates/locktopus-protocol/lua/part/queue.lua :: local OPEN = 20
docs/book/from/redisson.md :: leaves one hand-off in sixteen open :: crates/locktopus-protocol/lua/part/fast_head.lua :: turn, counts = now % 16 == 0, nil
docs/book/from/redisson.md :: for 20 ms to listeners that are not ours :: crates/locktopus-protocol/lua/part/queue.lua :: local OPEN = 20
";

/// Text without its line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn read(path: &str) -> String {
    let text = Repository::this().read(Path::new(path));
    text.unwrap_or_else(|problem| panic!("{path}: {problem}"))
}

#[test]
fn numbers_of_the_code_are_those_of_the_book() {
    for row in SAID.trim().lines() {
        let parts: Vec<_> = row.split(" :: ").collect();
        let [page, words, source, line] = parts[..] else {
            panic!("not four parts: {row}");
        };
        assert!(
            flat(&read(page)).contains(words),
            "{page} no longer says {words:?}; {source} has {line:?}"
        );
        assert!(
            read(source).contains(line),
            "{page} says {words:?}, but {source} no longer has {line:?}"
        );
    }
}

#[test]
fn defaults_are_those_of_the_book() {
    let cohort = CohortSettings::default();
    let (turns, budget) = (cohort.turns, cohort.budget.as_millis());
    let margin = ValidityMargin::default();
    let lease = Duration::from_secs(30);
    let speed = lease.as_millis() * u128::from(margin.drift_ppm) / 1_000_000;
    let step = margin.clock_step.as_millis();
    let rest = lease.as_millis() - margin.validity(lease).as_millis() - speed - step;
    let percent = f64::from(margin.drift_ppm) / 10_000.0;
    let believed = margin.validity(lease).as_secs_f64();
    let TokenRetention::For(kept) = TokenRetention::default() else {
        panic!("tokens are kept for ever");
    };
    assert_eq!(kept, Duration::from_secs(24 * 60 * 60), "a day");
    let said = format!(
        "docs/book/waiting.md :: for at most {budget} ms or {turns} turns
        docs/safety.md :: the {budget} ms for which it is passed on
        docs/book/leases.md :: the lease less {percent} % for clocks of different speed, {step} ms for a step of the server's clock, and {rest} ms. \
         The holder of a 30 s lease trusts it for {believed:.1} s
        docs/book/faq.md :: stops {percent} % before the end of its lease
        docs/memory.md :: after the last grant: a day by default
        docs/book/from/redisson.md :: kept for a day (`token_retention`)"
    );
    for line in said.lines() {
        let (page, words) = line.trim().split_once(" :: ").expect("two halves");
        assert!(
            flat(&read(page)).contains(words),
            "{page} does not say {words:?}"
        );
    }
}

/// `1.6 GB`, in the style of docs/memory.md.
fn size(bytes: f64) -> String {
    match (bytes / 1e6, bytes / 1e9) {
        (mega, _) if mega < 1_000.0 => format!("{mega:.0} MB"),
        (_, giga) if giga < 10.0 => format!("{giga:.1} GB"),
        (_, giga) => format!("{giga:.0} GB"),
    }
}

/// The table of docs/memory.md for names used once follows from the page's other figures.
#[test]
fn what_names_come_to_is_calculated() {
    const MINUTES: [f64; 3] = [10.0, 60.0, 1_440.0];
    let page = flat(&read("docs/memory.md"));
    let (_, rest) = page.split_once("by `MEMORY USAGE`, ").expect("bytes");
    let (bytes, _) = rest.split_once(" with its places").expect("bytes");
    let bytes: f64 = bytes.parse().expect("a number");
    assert!(page.contains(&format!(
        "`requests per second × retention × {bytes}` bytes"
    )));
    for (shown, requests) in [("10", 10.0), ("100", 100.0), ("1,000", 1_000.0)] {
        let [a, b, c] = MINUTES.map(|minutes| size(bytes * requests * minutes * 60.0));
        let row = format!("| {shown} | {a} | {b} | {c} |");
        assert!(page.contains(&row), "docs/memory.md has no {row:?}");
    }
}

#[test]
fn every_profile_is_a_row_of_the_page_of_mutexes() {
    let page = read("docs/book/kinds/mutex.md");
    let (name, millisecond) = (LockName::new("N").unwrap(), Duration::from_millis(1));
    for word in MutexProfile::names() {
        let profile = MutexProfile::named(word).unwrap();
        let exact = profile.stored_lease(millisecond) == millisecond;
        let leases = ["whole seconds", "milliseconds"][usize::from(exact)];
        let mut row = format!("| `{word}` | `{}` | {leases} | ", profile.key(&name));
        match profile.notification(&name) {
            Some(Notification::List(list)) => row += &format!("`{list}`, a list"),
            Some(Notification::Channel(channel)) => row += &format!("`{channel}`, a channel"),
            _ => row += "they poll",
        }
        assert!(page.contains(&row), "the page lacks {row}");
    }
}
