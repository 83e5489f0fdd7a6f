//! The least that a user must be allowed, by what it is for.
//!
//! `docs/acl.md` says the same in prose; `locktopus-suite` checks that (`security/listed.rs`), and
//! that no script calls anything else. Every test program logs in as such a user.

use std::collections::BTreeSet;

use crate::topology::TopologyKind;

/// Rights that one use of the library needs.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// What it is for.
    pub what: &'static str,
    /// Commands that clients send, and that scripts call.
    pub commands: &'static str,
    /// Keys and channels of locks whose names start with `app:`. After a `:` stands a name, in
    /// braces unless it has some of its own (`app:{user:7}:cart`), hence two forms of each.
    pub places: &'static [&'static str],
}

/// Every use. The first is what all others need too, because the connect-time checks take a lock.
pub const PARTS: [Part; 9] = [
    Part {
        what: "locks",
        commands: "+eval +evalsha +time +ping +get +set +del +exists +pexpire +pexpireat +pttl \
                   +hset +hget +hdel +hexists +hkeys +hgetall +hmget \
                   +zadd +zrem +zpopmin +zrange +zcard +zrank +zscore",
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
        commands: "+linsert +lpos +lrange +lrem +rpush",
        places: &["~redisson_lock_queue:", "~redisson_lock_timeout:"],
    },
    Part {
        what: "read-write locks",
        commands: "+hlen +hsetnx +pexpiretime",
        places: &["~{app:*", "&redisson_rwlock:"],
    },
    Part {
        what: "semaphores",
        commands: "+incrby +decrby",
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
    Part {
        what: "labels",
        commands: "",
        places: &["~locktopus_instance:{app:*"],
    },
];

/// Rights that a safety mode needs beyond those of what is locked.
#[derive(Debug, Clone, Copy)]
pub struct Mode {
    /// Options of the URL that choose it.
    pub options: &'static str,
    /// What it needs.
    pub rights: &'static str,
}

/// Asks replicas.
pub const REPLICATED: Mode = Mode {
    options: "safety=replicated&timeout=4s&replication_timeout=3s",
    rights: "+wait +role ~locktopus_mark*",
};

/// Asks for the server's history.
pub const QUARANTINE: Mode = Mode {
    options: "safety=quarantine&quarantine_max_lease=500ms",
    rights: "+info ~locktopus_history*",
};

/// Asked in a cluster under quarantine, which does without otherwise.
pub const WATCHED: &str = "+cluster|nodes";

/// For the messages that wake waiters, outside a cluster.
const PLAIN_MESSAGES: &str = "+publish +subscribe +unsubscribe";

/// For a cluster: sharded messages, the map of slots, and following a slot that is being moved.
const CLUSTER: &str = "+spublish +ssubscribe +sunsubscribe +cluster|slots +asking";

/// For a database other than 0.
pub const DATABASE: &str = "+select";

/// For a user of the sentinels themselves.
pub const WATCHERS: &str = "+sentinel|get-master-addr-by-name +sentinel|master +subscribe \
                            &+switch-master &+promoted-slave";

/// Worth having: what the checks at connecting look at, and how many listen, of any library.
pub const WORTH_HAVING: &str = "+info +pubsub|numsub +pubsub|shardnumsub";

/// For waiters of other libraries at the same locks.
pub const FOR_OTHERS: &str = "+lindex +lpush";

/// What scripts ask if they may, and do without otherwise.
pub const OPTIONAL: [&str; 1] = ["pubsub"];

/// Called only where another library's clients wait: for a fair lock, behind somebody who does not
/// listen; for a mutex, at a list.
pub const WITH_OTHERS: [&str; 2] = ["lindex", "lpush"];

impl Part {
    /// Its rights, one word each.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
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
    #[must_use]
    pub fn words_on(&self, kind: TopologyKind) -> Vec<String> {
        let mut words = self.words();
        if self.what == PARTS[0].what {
            let more = match kind {
                TopologyKind::Cluster { .. } => CLUSTER.to_owned(),
                _ => PLAIN_MESSAGES.to_owned(),
            };
            words.extend(more.split_whitespace().map(str::to_owned));
        }
        words
    }
}

/// Every right there is, once.
#[must_use]
pub fn all(kind: TopologyKind) -> Vec<String> {
    let words: BTreeSet<_> = PARTS.iter().flat_map(|part| part.words_on(kind)).collect();
    words.into_iter().collect()
}

/// Rules that grant these rights and nothing else.
#[must_use]
pub fn rules(words: &[String]) -> String {
    format!("resetchannels -@all {}", words.join(" "))
}

/// The user that tests of everything else log in as: all of the recipe, in no namespace.
#[must_use]
pub fn of_the_suite(kind: TopologyKind) -> String {
    let more = [
        // Also for a cluster with `pubsub=plain`.
        PLAIN_MESSAGES,
        REPLICATED.rights,
        QUARANTINE.rights,
        WATCHED,
        DATABASE,
        WORTH_HAVING,
        FOR_OTHERS,
    ];
    let more = more.iter().flat_map(|rights| rights.split(' '));
    let mut words = all(kind);
    words.extend(more.map(str::to_owned));
    // Without a prefix names may be anything.
    words.retain(|word| !word.starts_with('~'));
    words.push("~*".to_owned());
    rules(&words).replace("app:", "")
}

/// The same for sentinels.
#[must_use]
pub fn of_sentinels() -> String {
    rules(&[WATCHERS.to_owned()])
}
