//! Reads the keys of a lock: who holds it, and who waits. Only the simulator reads them like this,
//! no client does.

mod kind;
mod waiters;
mod who;

use std::borrow::Cow;

pub use self::kind::Kind;
use self::waiters::{in_line, waiter};
pub use self::who::{Holder, Mode, Owner, Waiter};
use crate::redis::{Entry, Server, Value};

/// The keys of one lock, in the order of scripts' `KEYS`.
#[derive(Debug)]
pub struct Layout {
    kind: Kind,
    keys: Vec<Vec<u8>>,
}

const LOCK: usize = 0;
const QUEUE: usize = 2;
const WAITERS: usize = 3;
/// A key that only some kinds have.
const MORE: usize = 4;
/// How long a lock may be left to clients that cannot queue, in microseconds, including the time
/// until a script reads the clock.
const OPEN: i64 = 31_000;
/// Added to the ticket of a waiter that is set aside, or to the time of that.
const ASIDE: f64 = 4e15;
/// The key that tells the kind of a number.
const MARK: usize = 5;

impl Layout {
    /// The keys of a lock of this kind. Keys that a script does not get may be missing or empty.
    #[must_use]
    pub fn new(kind: Kind, keys: Vec<Vec<u8>>) -> Self {
        Self { kind, keys }
    }

    /// The key that expires with one reader's lease.
    fn own_key(&self, owner: &str) -> Vec<u8> {
        let prefix = self.keys[MORE].as_slice();
        [prefix, b":", owner.as_bytes(), b":rwlock_timeout:1"].concat()
    }

    /// Whether a script may touch a key that it did not get: readers have keys with names of their
    /// own.
    #[must_use]
    pub fn may_touch(&self, key: &[u8]) -> bool {
        let rest = || key.strip_prefix(self.keys[MORE].as_slice());
        self.kind == Kind::ReadWrite && rest().is_some_and(|rest| rest.starts_with(b":"))
    }

    /// The free permits of a semaphore.
    #[must_use]
    pub fn free(&self, server: &Server) -> Option<i64> {
        match &self.entry(server, LOCK)?.value {
            Value::Text(free) if self.kind.is_counted() => words(free).parse().ok(),
            _ => None,
        }
    }

    /// The holders of the lock on a server now.
    #[must_use]
    pub fn holders(&self, server: &Server) -> Vec<Holder> {
        let place = if self.kind.is_counted() { MORE } else { LOCK };
        let Some(entry) = self.entry(server, place) else {
            return Vec::new();
        };
        let whole = |owner: &[u8]| holder(text(owner), Mode::Exclusive, expiry(entry));
        match (self.kind, &entry.value) {
            (Kind::Lock | Kind::Fair, Value::Hash(fields)) => {
                fields.iter().map(|(owner, _)| whole(owner)).collect()
            }
            (Kind::Mutex, Value::Text(owner)) => vec![whole(owner)],
            (Kind::ReadWrite, Value::Hash(fields)) => {
                let fields = fields.iter().filter(|(name, _)| name != b"mode");
                fields
                    .map(|(name, value)| {
                        self.reader_or_writer(server, entry, (&words(name), &words(value)))
                    })
                    .collect()
            }
            (Kind::Semaphore, Value::Sorted(members)) => members
                .iter()
                .filter_map(|(at, member)| leased(server, *at, &words(member)))
                .collect(),
            (Kind::Permits, Value::Sorted(members)) => permits(server, members),
            _ => Vec::new(),
        }
    }

    /// Decodes one field of a read-write lock. The value of a writer that also reads is `1 <when it
    /// must stop writing, ms>`.
    fn reader_or_writer(
        &self,
        server: &Server,
        lock: &Entry,
        (name, value): (&str, &str),
    ) -> Holder {
        if let Some(owner) = name.strip_suffix(":write") {
            let own = value.split_once(' ').and_then(|(_, ms)| ms.parse().ok());
            let own = own.map(|ms: i64| (ms + 1) * 1_000);
            let mut writer = holder(owner.into(), Mode::Write, own.or_else(|| expiry(lock)));
            writer.over = own.is_some_and(|at| at <= server.clock);
            return writer;
        }
        let own = server.keys.peek(&self.own_key(name), server.now());
        let mut reader = holder(name.into(), Mode::Read, own.and_then(expiry));
        reader.over = own.is_none();
        reader
    }

    /// The waiters in the queue on a server now, in order, including the dead and those set aside.
    #[must_use]
    pub fn waiters(&self, server: &Server) -> Vec<Waiter> {
        let queue = self.entry(server, QUEUE);
        let records = self.entry(server, WAITERS).map(|entry| &entry.value);
        let record = |owner: &[u8]| match records {
            Some(Value::Hash(records)) => records.iter().find(|(name, _)| name == owner),
            _ => None,
        };
        match queue.map(|queue| &queue.value) {
            Some(Value::Sorted(queue)) => {
                let mut waiters: Vec<_> = queue
                    .iter()
                    .filter_map(|(ticket, member)| {
                        let (place, owner, mut waiter) = in_line(member)?;
                        let note = record(owner);
                        let note = note.and_then(|(_, until)| words(until).parse::<i64>().ok());
                        let note = note.map(|until| until * 1_000);
                        waiter.aside = *ticket >= ASIDE;
                        let ticket = score(if waiter.aside {
                            *ticket - ASIDE
                        } else {
                            *ticket
                        });
                        // The clock was set back since, so the ticket would count as alive for that
                        // much longer.
                        let ahead = ticket - server.clock >= place * 125;
                        waiter.alive_until = match note {
                            Some(note) if ahead => note,
                            note => (ticket + place * 1_000).max(note.unwrap_or(0)),
                        };
                        Some((ticket, waiter))
                    })
                    .collect();
                waiters.sort_by_key(|(ticket, _)| *ticket);
                waiters.into_iter().map(|(_, waiter)| waiter).collect()
            }
            queue => self.fair_waiters(server, queue),
        }
    }

    /// The waiters of a fair lock. One that is set aside comes before the first in line that
    /// arrived later or has no time of arrival.
    fn fair_waiters(&self, server: &Server, queue: Option<&Value>) -> Vec<Waiter> {
        let value = |place| self.entry(server, place).map(|entry| &entry.value);
        let Some(Value::Hash(records)) = value(WAITERS) else {
            return Vec::new();
        };
        let field = |name: &[u8]| records.iter().find(|(field, _)| field == name);
        let record = |owner: &[u8]| waiter(text(owner), &words(&field(owner)?.1));
        let arrival = |owner: &[u8]| {
            let (_, note) = field(&[b"#", owner].concat())?;
            words(note).split(' ').next()?.parse::<i64>().ok()
        };
        let mut line: Vec<(&[u8], bool)> = match queue {
            Some(Value::List(queue)) => queue.iter().map(|owner| (&owner[..], false)).collect(),
            _ => Vec::new(),
        };
        if let (Kind::Fair, Some(Value::Sorted(deadlines))) = (self.kind, value(MORE)) {
            for (_, owner) in deadlines.iter().filter(|(at, _)| *at >= ASIDE / 2.0) {
                let own = arrival(owner);
                let later =
                    |(other, _): &(&[u8], bool)| arrival(other).is_none_or(|it| Some(it) > own);
                let place = line.iter().position(later).unwrap_or(line.len());
                line.insert(place, (owner, true));
            }
        }
        let waiters = line.into_iter().filter_map(|(owner, aside)| {
            let waiter = record(owner)?;
            Some(Waiter { aside, ..waiter })
        });
        waiters.collect()
    }

    /// The owners in the line of a fair lock that have no record and no deadline.
    #[must_use]
    pub fn bare_places(&self, server: &Server) -> Vec<Owner> {
        let value = |place| self.entry(server, place).map(|entry| &entry.value);
        let (Kind::Fair, Some(Value::List(queue))) = (self.kind, value(QUEUE)) else {
            return Vec::new();
        };
        let recorded = |owner: &[u8]| match value(WAITERS) {
            Some(Value::Hash(records)) => records.iter().any(|(name, _)| name == owner),
            _ => false,
        };
        let has_deadline = |owner: &[u8]| match value(MORE) {
            Some(Value::Sorted(deadlines)) => deadlines.iter().any(|(_, member)| member == owner),
            _ => false,
        };
        let bare = queue.iter().map(|owner| &owner[..]);
        let bare = bare.filter(|owner| !recorded(owner) && !has_deadline(owner));
        bare.map(text).collect()
    }

    /// Whether the lock is left to clients that cannot queue. That lasts a moment at most, even if
    /// a later time is stored: the clock may have been set back since.
    #[must_use]
    pub fn is_open(&self, server: &Server) -> bool {
        let Some(Entry {
            value: Value::Hash(records),
            ..
        }) = self.entry(server, WAITERS)
        else {
            return false;
        };
        let open = records.iter().find(|(name, _)| name == b"!open");
        let until: Option<i64> = open.and_then(|(_, until)| words(until).parse().ok());
        let left = until.unwrap_or(0) * 1_000 - server.clock;
        (1..=OPEN).contains(&left)
    }

    /// Keys of this lock that lack an expiry and would stay for ever. Keys that have none in
    /// Redisson either do not count: the queue of its fair lock, the number of a semaphore, and its
    /// holders.
    #[must_use]
    pub fn immortal_of_its_own(&self, server: &Server) -> Vec<String> {
        let meant = self.meant();
        let own = self.keys.iter().enumerate().filter(|(place, key)| {
            let entry = server.keys.peek(key, server.now());
            entry.is_some_and(|entry| entry.expires_at.is_none()) && !meant.contains(place)
        });
        own.map(|(_, key)| text(key).to_string()).collect()
    }

    /// The places of keys without an expiry by design.
    fn meant(&self) -> &'static [usize] {
        match self.kind {
            Kind::Fair => &[QUEUE, MORE],
            Kind::Semaphore | Kind::Permits => &[LOCK, MORE, MARK],
            Kind::Lock | Kind::Mutex | Kind::ReadWrite => &[],
        }
    }

    fn entry<'a>(&self, server: &'a Server, place: usize) -> Option<&'a Entry> {
        server.keys.peek(self.keys.get(place)?, server.now())
    }
}

fn holder(owner: Owner, mode: Mode, expires_at: Option<i64>) -> Holder {
    Holder {
        owner,
        mode,
        permits: 1,
        expires_at,
        over: false,
    }
}

/// A key exists until the end of the millisecond in which it expires.
fn expiry(entry: &Entry) -> Option<i64> {
    entry.expires_at.map(|ms| (ms + 1) * 1_000)
}

/// A stored lease is a server time in milliseconds, and is over at that moment.
fn score_micros(milliseconds: f64) -> i64 {
    score(milliseconds) * 1_000
}

#[allow(clippy::cast_possible_truncation, reason = "a time since 1970")]
fn score(score: f64) -> i64 {
    score as i64
}

/// Parses `<permits> <owner>`.
fn leased(server: &Server, score: f64, member: &str) -> Option<Holder> {
    let (permits, owner) = member.split_once(' ')?;
    let at = score_micros(score);
    let over = at <= server.clock;
    let permits = permits.parse().ok()?;
    Some(Holder {
        owner: owner.into(),
        mode: Mode::Permits,
        permits,
        expires_at: Some(at),
        over,
    })
}

/// The permits of one owner differ in their last two bytes, and expire together.
fn permits(server: &Server, members: &[(f64, Vec<u8>)]) -> Vec<Holder> {
    let mut holders: Vec<Holder> = Vec::new();
    for (score, member) in members {
        let prefix = &member[..member.len().saturating_sub(2)];
        let owner = text(&[prefix, b"\0\0"].concat());
        let at = score_micros(*score);
        if let Some(holder) = holders.iter_mut().find(|holder| holder.owner == owner) {
            holder.permits += 1;
            holder.expires_at = holder.expires_at.map(|first| first.min(at));
            continue;
        }
        let mut new = holder(owner, Mode::Permits, Some(at));
        new.over = at <= server.clock;
        holders.push(new);
    }
    holders
}

/// The owner that bytes name. Ids of permits are not text, so each byte becomes a letter.
#[must_use]
pub fn owner_of(bytes: &[u8]) -> Owner {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            let letters: String = bytes.iter().copied().map(char::from).collect();
            letters.into()
        }
    }
}

fn text(bytes: &[u8]) -> Owner {
    owner_of(bytes)
}

/// Text, borrowed if it is valid UTF-8, as nearly all of it is.
fn words(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}
