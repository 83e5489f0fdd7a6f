//! Mistakes in release scripts: in the choice of the next holder, and in the messages.

use super::WrongScript;
use super::wrong::{TOKEN_FIRST, UNCOUNTED, wrong};
use locktopus_model::layout::Kind;

pub(super) const PATCHES: &[WrongScript] = &[
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
        "KEYS[4]) == 0) then\n  local receivers = redis.pcall(publish, channel, '0')",
        "KEYS[4]) == 0) then\n  local receivers = 0",
    ),
    wrong(
        "nobody hears of a release that expected somebody in line",
        Kind::Mutex,
        "_release",
        "EXISTS', KEYS[4]) == 0 then\n    local receivers = redis.pcall(publish, channel, '0')",
        "EXISTS', KEYS[4]) == 0 then\n    local receivers = 0",
    ),
    wrong(
        "the lock is handed to the dead",
        Kind::Lock,
        "_release",
        "local alive = age < place * 1000",
        "local alive = true",
    ),
    wrong(
        "the lock is handed to one whose heartbeats have ended",
        Kind::Lock,
        "_release",
        "alive = note * 1000 > now",
        "alive = true",
    ),
    wrong(
        "the lock is handed to the dead, the long way",
        Kind::ReadWrite,
        "_release",
        "return math.max(ticket + place * 1000, by_note)",
        "return now + 1",
    ),
    wrong(
        "the lock is handed to one whose heartbeats have ended, the long way",
        Kind::ReadWrite,
        "_release",
        "local by_note = (tonumber(note or 0) or 0) * 1000",
        "local by_note = note and now + 1 or 0",
    ),
    wrong(
        "heartbeats do not count",
        Kind::Mutex,
        "_release",
        "local by_note = (tonumber(note or 0) or 0) * 1000",
        "local by_note = 0",
    )
    .and(&[("alive = note * 1000 > now", "alive = false")]),
    wrong(
        "a waiter that does not listen is handed the lock",
        Kind::Lock,
        "_release",
        "if alive and head_inbox ~= '' and not turn and (not counts or (counts[2] or 0) ~= 0) then",
        "if alive and head_inbox ~= '' and not turn then",
    ),
    wrong(
        "a waiter that does not listen is handed the lock, the long way",
        Kind::Fair,
        "_release",
        "heard[waiter[3]] = listeners ~= 0",
        "heard[waiter[3]] = true",
    ),
    wrong(
        "a token is published before it is certain",
        Kind::Lock,
        "_release",
        "if alive and head_inbox ~= '' and not turn and (not counts or (counts[2] or 0) ~= 0) then",
        "if alive and head_inbox ~= '' and not turn then",
    )
    .and(&[
        (
            "local member, ticket, head,",
            "local certain\nlocal member, ticket, head,",
        ),
        (
            "if fast_token then\n  redis.call('HSET', KEYS[1], head, '1')",
            "local text = fast_token and string.format('%.0f', fast_token)\n\
             certain = fast_token and redis.pcall(publish, head_inbox, text .. ' ' .. head) ~= 0\n\
             if certain then\n  redis.call('HSET', KEYS[1], head, '1')",
        ),
        (
            "if fast_token then\n  if math.abs",
            "if certain then\n  if math.abs",
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
    )
    .and(UNCOUNTED),
    wrong(
        "a token is published before it is certain, in the queue of the fair lock",
        Kind::Fair,
        "_release",
        TOKEN_FIRST[0],
        TOKEN_FIRST[1],
    )
    .and(UNCOUNTED),
    wrong(
        "a token is published before it is certain, with permits",
        Kind::Semaphore,
        "_release",
        TOKEN_FIRST[0],
        TOKEN_FIRST[1],
    )
    .and(UNCOUNTED),
    wrong(
        "one who was handed the lock keeps its place",
        Kind::Lock,
        "_release",
        "local popped = redis.call('ZPOPMIN', KEYS[3])",
        "local popped = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')",
    ),
    wrong(
        "a head that is passed over is taken out of the line",
        Kind::Lock,
        "_release",
        "if member then\n  redis.call('ZADD', KEYS[3], ticket, member)",
        "if false then\n  redis.call('ZADD', KEYS[3], ticket, member)",
    ),
    wrong(
        "a line that is put back is there for ever",
        Kind::Mutex,
        "_release",
        "if redis.call('PTTL', KEYS[3]) == -1 then",
        "if false then",
    ),
    wrong(
        "one who was handed the lock keeps its place, the long way",
        Kind::Fair,
        "_release",
        "      leave(owner, record)\n      take(owner, lease, mode, tonumber(permits))",
        "      take(owner, lease, mode, tonumber(permits))",
    ),
    wrong(
        "a lock is handed on with the old token",
        Kind::Lock,
        "_release",
        "    fast_token = now - wanted + 1\n    if number >= fast_token then",
        "    fast_token = number\n    if false then",
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
        "  redis.call('HSET', KEYS[1], head, '1')\n  redis.call('PEXPIRE', KEYS[1], head_lease)",
        "  redis.call('HSET', KEYS[1], head, '1')",
    ),
    wrong(
        "a lock is handed on for ever, the long way",
        Kind::Fair,
        "_release",
        "  redis.call('HSET', KEYS[1], owner, '1')\n  redis.call('PEXPIRE', KEYS[1], lease)",
        "  redis.call('HSET', KEYS[1], owner, '1')",
    ),
    wrong(
        "a lock is handed on for a quarter of the lease",
        Kind::Lock,
        "_release",
        "  redis.call('HSET', KEYS[1], head, '1')\n  redis.call('PEXPIRE', KEYS[1], head_lease)",
        "  redis.call('HSET', KEYS[1], head, '1')\n  redis.call('PEXPIRE', KEYS[1], head_lease / 4)",
    ),
    wrong(
        "a lock is handed on for a quarter of the lease, the long way",
        Kind::Fair,
        "_release",
        "  redis.call('HSET', KEYS[1], owner, '1')\n  redis.call('PEXPIRE', KEYS[1], lease)",
        "  redis.call('HSET', KEYS[1], owner, '1')\n  redis.call('PEXPIRE', KEYS[1], lease / 4)",
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
        "if not released and give_up(owner, place) then",
        "if false then",
    ),
    wrong(
        "the place of one who says nothing about it is not looked for",
        Kind::Lock,
        "_release",
        "members = members_of(owner)",
        "members = {}",
    ),
    wrong(
        "a place is given up that is another one's",
        Kind::Lock,
        "_release",
        "if not members[1] or redis.call('ZREM', KEYS[3], unpack(members)) == 0 then",
        "if not redis.call('ZPOPMIN', KEYS[3])[1] then",
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
