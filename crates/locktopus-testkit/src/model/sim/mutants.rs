//! Wrong clients and wrong scripts, each of which the model must notice.
//!
//! A model that finds nothing proves nothing unless it finds what is there: these are the mistakes that lock
//! libraries have made, and those that the hand-off could make.

use super::{Config, Flaw, Kind, Patch};

/// One mistake.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// What is wrong.
    pub name: &'static str,
    /// Schedules in which it can be noticed.
    pub config: Config,
}

/// Every mistake.
#[must_use]
pub fn mutants() -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for (name, flaw) in FLAWS {
        // On the lock, 20,000 schedules do not show it; on the fair lock, one of the first 1,400 does.
        let kind = match flaw {
            Flaw::NoResync => Kind::Fair,
            _ => Kind::Lock,
        };
        let config = Config::new(kind).with_flaw(*flaw);
        mutants.push(Mutant { name, config });
    }
    for wrong in PATCHES {
        let Wrong {
            name,
            kind,
            failovers,
            strangers,
            script,
            from,
            to,
            more,
        } = *wrong;
        let patch = Patch {
            script,
            from,
            to,
            more,
        };
        let config = Config {
            failovers,
            strangers,
            ..Config::new(kind).with_patch(patch)
        };
        mutants.push(Mutant { name, config });
    }
    mutants
}

const FLAWS: &[(&str, Flaw)] = &[
    (
        "validity of a grant counts from its answer",
        Flaw::ValidFromAnswer,
    ),
    (
        "validity of a renewal counts from its answer",
        Flaw::RenewedFromAnswer,
    ),
    ("validity is the whole lease", Flaw::NoMargin),
    (
        "a pushed grant is valid from its arrival",
        Flaw::ValidFromPush,
    ),
    (
        "a pushed grant is believed whatever its token",
        Flaw::OldPush,
    ),
    (
        "an answer is believed after its call's time",
        Flaw::LateAnswer,
    ),
    (
        "the lock is believed in until it is known to be lost",
        Flaw::NeverExpires,
    ),
    ("a cancelled attempt is not given back", Flaw::NeverCancels),
    ("a background release is not repeated", Flaw::CancelsOnce),
    ("no second look for a late attempt", Flaw::NoSecondLook),
    ("a dropped guard gives nothing back", Flaw::DropsNothing),
    ("no look after subscribing", Flaw::NoLookAfterSubscribing),
    ("no look after messages may be lost", Flaw::NoResync),
    (
        "a place is kept for less than a heartbeat",
        Flaw::ShortPlace,
    ),
    ("an owner id is used again", Flaw::SameOwner),
    ("no heartbeats in the queue", Flaw::NoHeartbeat),
    (
        "a kept lease is handed out after its end",
        Flaw::KeepsExpired,
    ),
    (
        "a kept lease is handed out with its old token",
        Flaw::KeepsToken,
    ),
    ("a lease is kept although others want it", Flaw::KeepsWanted),
];

struct Wrong {
    name: &'static str,
    kind: Kind,
    failovers: bool,
    strangers: bool,
    script: &'static str,
    from: &'static str,
    to: &'static str,
    more: &'static [(&'static str, &'static str)],
}

impl Wrong {
    /// With a further change.
    const fn and(self, more: &'static [(&'static str, &'static str)]) -> Self {
        Self { more, ..self }
    }
}

const fn wrong(
    name: &'static str,
    kind: Kind,
    script: &'static str,
    from: &'static str,
    to: &'static str,
) -> Wrong {
    Wrong {
        name,
        kind,
        failovers: false,
        strangers: false,
        script,
        from,
        to,
        more: &[],
    }
}

/// A token is published, and only those who were counted hearing it are given the lock.
const TOKEN_FIRST: [&str; 2] = [
    "      if listens(inbox, owner) then\n        local token = reserve(math.max(1, tonumber(tokens)), 0)\n        \
     leave(owner)\n        take(owner, lease, mode, permits)\n        say(inbox, string.format('%.0f', token), owner)\n",
    "      local token = reserve(math.max(1, tonumber(tokens)), 0)\n      \
     if say(inbox, string.format('%.0f', token), owner) ~= 0 then\n        \
     leave(owner)\n        take(owner, lease, mode, permits)\n",
];

/// Noticed only where others take the name for another kind, or lose a number.
const fn mixed(
    name: &'static str,
    kind: Kind,
    script: &'static str,
    from: &'static str,
    to: &'static str,
) -> Wrong {
    Wrong {
        strangers: true,
        ..wrong(name, kind, script, from, to)
    }
}

const PATCHES: &[Wrong] = &[
    wrong(
        "a lock is released whoever asks",
        Kind::Lock,
        "_release",
        "local dropped = redis.pcall('HDEL', KEYS[1], ARGV[1])",
        "local dropped = redis.pcall('DEL', KEYS[1])",
    ),
    wrong(
        "a mutex is released whoever asks",
        Kind::Mutex,
        "_release",
        "local released = holder == ARGV[1]",
        "local released = holder",
    ),
    wrong(
        "a lock is extended whoever asks",
        Kind::Lock,
        "_extend",
        "elseif owned == 1 then",
        "elseif owned == 1 or redis.call('EXISTS', key) == 1 then",
    ),
    wrong(
        "a mutex is extended whoever asks",
        Kind::Mutex,
        "_extend",
        "elseif holder == ARGV[i + 1] then",
        "elseif holder then",
    ),
    wrong(
        "an extension creates a lock",
        Kind::Lock,
        "_extend",
        "answers[i] = -redis.call('EXISTS', key)",
        "redis.call('HSET', key, ARGV[i + 1], 1) redis.call('PEXPIRE', key, ARGV[1]) answers[i] = 1",
    ),
    wrong(
        "a waiter extends the holder's lease",
        Kind::Lock,
        "_acquire",
        "if code == 2 and not came_back then\n  ask_back()",
        "if code == 2 and not came_back then\n  renew(owner, lease)\n  ask_back()",
    ),
    wrong(
        "a repeated attempt shortens the lease",
        Kind::Lock,
        "_acquire",
        "renew(owner, lease, mode, permits)\n  return granted(",
        "redis.call('PEXPIRE', KEYS[1], lease - 5)\n  return granted(",
    ),
    wrong(
        "the holder is told that somebody holds the lock",
        Kind::Lock,
        "_acquire",
        "if code == 1 then",
        "if code == 9 then",
    ),
    wrong(
        "a lock has no expiry",
        Kind::Lock,
        "_acquire",
        "  redis.call('HSET', KEYS[1], owner, 1)\n  redis.call('PEXPIRE', KEYS[1], lease)",
        "  redis.call('HSET', KEYS[1], owner, 1)",
    ),
    wrong(
        "late attempts are not refused",
        Kind::Lock,
        "_acquire",
        "local late = tonumber(ARGV[4]) > 0 and now > tonumber(ARGV[4])",
        "local late = false",
    ),
    wrong(
        "a newcomer goes before the queue",
        Kind::Lock,
        "_acquire",
        "if KEYS[3] and code == 0 then",
        "if false then",
    ),
    wrong(
        "a release hands nothing on",
        Kind::Fair,
        "_release",
        "handed = select(2, hand_on(nil))",
        "handed = 0",
    ),
    wrong(
        "nobody hears of a release",
        Kind::Lock,
        "_release",
        "local receivers = redis.pcall(publish, channel, '0')",
        "local receivers = 0",
    ),
    wrong(
        "the lock is handed to the dead",
        Kind::Lock,
        "_release",
        "if until_ms and until_ms * 1000 > now and",
        "if until_ms and",
    ),
    wrong(
        "the lock is handed to the dead, the long way",
        Kind::ReadWrite,
        "_release",
        "return record and tonumber(string.match(record, '^%d+')) * 1000 > now",
        "return record",
    ),
    wrong(
        "a waiter that does not listen is handed the lock",
        Kind::Lock,
        "_release",
        "if not counts or (counts[2] or 0) ~= 0 then",
        "if true then",
    ),
    wrong(
        "a waiter that does not listen is handed the lock, the long way",
        Kind::Fair,
        "_release",
        "return listeners ~= 0",
        "return true",
    ),
    wrong(
        "a token is published before it is certain",
        Kind::Lock,
        "_release",
        "if not counts or (counts[2] or 0) ~= 0 then",
        "if true then",
    )
    .and(&[
        (
            "local heir, heir_lease, heir_inbox, wanted\n",
            "local heir, heir_lease, heir_inbox, wanted\nlocal certain\n",
        ),
        (
            "if usual_token then\n  redis.call('HSET', KEYS[1], heir, 1)",
            "local text = usual_token and string.format('%.0f', usual_token)\n\
             certain = usual_token and redis.pcall(publish, heir_inbox, text .. ' ' .. heir) ~= 0\n\
             if certain then\n  redis.call('HSET', KEYS[1], heir, 1)",
        ),
        (
            "if usual_token then\n  redis.call('ZREM', KEYS[3], heir)",
            "if certain then\n  redis.call('ZREM', KEYS[3], heir)",
        ),
        (
            "  redis.pcall(publish, heir_inbox, text .. ' ' .. heir)\n  return 1",
            "  return 1",
        ),
    ]),
    wrong(
        "a token is published before it is certain, the long way",
        Kind::ReadWrite,
        "_release",
        TOKEN_FIRST[0],
        TOKEN_FIRST[1],
    ),
    wrong(
        "a token is published before it is certain, in the queue of the fair lock",
        Kind::Fair,
        "_release",
        TOKEN_FIRST[0],
        TOKEN_FIRST[1],
    ),
    wrong(
        "a token is published before it is certain, with permits",
        Kind::Semaphore,
        "_release",
        TOKEN_FIRST[0],
        TOKEN_FIRST[1],
    ),
    wrong(
        "a token is published before it is certain, by one who finds the lock free",
        Kind::Mutex,
        "_acquire",
        TOKEN_FIRST[0],
        TOKEN_FIRST[1],
    ),
    wrong(
        "one who was handed the lock keeps its place",
        Kind::Lock,
        "_release",
        "  redis.call('ZREM', KEYS[3], heir)\n  redis.call('HDEL', KEYS[4], heir)\n",
        "",
    ),
    wrong(
        "one who was handed the lock keeps its place, the long way",
        Kind::Fair,
        "_release",
        "        leave(owner)\n        take(owner, lease, mode, permits)",
        "        take(owner, lease, mode, permits)",
    ),
    wrong(
        "a lock is handed on with the old token",
        Kind::Lock,
        "_release",
        "    usual_token = now\n",
        "    usual_token = number\n",
    ),
    wrong(
        "a lock is handed on with the old token, the long way",
        Kind::Fair,
        "_release",
        "local token = reserve(math.max(1, tonumber(tokens)), 0)",
        "local token = tonumber(redis.call('GET', KEYS[2]))",
    ),
    wrong(
        "a lock is handed on for ever",
        Kind::Lock,
        "_release",
        "  redis.call('HSET', KEYS[1], heir, 1)\n  redis.call('PEXPIRE', KEYS[1], heir_lease)",
        "  redis.call('HSET', KEYS[1], heir, 1)",
    ),
    wrong(
        "a lock is handed on for ever, the long way",
        Kind::Fair,
        "_release",
        "  redis.call('HSET', KEYS[1], owner, 1)\n  redis.call('PEXPIRE', KEYS[1], lease)",
        "  redis.call('HSET', KEYS[1], owner, 1)",
    ),
    wrong(
        "a lock is handed on for a quarter of the lease",
        Kind::Lock,
        "_release",
        "  redis.call('HSET', KEYS[1], heir, 1)\n  redis.call('PEXPIRE', KEYS[1], heir_lease)",
        "  redis.call('HSET', KEYS[1], heir, 1)\n  redis.call('PEXPIRE', KEYS[1], heir_lease / 4)",
    ),
    wrong(
        "a lock is handed on for a quarter of the lease, the long way",
        Kind::Fair,
        "_release",
        "  redis.call('HSET', KEYS[1], owner, 1)\n  redis.call('PEXPIRE', KEYS[1], lease)",
        "  redis.call('HSET', KEYS[1], owner, 1)\n  redis.call('PEXPIRE', KEYS[1], lease / 4)",
    ),
    wrong(
        "a cancelled attempt that was granted is left alone",
        Kind::Lock,
        "_release",
        "local dropped = redis.pcall('HDEL', KEYS[1], ARGV[1])",
        "local dropped = redis.call('EXISTS', KEYS[3]) == 0 and redis.pcall('HDEL', KEYS[1], ARGV[1])",
    ),
    wrong(
        "a cancelled place is kept",
        Kind::Lock,
        "_release",
        "if not released and leave(owner) then",
        "if false then",
    ),
    wrong(
        "a waiter that leaves a free lock tells nobody",
        Kind::Lock,
        "_release",
        "free = fine and code == 0",
        "free = false",
    ),
    wrong(
        "permits that come back are not handed on by one who wants more",
        Kind::Semaphore,
        "_acquire",
        "if code == 2 and not came_back then",
        "if code == 2 then",
    ),
    wrong(
        "a lock is left to others for as long as a clock was set back",
        Kind::Lock,
        "_acquire",
        "if left > 0 and left <= OPEN then",
        "if left > 0 then",
    ),
    wrong(
        "a queue is kept for ever",
        Kind::Lock,
        "_acquire",
        "    redis.call('PEXPIRE', KEYS[3], ttl)\n    -- Something may be noted there for longer.\n    if redis.call('PEXPIRE', KEYS[4], ttl, 'NX') == 0 then\n      redis.call('PEXPIRE', KEYS[4], ttl, 'GT')\n    end",
        "",
    ),
    wrong(
        "newcomers go to the head of the queue",
        Kind::Lock,
        "_acquire",
        "redis.call('ZADD', KEYS[3], ticket, owner)",
        "redis.call('ZADD', KEYS[3], string.format('%.0f', 9e15 - now), owner)",
    ),
    wrong(
        "a clock that is set back reorders the queue",
        Kind::Lock,
        "_acquire",
        "if last and last + 1 > now then",
        "if false then",
    ),
    wrong(
        "tokens are reserved one by one",
        Kind::Lock,
        "_acquire",
        "local tail = wanted and time[2] + wanted - 1",
        "local tail = wanted and time[2] + 0",
    ),
    wrong(
        "tokens are reserved one by one, the long way",
        Kind::Lock,
        "_acquire",
        "local text = string.format('%.0f', token + count - 1)",
        "local text = string.format('%.0f', token)",
    ),
    Wrong {
        name: "tokens are counted",
        kind: Kind::Lock,
        failovers: true,
        strangers: false,
        script: "_acquire",
        from: "local token = math.max(now, floor)",
        to: "local token = math.max(1, floor)",
        more: &[],
    },
    wrong(
        "nobody is asked for a lease that is kept",
        Kind::Lock,
        "_acquire",
        "if code == 2 and not came_back then\n  ask_back()",
        "if code == 2 and not came_back then",
    ),
    wrong(
        "the holder of a mutex is not told, but the note is gone",
        Kind::Mutex,
        "_acquire",
        "local receivers = holder and redis.pcall(publish, inbox, 'w ' .. holder)",
        "local receivers",
    ),
    wrong(
        "where a holder listens is noted for ever",
        Kind::Lock,
        "_acquire",
        "  if redis.call('PEXPIRE', KEYS[4], lease, 'NX') == 0 then\n    redis.call('PEXPIRE', KEYS[4], lease, 'GT')\n  end",
        "",
    ),
    wrong(
        "the clock is read again",
        Kind::Lock,
        "_release",
        "if not time then",
        "if true then",
    ),
    wrong(
        "a script touches another key",
        Kind::Lock,
        "_release",
        "local channel = ARGV[5]",
        "local channel = ARGV[5] redis.call('GET', KEYS[1] .. ':more')",
    ),
    mixed(
        "a read-write lock is taken on a lock that is held",
        Kind::Lock,
        "read_lock_acquire",
        "return nil, wrong_type(now_in) or redis.call('EXISTS', KEYS[1]) == 1",
        "return nil, wrong_type(now_in)",
    ),
    mixed(
        // Both halves of a read-write lock, as they have one text.
        "a held lock is evicted as another kind of lock",
        Kind::Fair,
        "_lock_evict",
        "if other() then\n  return misplaced(KEYS[6])\nend",
        "",
    ),
    mixed(
        "a fair lock waits for a lock",
        Kind::Lock,
        "fair_lock_acquire",
        "return not native(holder) or string.byte(holder, -1) % 2 == parity",
        "return true",
    ),
    mixed(
        "a read-write lock that is held is shown as a lock",
        Kind::ReadWrite,
        "fair_lock_inspect",
        "if other() then\n  return misplaced(KEYS[6])\nend",
        "",
    ),
    mixed(
        "a number is given to a mutex that is held",
        Kind::Mutex,
        "semaphore_counter",
        "if other() then\n  return misplaced(KEYS[6])\nend",
        "",
    ),
    mixed(
        "a latch is set on a mutex that is held",
        Kind::Mutex,
        "latch",
        "if counted_as('latch', KEYS[2], KEYS[3], KEYS[4]) == 'other' then\n  return misplaced(KEYS[2])\nend",
        "",
    ),
    mixed(
        "a mutex waits for a semaphore",
        Kind::Semaphore,
        "mutex_acquire",
        "remaining == -1 and #value < 18",
        "false and #value < 18",
    ),
    mixed(
        "permits with ids are taken from a semaphore",
        Kind::Semaphore,
        "permit_semaphore_acquire",
        "return said == kind and 'ours' or 'other'",
        "return 'ours'",
    ),
    mixed(
        "the mark of a number is not read",
        Kind::Permits,
        "semaphore_counter",
        "local said = value and redis.call('GET', mark)",
        "local said",
    ),
    mixed(
        "a number that is lost is given anew as if nobody held permits",
        Kind::Semaphore,
        "semaphore_counter",
        "after = before or number - held()",
        "after = before or number",
    ),
    mixed(
        "permits with ids that are held count as free in a new number",
        Kind::Permits,
        "permits_counter",
        "after = before or number - held()",
        "after = before or number",
    ),
];
