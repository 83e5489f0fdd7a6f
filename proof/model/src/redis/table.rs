//! The commands that lock scripts may use, with their properties on a server.
//!
//! A missing command is a gap in the model, not an error of the script: add it with its options,
//! and let the fidelity test compare it with a real server.

use crate::redis::hashes;
use crate::redis::keys;
use crate::redis::lists;
use crate::redis::misc;
use crate::redis::reply::Outcome;
use crate::redis::scan;
use crate::redis::server::Server;
use crate::redis::sets;
use crate::redis::sorted;
use crate::redis::sorted_range;
use crate::redis::strings;
use crate::redis::value::Bytes;

/// One command.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// The number of words with the name; if negative, the minimum.
    arity: i32,
    class: Class,
    keys: Keys,
    pub(crate) run: fn(&mut Server, &[Bytes]) -> Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Reads,
    /// It writes, but never needs more memory.
    Writes,
    /// It writes, and is refused when memory is used up.
    Grows,
}

/// The words that are keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    None,
    First,
    All,
}

impl Command {
    pub(crate) fn writes(&self) -> bool {
        self.class != Class::Reads
    }

    pub(crate) fn needs_memory(&self) -> bool {
        self.class == Class::Grows
    }

    /// The positions of the keys among the words.
    pub(crate) fn keys(&self, words: &[Bytes]) -> std::ops::Range<usize> {
        match self.keys {
            Keys::None => 0..0,
            Keys::First => 1..2.min(words.len()),
            Keys::All => 1..words.len(),
        }
    }

    /// Whether the command accepts this many words, with its name.
    pub(crate) fn fits(&self, words: usize) -> bool {
        let words = i32::try_from(words).unwrap_or(i32::MAX);
        if self.arity < 0 {
            words >= -self.arity
        } else {
            words == self.arity
        }
    }
}

/// Finds a command by its name, ignoring case.
pub(crate) fn lookup(name: &[u8]) -> Option<&'static Command> {
    let lower = |byte: &u8| byte.to_ascii_lowercase();
    let place = COMMANDS
        .binary_search_by(|command| command.name.bytes().cmp(name.iter().map(lower)))
        .ok()?;
    COMMANDS.get(place)
}

macro_rules! commands {
    ($($name:literal $arity:literal $class:ident $keys:ident $run:path;)*) => {
        /// Sorted by name.
        static COMMANDS: &[Command] = &[$(Command {
            name: $name,
            arity: $arity,
            class: Class::$class,
            keys: Keys::$keys,
            run: $run,
        }),*];
    };
}

commands! {
    "decr" 2 Grows First strings::decr;
    "decrby" 3 Grows First strings::decr_by;
    "del" -2 Writes All keys::del;
    "exists" -2 Reads All keys::exists;
    "expire" -3 Writes First keys::expire;
    "expireat" -3 Writes First keys::expire_at;
    "get" 2 Reads First strings::get;
    "getdel" 2 Writes First strings::get_del;
    "hdel" -3 Writes First hashes::del;
    "hexists" 3 Reads First hashes::exists;
    "hget" 3 Reads First hashes::get;
    "hgetall" 2 Reads First hashes::get_all;
    "hincrby" 4 Grows First hashes::incr_by;
    "hkeys" 2 Reads First hashes::keys;
    "hlen" 2 Reads First hashes::len;
    "hmget" -3 Reads First hashes::get_many;
    "hscan" -3 Reads First hashes::scan;
    "hset" -4 Grows First hashes::set;
    "hsetnx" 4 Grows First hashes::set_new;
    "hvals" 2 Reads First hashes::values;
    "incr" 2 Grows First strings::incr;
    "incrby" 3 Grows First strings::incr_by;
    "info" -1 Reads None misc::info;
    "lindex" 3 Reads First lists::index;
    "linsert" 5 Grows First lists::insert;
    "llen" 2 Reads First lists::len;
    "lpop" -2 Writes First lists::pop_left;
    "lpos" -3 Reads First lists::position;
    "lpush" -3 Grows First lists::push_left;
    "lrange" 4 Reads First lists::range;
    "lrem" 4 Writes First lists::remove;
    "persist" 2 Writes First keys::persist;
    "pexpire" -3 Writes First keys::pexpire;
    "pexpireat" -3 Writes First keys::pexpire_at;
    "pexpiretime" 2 Reads First keys::pexpire_time;
    "psetex" 4 Grows First strings::set_expiring_millis;
    "pttl" 2 Reads First keys::pttl;
    "publish" 3 Reads None misc::publish;
    "pubsub" -2 Reads None misc::pubsub;
    "rpop" -2 Writes First lists::pop_right;
    "rpush" -3 Grows First lists::push_right;
    "sadd" -3 Grows First sets::add;
    "scan" -2 Reads None scan::scan;
    "scard" 2 Reads First sets::len;
    "set" -3 Grows First strings::set;
    "setex" 4 Grows First strings::set_expiring_seconds;
    "setnx" 3 Grows First strings::set_new;
    "sismember" 3 Reads First sets::contains;
    "smembers" 2 Reads First sets::members;
    "spublish" 3 Reads None misc::publish_sharded;
    "srem" -3 Writes First sets::remove;
    "strlen" 2 Reads First strings::len;
    "time" 1 Reads None misc::time;
    "ttl" 2 Reads First keys::ttl;
    "type" 2 Reads First keys::type_of;
    "unlink" -2 Writes All keys::del;
    "zadd" -4 Grows First sorted::add;
    "zcard" 2 Reads First sorted::len;
    "zcount" 4 Reads First sorted_range::count;
    "zincrby" 4 Grows First sorted::incr_by;
    "zmscore" -3 Reads First sorted::scores;
    "zpopmax" -2 Writes First sorted::pop_max;
    "zpopmin" -2 Writes First sorted::pop_min;
    "zrange" -4 Reads First sorted_range::range;
    "zrangebyscore" -4 Reads First sorted_range::by_score;
    "zrank" 3 Reads First sorted::rank;
    "zrem" -3 Writes First sorted::remove;
    "zremrangebyrank" 4 Writes First sorted_range::remove_by_rank;
    "zremrangebyscore" 4 Writes First sorted_range::remove_by_score;
    "zrevrange" -4 Reads First sorted_range::reversed;
    "zrevrangebyscore" -4 Reads First sorted_range::by_score_reversed;
    "zrevrank" 3 Reads First sorted::rank_reversed;
    "zscore" 3 Reads First sorted::score;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.name < b.name));
        assert!(lookup(b"zscore").is_some() && lookup(b"ZScore").is_some());
        assert!(lookup(b"flushall").is_none() && lookup(b"").is_none());
    }
}
