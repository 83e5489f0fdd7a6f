//! The minimal rights of a user, by purpose.
//!
//! `docs/acl.md` lists the same in prose. `locktopus-suite` checks that (`security/listed.rs`), and
//! that no script calls anything else. Every test program logs in as such a user.

use std::collections::BTreeSet;

use crate::topology::TopologyKind;

/// The rights for one use of the library.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The use.
    pub what: &'static str,
    /// Commands that clients send and that scripts call.
    pub commands: &'static str,
    /// Keys and channels of locks whose names start with `app:`. The part after a `:` is a name, in
    /// braces unless it has its own (`app:{user:7}:cart`), so each pattern has two forms.
    pub places: &'static [&'static str],
}

/// Every use. All others need the first one too, because the connect-time checks take a lock.
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

/// Rights that a safety mode needs beyond those of the locks.
#[derive(Debug, Clone, Copy)]
pub struct Mode {
    /// URL options that select it.
    pub options: &'static str,
    /// Its rights.
    pub rights: &'static str,
}

/// Waits for replicas.
pub const REPLICATED: Mode = Mode {
    options: "safety=replicated&timeout=4s&replication_timeout=3s",
    rights: "+wait +role ~locktopus_mark*",
};

/// Reads the server's history.
pub const QUARANTINE: Mode = Mode {
    options: "safety=quarantine&quarantine_max_lease=500ms",
    rights: "+info ~locktopus_history*",
};

/// Used in a cluster under quarantine, which works without it.
pub const WATCHED: &str = "+cluster|nodes";

/// For the messages that wake waiters, outside a cluster.
const PLAIN_MESSAGES: &str = "+publish +subscribe +unsubscribe";

/// For a cluster: sharded messages, the slot map, and following a slot that is being moved.
const CLUSTER: &str = "+spublish +ssubscribe +sunsubscribe +cluster|slots +asking";

/// For a database other than 0.
pub const DATABASE: &str = "+select";

/// For a user of the sentinels themselves.
pub const WATCHERS: &str = "+sentinel|get-master-addr-by-name +sentinel|master +subscribe \
                            &+switch-master &+promoted-slave";

/// Useful: what the connect-time checks read, and how many clients of any library listen.
pub const WORTH_HAVING: &str = "+info +pubsub|numsub +pubsub|shardnumsub";

/// For waiters of other libraries at the same locks.
pub const FOR_OTHERS: &str = "+lindex +lpush";

/// Scripts use these if permitted, and work without them.
pub const OPTIONAL: [&str; 1] = ["pubsub"];

/// Called only if another library's clients wait: for a fair lock, behind a waiter that does not
/// listen; for a mutex, on a list.
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

    /// Its rights, including those that this kind of servers needs.
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

/// Every right, once.
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

/// The user of all other tests: the whole recipe, without a namespace.
#[must_use]
pub fn of_the_suite(kind: TopologyKind) -> String {
    let more = [
        // For a cluster with `pubsub=plain` too.
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
    // Without a prefix, names may be anything.
    words.retain(|word| !word.starts_with('~'));
    words.push("~*".to_owned());
    rules(&words).replace("app:", "")
}

/// The same for sentinels.
#[must_use]
pub fn of_sentinels() -> String {
    rules(&[WATCHERS.to_owned()])
}
