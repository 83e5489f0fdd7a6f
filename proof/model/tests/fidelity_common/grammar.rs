//! Random commands: mostly valid, sometimes wrong in the ways that scripts are wrong.

use locktopus_model::Rng;

/// The kinds of arguments. Each line of the grammar below is a command.
#[derive(Clone, Copy)]
enum Arg {
    Key,
    Text,
    Integer,
    Score,
    Bound,
    Place,
    Millis,
    Seconds,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any number of these options, each with its arguments.
    Options(&'static [(&'static str, &'static [Self])]),
    /// These arguments several times.
    More(&'static [Self]),
    /// These arguments or none.
    Perhaps(&'static [Self]),
}

use Arg::{Bound, Integer, Key, Millis, More, Options, Perhaps, Place, Score, Seconds, Text, Word};

const EXPIRE: Arg = Options(&[
    ("NX", &[]),
    ("XX", &[]),
    ("GT", &[]),
    ("LT", &[]),
    ("no", &[]),
]);
const SET: Arg = Options(&[
    ("NX", &[]),
    ("XX", &[]),
    ("GET", &[]),
    ("KEEPTTL", &[]),
    ("PX", &[Millis]),
    ("EX", &[Seconds]),
]);
const ZADD: Arg = Options(&[
    ("NX", &[]),
    ("XX", &[]),
    ("GT", &[]),
    ("LT", &[]),
    ("CH", &[]),
    ("INCR", &[]),
]);
const ZRANGE: Arg = Options(&[
    ("REV", &[]),
    ("WITHSCORES", &[]),
    ("BYSCORE", &[]),
    ("LIMIT", &[Place, Place]),
]);
const BY_SCORE: Arg = Options(&[("WITHSCORES", &[]), ("LIMIT", &[Place, Place])]);
const LPOS: Arg = Options(&[
    ("RANK", &[Place]),
    ("COUNT", &[Place]),
    ("MAXLEN", &[Place]),
]);

const SIDE: Arg = Word(&["BEFORE", "before", "AFTER", "x"]);

const COMMANDS: &[(&str, &[Arg])] = &[
    ("GET", &[Key]),
    ("SET", &[Key, Text, SET]),
    ("SET", &[Key, Integer]),
    ("SETNX", &[Key, Text]),
    ("SETEX", &[Key, Seconds, Text]),
    ("PSETEX", &[Key, Millis, Text]),
    ("GETDEL", &[Key]),
    ("STRLEN", &[Key]),
    ("INCR", &[Key]),
    ("DECR", &[Key]),
    ("INCRBY", &[Key, Integer]),
    ("DECRBY", &[Key, Integer]),
    ("DEL", &[Key, More(&[Key])]),
    ("UNLINK", &[Key]),
    ("EXISTS", &[Key, More(&[Key])]),
    ("TYPE", &[Key]),
    ("PERSIST", &[Key]),
    ("PTTL", &[Key]),
    ("TTL", &[Key]),
    ("PEXPIRETIME", &[Key]),
    ("PEXPIRE", &[Key, Millis, EXPIRE]),
    ("PEXPIRE", &[Key, Millis]),
    ("EXPIRE", &[Key, Seconds, EXPIRE]),
    ("HSET", &[Key, Text, Text, More(&[Text, Text])]),
    ("HSETNX", &[Key, Text, Text]),
    ("HGET", &[Key, Text]),
    ("HMGET", &[Key, Text, More(&[Text])]),
    ("HDEL", &[Key, Text, More(&[Text])]),
    ("HEXISTS", &[Key, Text]),
    ("HINCRBY", &[Key, Text, Integer]),
    ("HLEN", &[Key]),
    ("HGETALL", &[Key]),
    ("HKEYS", &[Key]),
    ("HVALS", &[Key]),
    ("LPUSH", &[Key, Text, More(&[Text])]),
    ("RPUSH", &[Key, Text, More(&[Text])]),
    ("LPOP", &[Key, Perhaps(&[Place])]),
    ("RPOP", &[Key, Perhaps(&[Place])]),
    ("LRANGE", &[Key, Place, Place]),
    ("LINDEX", &[Key, Place]),
    ("LLEN", &[Key]),
    ("LREM", &[Key, Place, Text]),
    ("LINSERT", &[Key, SIDE, Text, Text]),
    ("LPOS", &[Key, Text, LPOS]),
    ("ZADD", &[Key, ZADD, Score, Text, More(&[Score, Text])]),
    ("ZADD", &[Key, Score, Text, More(&[Score, Text])]),
    ("ZREM", &[Key, Text, More(&[Text])]),
    ("ZSCORE", &[Key, Text]),
    ("ZMSCORE", &[Key, Text, More(&[Text])]),
    ("ZINCRBY", &[Key, Score, Text]),
    ("ZCARD", &[Key]),
    ("ZCOUNT", &[Key, Bound, Bound]),
    ("ZRANK", &[Key, Text]),
    ("ZREVRANK", &[Key, Text]),
    ("ZRANGE", &[Key, Place, Place, ZRANGE]),
    ("ZRANGE", &[Key, Bound, Bound, ZRANGE]),
    ("ZREVRANGE", &[Key, Place, Place, Perhaps(&[])]),
    ("ZRANGEBYSCORE", &[Key, Bound, Bound, BY_SCORE]),
    ("ZREVRANGEBYSCORE", &[Key, Bound, Bound, BY_SCORE]),
    ("ZREMRANGEBYSCORE", &[Key, Bound, Bound]),
    ("ZREMRANGEBYRANK", &[Key, Place, Place]),
    ("ZPOPMIN", &[Key, Perhaps(&[Place])]),
    ("ZPOPMAX", &[Key, Perhaps(&[Place])]),
    ("SADD", &[Key, Text, More(&[Text])]),
    ("SREM", &[Key, Text, More(&[Text])]),
    ("SCARD", &[Key]),
    ("SISMEMBER", &[Key, Text]),
    ("SMEMBERS", &[Key]),
    ("PUBLISH", &[Key, Text]),
    ("SPUBLISH", &[Key, Text]),
];

/// A random command of the grammar.
pub(crate) fn command(rng: &mut Rng) -> Vec<Vec<u8>> {
    let (name, args) = rng.pick(COMMANDS);
    let mut words = vec![(*name).to_owned()];
    args.iter().for_each(|arg| add(rng, *arg, &mut words));
    if rng.permille(10) {
        words.pop();
    } else if rng.permille(10) {
        words.push("extra".to_owned());
    }
    words.into_iter().map(String::into_bytes).collect()
}

fn add(rng: &mut Rng, arg: Arg, words: &mut Vec<String>) {
    let text = |texts: &[&str], rng: &mut Rng| (*rng.pick(texts)).to_owned();
    match arg {
        Key => words.push(text(&["k1", "k2", "k3", "k4", "k5", "k6"], rng)),
        Text => words.push(text(&["a", "b", "c", "d", "ab", "7", ""], rng)),
        Word(choices) => words.push(text(choices, rng)),
        Integer => words.push(text(INTEGERS, rng)),
        Score => words.push(text(SCORES, rng)),
        Bound => words.push(text(BOUNDS, rng)),
        Place => words.push(text(
            &["0", "1", "2", "3", "-1", "-2", "-3", "99", "-99", "x"],
            rng,
        )),
        // Expiries are far apart, so the time between the two servers' replies does not matter.
        Millis if rng.permille(700) => words.push((rng.between(10, 999) * 10_000).to_string()),
        Seconds if rng.permille(700) => words.push((rng.between(10, 999) * 10).to_string()),
        Millis => words.push(text(MILLIS, rng)),
        Seconds => words.push(text(INTEGERS, rng)),
        Options(options) => {
            while rng.permille(400) {
                let (name, args) = rng.pick(options);
                let lower = rng.permille(300);
                words.push(if lower {
                    name.to_lowercase()
                } else {
                    (*name).to_owned()
                });
                args.iter().for_each(|arg| add(rng, *arg, words));
            }
        }
        More(args) => {
            while rng.permille(400) {
                args.iter().for_each(|arg| add(rng, *arg, words));
            }
        }
        Perhaps(args) => {
            if rng.permille(500) {
                args.iter().for_each(|arg| add(rng, *arg, words));
            }
        }
    }
}

const MILLIS: &[&str] = &["0", "-5", "9223372036854775807", "x", "1.5"];
const INTEGERS: &[&str] = &[
    "100",
    "-200",
    "0",
    "9223372036854775807",
    "-9223372036854775808",
    "+1",
    "01",
    "",
    "1.0",
    "y",
];
const SCORES: &[&str] = &[
    "0",
    "1",
    "2",
    "-1",
    "1.5",
    "0.1",
    "inf",
    "-inf",
    "1760000123456789",
    "1e20",
    "nan",
    "",
    "-0",
];
const BOUNDS: &[&str] = &[
    "0",
    "1",
    "(1",
    "2",
    "-1",
    "-inf",
    "+inf",
    "inf",
    "(0.1",
    "1760000123456789",
    "x",
    "(",
];
