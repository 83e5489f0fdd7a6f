//! The operations that a script was called for, read from its name, keys and arguments.

use locktopus_model::layout::{Kind, Layout, Mode, Owner, owner_of};
use locktopus_model::redis::Reply;

/// The operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Acquire {
        lease_ms: i64,
        not_after: i64,
        tokens: i64,
        /// The smallest token it accepts.
        floor: i64,
        /// Whether this is the first request of its owner.
        first: bool,
    },
    Release,
    Extend {
        lease_ms: i64,
    },
    Evict,
    Counter {
        action: String,
        number: i64,
    },
}

/// One operation of a script, on one lock.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) what: What,
    pub(super) owner: Option<Owner>,
    pub(super) mode: Mode,
    pub(super) permits: i64,
    /// If the lock is not free, it wants to queue.
    pub(super) queues: bool,
    pub(super) layout: Layout,
    /// The name of the lock on servers.
    pub(super) lock: Vec<u8>,
    /// The position of its reply, if the script returns several.
    pub(super) place: Option<usize>,
}

/// The reply, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Granted {
        token: i64,
    },
    Held {
        remaining_ms: Option<i64>,
    },
    Queued {
        remaining_ms: Option<i64>,
        ahead: i64,
    },
    Late,
    Released(bool),
    Extended,
    Missing,
    TakenOver,
    Changed(Option<i64>, bool),
    Error(String),
    Other,
}

impl Answer {
    /// Whether the lock has a holder until a time that the script knew.
    pub(super) fn is_held_for_a_time(&self) -> bool {
        match self {
            Self::Held { remaining_ms } | Self::Queued { remaining_ms, .. } => {
                remaining_ms.is_some()
            }
            _ => false,
        }
    }
}

/// The kind of a script, by the start of its name.
const KINDS: [(&str, Kind); 9] = [
    ("lock_", Kind::Lock),
    ("mutex_", Kind::Mutex),
    ("notifying_mutex_", Kind::Mutex),
    ("fair_lock_", Kind::Fair),
    ("read_lock_", Kind::ReadWrite),
    ("write_lock_", Kind::ReadWrite),
    ("semaphore_", Kind::Semaphore),
    ("permits_", Kind::Permits),
    ("permit_semaphore_", Kind::Permits),
];

/// The name without the prefix of quarantined scripts.
pub(super) fn plain(script: &str) -> &str {
    script.strip_prefix("quarantined_").unwrap_or(script)
}

pub(super) fn kind(script: &str) -> Option<Kind> {
    let script = plain(script);
    let found = KINDS.iter().find(|(start, _)| script.starts_with(start));
    found.map(|(_, kind)| *kind)
}

impl Call {
    /// The operations of a script. Empty if it cannot change who holds a lock.
    pub(super) fn all(script: &str, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Vec<Self> {
        let name = plain(script);
        if name == "group_acquire" {
            // Quarantine adds arguments here, so nothing tells how many members there are.
            return if name == script {
                group(keys, arguments)
            } else {
                Vec::new()
            };
        }
        let Some(kind) = kind(name) else {
            return Vec::new();
        };
        if name.ends_with("_extend") {
            return extensions(name, kind, keys, arguments);
        }
        let Some(lock) = keys.first() else {
            return Vec::new();
        };
        // Quarantine appends one key, its record, and two arguments: the longest lease, and what
        // the client has seen.
        let quarantined = usize::from(name != script);
        let keys = keys[..keys.len() - quarantined].to_vec();
        let arguments = &arguments[..arguments.len().saturating_sub(2 * quarantined)];
        let argument = |at: usize| arguments.get(at).map_or(&b""[..], Vec::as_slice);
        let number = |at: usize| number(argument(at));
        let (what, owner, mode, permits) = if name.ends_with("_acquire") {
            let what = What::Acquire {
                lease_ms: number(1),
                not_after: number(3),
                tokens: number(6),
                floor: number(7),
                first: arguments.len() > 13 && argument(13) == b"1",
            };
            (
                what,
                Some(owner_of(argument(0))),
                mode(argument(4)),
                number(5),
            )
        } else if name.ends_with("_release") {
            let owner = owner_of(argument(0));
            (What::Release, Some(owner), mode(argument(1)), number(2))
        } else if name.ends_with("_evict") {
            (What::Evict, None, Some(Mode::Exclusive), 0)
        } else if name.ends_with("_counter") {
            let action = String::from_utf8_lossy(argument(0)).into_owned();
            let number = number(1);
            (
                What::Counter { action, number },
                None,
                Some(Mode::Permits),
                0,
            )
        } else {
            return Vec::new();
        };
        let Some(mode) = mode else {
            return Vec::new();
        };
        vec![Self {
            what,
            owner,
            mode,
            permits,
            queues: name.ends_with("_acquire") && !argument(9).is_empty(),
            lock: lock.clone(),
            layout: Layout::new(kind, padded(keys)),
            place: None,
        }]
    }

    pub(super) fn answer(&self, reply: &Reply) -> Answer {
        if let Reply::Error(line) = reply {
            return Answer::Error(line.clone());
        }
        match self.what {
            What::Acquire { .. } => self.acquired(reply),
            What::Release => released(reply),
            What::Extend { .. } => self.extended(reply),
            What::Counter { .. } => changed(reply),
            What::Evict => Answer::Other,
        }
    }

    fn acquired(&self, reply: &Reply) -> Answer {
        let What::Acquire { tokens, .. } = self.what else {
            return Answer::Other;
        };
        if let Some(token) = reply.as_int() {
            let token = if tokens > 0 { token } else { 0 };
            return Answer::Granted { token };
        }
        let ints: Vec<_> = reply.items().iter().filter_map(Reply::as_int).collect();
        let remaining = |ms: i64| (ms >= 0).then_some(ms);
        match (self.place, ints.as_slice()) {
            (Some(member), [1, _, _, tokens @ ..]) => Answer::Granted {
                token: tokens.get(member).copied().unwrap_or(0),
            },
            (Some(_), _) => Answer::Other,
            (None, [0, ms, _]) => Answer::Held {
                remaining_ms: remaining(*ms),
            },
            (None, [1, token, _]) => Answer::Granted { token: *token },
            (None, [2, ..]) => Answer::Late,
            (None, [3, ms, _, ahead, ..]) => Answer::Queued {
                remaining_ms: remaining(*ms),
                ahead: *ahead,
            },
            _ => Answer::Other,
        }
    }

    fn extended(&self, reply: &Reply) -> Answer {
        // A number means that all were extended.
        if reply.as_int().is_some_and(|all| all > 0) {
            return Answer::Extended;
        }
        let own = self.place.and_then(|place| reply.items().get(place));
        match own.and_then(Reply::as_int) {
            Some(1) => Answer::Extended,
            Some(0) => Answer::Missing,
            Some(-1) => Answer::TakenOver,
            _ => Answer::Other,
        }
    }
}

fn released(reply: &Reply) -> Answer {
    match reply.as_int() {
        Some(_) => Answer::Released(true),
        None => Answer::Released(false),
    }
}

fn changed(reply: &Reply) -> Answer {
    let items = reply.items();
    let value = items.first().and_then(|value| match value {
        Reply::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        value => value.as_int(),
    });
    Answer::Changed(value, items.get(1).and_then(Reply::as_int) == Some(1))
}

/// A script that extends gets only a few keys for each of several locks.
fn extensions(name: &str, kind: Kind, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Vec<Call> {
    let Some((lease, rest)) = arguments.split_first() else {
        return Vec::new();
    };
    let reads = name.starts_with("read_");
    let counted = matches!(kind, Kind::Semaphore | Kind::Permits);
    let each = (if reads { 2 } else { 1 }, if counted { 2 } else { 1 });
    let calls = keys.chunks_exact(each.0).zip(rest.chunks_exact(each.1));
    let calls = calls.enumerate().map(|(place, (keys, of))| {
        let owner = owner_of(&of[0]);
        let mut own = vec![keys[0].clone()];
        if reads {
            let ends = format!(":{owner}:rwlock_timeout:1");
            let prefix = keys[1].strip_suffix(ends.as_bytes()).unwrap_or(&keys[1]);
            own.resize(4, Vec::new());
            own.push(prefix.to_vec());
        }
        if counted {
            own = vec![Vec::new(); 4];
            own.push(keys[0].clone());
        }
        Call {
            what: What::Extend {
                lease_ms: number(lease),
            },
            owner: Some(owner),
            mode: match kind {
                Kind::ReadWrite if reads => Mode::Read,
                Kind::ReadWrite => Mode::Write,
                Kind::Semaphore | Kind::Permits => Mode::Permits,
                _ => Mode::Exclusive,
            },
            permits: of.get(1).map_or(1, |permits| number(permits)),
            queues: false,
            lock: keys[0].clone(),
            layout: Layout::new(kind, padded(own)),
            place: Some(place),
        }
    });
    calls.collect()
}

/// Each member: `<keys> <l or m> <owner> <lease> <tokens> <floor>`.
fn group(keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Vec<Call> {
    let mut used = 0;
    let members = arguments.get(3..).unwrap_or_default().chunks_exact(6);
    let members = members.enumerate().filter_map(|(place, member)| {
        let count = usize::try_from(number(&member[0])).ok()?;
        let own = keys.get(used..used + count)?.to_vec();
        used += count;
        let kind = if member[1] == b"l" {
            Kind::Lock
        } else {
            Kind::Mutex
        };
        Some(Call {
            what: What::Acquire {
                lease_ms: number(&member[3]),
                not_after: number(&arguments[1]),
                tokens: number(&member[4]),
                floor: number(&member[5]),
                first: false,
            },
            owner: Some(owner_of(&member[2])),
            mode: Mode::Exclusive,
            permits: 1,
            queues: false,
            lock: own.first()?.clone(),
            layout: Layout::new(kind, padded(own)),
            place: Some(place),
        })
    });
    members.collect()
}

fn padded(mut keys: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    keys.resize(keys.len().max(6), Vec::new());
    keys
}

fn mode(letter: &[u8]) -> Option<Mode> {
    match letter {
        b"x" | b"m" | b"f" => Some(Mode::Exclusive),
        b"r" => Some(Mode::Read),
        b"w" => Some(Mode::Write),
        b"s" | b"p" => Some(Mode::Permits),
        _ => None,
    }
}

fn number(bytes: &[u8]) -> i64 {
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments that quarantine appends are none of the attempt's, even if those are few.
    #[test]
    fn quarantine_asks_for_no_place() {
        let keys = ["a", "token", "queue", "waiters", "record"].map(|key| key.as_bytes().to_vec());
        let wants_none = ["o", "400", "0", "0", "x", "1", "0", "0", "PUBLISH"];
        for (place, queues) in [(&[][..], false), (&["700", "inbox"][..], true)] {
            let words = wants_none.iter().chain(place).chain(&["400", "@0"]);
            let words: Vec<_> = words.map(|word| word.as_bytes().to_vec()).collect();
            let calls = Call::all("quarantined_lock_acquire", &keys, &words);
            let queue: Vec<_> = calls.iter().map(|call| call.queues).collect();
            assert_eq!(queue, [queues]);
            let own = words.len() - 2;
            let plain = Call::all("lock_acquire", &keys[..4], &words[..own]);
            assert_eq!(format!("{calls:?}"), format!("{plain:?}"));
        }
    }
}
