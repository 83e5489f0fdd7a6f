//! The least that a user must be allowed, by what it is for. `docs/acl.md` says the same in prose.

use std::collections::BTreeSet;

use locktopus_protocol::scripts::{self, Script};
use locktopus_testkit::topology::TopologyKind;

/// Rights that one use of the library needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// What it is for.
    pub(crate) what: &'static str,
    /// Commands that clients send, and that scripts call.
    pub(crate) commands: &'static str,
    /// Keys and channels of locks whose names start with `app:`. After a `:` stands a name, in braces unless it
    /// has some of its own (`app:{user:7}:cart`), hence two forms of each.
    pub(crate) places: &'static [&'static str],
}

/// Every use. The first is what all others need too, because the connect-time checks take a lock.
pub(crate) const PARTS: [Part; 8] = [
    Part {
        what: "locks",
        commands: "+eval +evalsha +time +ping +get +set +del +exists +pexpire +pttl \
                   +hset +hget +hdel +hexists +hkeys +hgetall +hmget \
                   +zadd +zrem +zrange +zcard +zrank",
        places: &[
            "~app:*",
            "~redisson_lock_token:",
            "~locktopus_queue:",
            "~locktopus_waiters:",
            "&redisson_lock__channel:",
            "&locktopus_inbox:",
            "&locktopus_native:",
        ],
    },
    Part {
        what: "mutexes",
        commands: "",
        places: &["&locktopus_mutex__channel:"],
    },
    Part {
        what: "fair locks",
        commands: "+llen +lpos +lrange +lrem +rpush +zscore",
        places: &["~redisson_lock_queue:", "~redisson_lock_timeout:"],
    },
    Part {
        what: "read-write locks",
        commands: "+hlen +hsetnx",
        places: &["~{app:*", "&redisson_rwlock:"],
    },
    Part {
        what: "semaphores",
        commands: "+incrby +decrby +zscore",
        places: &[
            "~{app:*",
            "~locktopus_holders:",
            "~locktopus_kind:",
            "~locktopus_done:",
            "&redisson_sc:",
        ],
    },
    Part {
        what: "latches",
        commands: "",
        places: &[
            "~{app:*",
            "~locktopus_holders:",
            "~locktopus_kind:",
            "~locktopus_done:",
            "&redisson_countdownlatch__channel__{app:*",
        ],
    },
    Part {
        what: "lists of locks",
        commands: "+scan +type +hlen +strlen",
        places: &["~{app:*", "~locktopus_holders:", "~redisson_lock_timeout:"],
    },
    Part {
        what: "guarded writes",
        commands: "+persist",
        places: &["~locktopus_fence:"],
    },
];

/// Rights that a safety mode needs beyond those of what is locked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode {
    pub(crate) options: &'static str,
    pub(crate) rights: &'static str,
}

/// Asks replicas.
pub(crate) const REPLICATED: Mode = Mode {
    options: "safety=replicated&timeout=4s&replication_timeout=3s",
    rights: "+wait +role ~locktopus_mark*",
};

/// Asks for the server's history.
pub(crate) const QUARANTINE: Mode = Mode {
    options: "safety=quarantine&quarantine_max_lease=500ms",
    rights: "+info ~locktopus_history*",
};

/// Asked in a cluster under quarantine, which does without otherwise.
const WATCHED: &str = "+cluster|nodes";

/// For the messages that wake waiters, outside a cluster.
const PLAIN_MESSAGES: &str = "+publish +subscribe +unsubscribe";

/// More where sentinels are asked: whether the server they name is really the primary.
const SENTINEL: &str = "+role";

/// For a cluster: sharded messages, and the map of slots.
const CLUSTER: &str = "+spublish +ssubscribe +sunsubscribe +cluster|slots";

/// What scripts ask if they may, and do without otherwise.
const OPTIONAL: [&str; 1] = ["pubsub"];

/// Called only where another library's clients wait: for a fair lock, behind somebody who does not listen; for a
/// mutex, at a list.
const WITH_OTHERS: [&str; 3] = ["lindex", "linsert", "lpush"];

impl Part {
    /// Its rights, one word each.
    pub(crate) fn words(&self) -> Vec<String> {
        let commands = self.commands.split_whitespace().map(str::to_owned);
        let places = self.places.iter().flat_map(|place| {
            if place.ends_with(':') {
                vec![format!("{place}{{app:*"), format!("{place}app:*")]
            } else {
                vec![(*place).to_owned()]
            }
        });
        commands.chain(places).collect()
    }

    /// Its rights, with those that the servers themselves call for.
    pub(crate) fn words_on(&self, kind: TopologyKind) -> Vec<String> {
        let mut words = self.words();
        if self.what == PARTS[0].what {
            let more = match kind {
                TopologyKind::Cluster { .. } => CLUSTER.to_owned(),
                TopologyKind::Sentinel { .. } => format!("{PLAIN_MESSAGES} {SENTINEL}"),
                _ => PLAIN_MESSAGES.to_owned(),
            };
            words.extend(more.split_whitespace().map(str::to_owned));
        }
        words
    }
}

/// Every right there is, once.
pub(crate) fn all(kind: TopologyKind) -> Vec<String> {
    let words: BTreeSet<_> = PARTS.iter().flat_map(|part| part.words_on(kind)).collect();
    words.into_iter().collect()
}

/// Rules that grant these rights and nothing else.
pub(crate) fn rules(words: &[String]) -> String {
    format!("resetchannels -@all {}", words.join(" "))
}

/// Runs cannot reach every branch of a script, so its text is searched as well.
#[test]
fn scripts_call_nothing_else() {
    for (what, scripts) in [
        ("locks", &scripts::LOCK),
        ("mutexes", &scripts::MUTEX),
        ("mutexes", &scripts::BELL_MUTEX),
        ("fair locks", &scripts::FAIR),
        ("read-write locks", &scripts::READ),
        ("read-write locks", &scripts::WRITE),
        ("semaphores", &scripts::SEMAPHORE),
        ("semaphores", &scripts::PERMITS),
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
        ("latches", &scripts::LATCH),
        ("semaphores", &scripts::SEMAPHORE_READ),
        ("semaphores", &scripts::PERMITS_READ),
        ("latches", &scripts::LATCH_READ),
        ("locks", &scripts::GROUP_ACQUIRE),
        ("guarded writes", &scripts::GUARDED_WRITE),
        ("lists of locks", &scripts::CLASSIFY),
        ("locks", &scripts::MARK),
    ] {
        covered(what, script);
    }
    let (held_back, usual): (Vec<_>, Vec<_>) =
        scripts::all().partition(|script| script.name.starts_with("quarantined_"));
    assert_eq!(usual.len(), 8 * 5 + 10, "a script is not listed here");
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

/// The commands that a script names where it calls one.
fn called(source: &str) -> BTreeSet<String> {
    let calls = ["redis.call('", "redis.pcall('"];
    let after = calls.iter().flat_map(|call| source.split(call).skip(1));
    after
        .filter_map(|rest| rest.split('\'').next())
        .map(str::to_lowercase)
        .collect()
}

/// The page for users lists the same rights, and no others.
#[test]
fn the_page_says_the_same() {
    let page = include_str!("../../../../docs/acl.md");
    let is_right = |word: &&str| word.starts_with(['+', '~', '&']) && word.len() > 1;
    let said: BTreeSet<_> = page
        .split([' ', '\n', '`'])
        .filter(is_right)
        .map(str::to_owned)
        .collect();
    let cluster = TopologyKind::CLUSTER;
    let mut needed: BTreeSet<_> = all(cluster).into_iter().collect();
    needed.extend(all(TopologyKind::SENTINEL));
    for mode in [REPLICATED, QUARANTINE] {
        needed.extend(mode.rights.split(' ').map(str::to_owned));
    }
    needed.extend(
        [
            WATCHED,
            "+lindex",
            "+linsert",
            "+lpush",
            "+pubsub|numsub",
            "+pubsub|shardnumsub",
        ]
        .map(str::to_owned),
    );
    assert_eq!(said, needed);
}
