//! The lists of rights match the scripts and the page for users.

use std::collections::BTreeSet;

use locktopus_protocol::scripts::{self, Script};
use locktopus_servers::rights::{
    DATABASE, FOR_OTHERS, OPTIONAL, PARTS, QUARANTINE, REPLICATED, WATCHED, WATCHERS, WITH_OTHERS,
    WORTH_HAVING, all,
};
use locktopus_servers::topology::TopologyKind;

/// A run cannot reach every branch of a script, so this searches its text as well.
#[test]
fn scripts_call_nothing_else() {
    for (what, scripts) in [
        ("locks", &scripts::LOCK),
        ("mutexes", &scripts::MUTEX),
        ("mutexes", &scripts::NOTIFYING_MUTEX),
        ("fair locks", &scripts::FAIR),
        ("read-write locks", &scripts::READ),
        ("read-write locks", &scripts::WRITE),
        ("semaphores", &scripts::SEMAPHORE),
        ("semaphores", &scripts::PERMITS),
        ("semaphores", &scripts::RATE),
    ] {
        let of_kind = [
            &scripts.acquire,
            &scripts.release,
            &scripts.extend,
            &scripts.inspect,
            &scripts.evict,
        ];
        for script in of_kind {
            covered(what, script);
        }
    }
    for (what, script) in [
        ("semaphores", &scripts::SEMAPHORE_COUNTER),
        ("semaphores", &scripts::PERMITS_COUNTER),
        ("semaphores", &scripts::RATE_COUNTER),
        ("semaphores", &scripts::RATE_READ),
        ("latches", &scripts::LATCH),
        ("semaphores", &scripts::SEMAPHORE_READ),
        ("semaphores", &scripts::PERMITS_READ),
        ("latches", &scripts::LATCH_READ),
        ("locks", &scripts::GROUP_ACQUIRE),
        ("locks", &scripts::LOCK_LINGER),
        ("mutexes", &scripts::MUTEX_LINGER),
        ("guarded writes", &scripts::GUARDED_WRITE),
        ("lists of locks", &scripts::CLASSIFY),
        ("locks", &scripts::WAIT_OFFSET),
        ("locks", &scripts::KEEP_TOKENS),
    ] {
        covered(what, script);
    }
    let (batches, alone): (Vec<_>, Vec<_>) =
        scripts::all().partition(|script| script.name.ends_with("_together"));
    for batch in batches {
        let like = batch.name.trim_end_matches("_together");
        let like = alone.iter().find(|script| script.name == like).unwrap();
        assert_eq!(called(batch.source), called(like.source), "{}", batch.name);
    }
    let (held_back, usual): (Vec<_>, Vec<_>) = alone
        .into_iter()
        .partition(|script| script.name.starts_with("quarantined_"));
    assert_eq!(usual.len(), 9 * 5 + 15, "a script is not listed here");
    for script in held_back {
        let like = script.name.trim_start_matches("quarantined_");
        let like = usual.iter().find(|usual| usual.name == like).unwrap();
        let more = &called(script.source) - &called(like.source);
        let known = ["info", "hmget", "hset"];
        assert!(
            more.iter().all(|command| known.contains(&command.as_str())),
            "{} calls {more:?}",
            script.name
        );
    }
}

fn covered(what: &str, script: &Script) {
    let part = PARTS.iter().find(|part| part.what == what).unwrap();
    let words = [PARTS[0].words(), part.words()].concat();
    let spared = [&OPTIONAL[..], &WITH_OTHERS].concat();
    let called = called(script.source);
    assert!(!called.is_empty(), "{}", script.name);
    for command in called {
        let right = format!("+{command}");
        assert!(
            words.contains(&right) || spared.contains(&command.as_str()),
            "{} calls {command}, which {what} do not list",
            script.name
        );
    }
}

/// The commands in a script's calls.
fn called(source: &str) -> BTreeSet<String> {
    // Includes aliases of `redis.call` and `redis.pcall`.
    let after = source.split("call('").skip(1);
    after
        .filter_map(|rest| rest.split('\'').next())
        .map(str::to_lowercase)
        .collect()
}

/// The page for users lists the same rights, and no others.
#[test]
fn the_page_says_the_same() {
    // A pipe in a table cell is escaped.
    let page = include_str!("../../../../../docs/acl.md").replace("\\|", "|");
    let is_right = |word: &&str| word.starts_with(['+', '~', '&']) && word.len() > 1;
    // Prose about a right does not grant it: only code, tables and lists count.
    let mut is_code = false;
    let granted = page.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        is_code || line.starts_with(['|', '-', ' '])
    });
    let said: BTreeSet<_> = granted
        .flat_map(|line| line.split([' ', '`']))
        .filter(is_right)
        .map(str::to_owned)
        .collect();
    let cluster = TopologyKind::CLUSTER;
    let mut needed: BTreeSet<_> = all(cluster).into_iter().collect();
    needed.extend(all(TopologyKind::SENTINEL));
    for mode in [REPLICATED, QUARANTINE] {
        needed.extend(mode.rights.split(' ').map(str::to_owned));
    }
    for more in [WATCHED, DATABASE, WATCHERS, WORTH_HAVING, FOR_OTHERS] {
        needed.extend(more.split(' ').map(str::to_owned));
    }
    assert_eq!(said, needed);
}
