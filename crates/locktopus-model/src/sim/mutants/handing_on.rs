//! Mistakes in scripts that release: who is given what became free, and who is told.

use super::wrong::{TOKEN_FIRST, Wrong, wrong};
use crate::sim::kind::Kind;

pub(super) const PATCHES: &[Wrong] = &[
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
        "a release hands nothing on",
        Kind::Fair,
        "_release",
        "handed = select(2, hand_off(nil))",
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
            "local head, head_lease, head_inbox, wanted\n",
            "local head, head_lease, head_inbox, wanted\nlocal certain\n",
        ),
        (
            "if fast_token then\n  redis.call('HSET', KEYS[1], head, 1)",
            "local text = fast_token and string.format('%.0f', fast_token)\n\
             certain = fast_token and redis.pcall(publish, head_inbox, text .. ' ' .. head) ~= 0\n\
             if certain then\n  redis.call('HSET', KEYS[1], head, 1)",
        ),
        (
            "if fast_token then\n  redis.call('ZREM', KEYS[3], head)",
            "if certain then\n  redis.call('ZREM', KEYS[3], head)",
        ),
        (
            "  redis.pcall(publish, head_inbox, text .. ' ' .. head)\n  return 1",
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
        "one who was handed the lock keeps its place",
        Kind::Lock,
        "_release",
        "  redis.call('ZREM', KEYS[3], head)\n  redis.call('HDEL', KEYS[4], head)\n",
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
        "    fast_token = now\n",
        "    fast_token = number\n",
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
        "  redis.call('HSET', KEYS[1], head, 1)\n  redis.call('PEXPIRE', KEYS[1], head_lease)",
        "  redis.call('HSET', KEYS[1], head, 1)",
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
        "  redis.call('HSET', KEYS[1], head, 1)\n  redis.call('PEXPIRE', KEYS[1], head_lease)",
        "  redis.call('HSET', KEYS[1], head, 1)\n  redis.call('PEXPIRE', KEYS[1], head_lease / 4)",
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
];
