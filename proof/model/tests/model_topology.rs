//! Compares the modelled server with a real one by the same calls on both.
//!
//! `LOCKTOPUS_MODEL_FIDELITY_CALLS` sets the number of calls, by default 10,000. Servers other than
//! 7.0 differ in a few error texts, so use the version that the model imitates.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::future_not_send,
    reason = "helpers of tests are tests too"
)]

#[path = "fidelity_common/mod.rs"]
mod common;

use common::{Pair, grammar, words};
use locktopus_model::Rng;

fn calls() -> u64 {
    let name = "LOCKTOPUS_MODEL_FIDELITY_CALLS";
    std::env::var(name).map_or(10_000, |count| count.parse().expect(name))
}

#[tokio::test]
async fn commands_answer_and_leave_what_a_real_server_does() {
    let mut pair = Pair::start().await;
    let mut rng = Rng::new(20_240_917);
    for call in 1..=calls() {
        let command = grammar::command(&mut rng);
        match rng.below(4) {
            0 => {
                pair.script("return redis.call(unpack(ARGV))", &[], &command);
            }
            1 => {
                pair.script("return {redis.pcall(unpack(ARGV))}", &[], &command);
            }
            _ => pair.command(&command),
        }
        if call % 60 == 0 || call == calls() {
            pair.compare_dumps_and_clear();
        }
    }
    pair.deployment.stop().await.unwrap();
}

/// Return values and failures of scripts.
const SNIPPETS: &[&str] = &[
    "return 3.99",
    "return -3.99",
    "return {1, nil, 3}",
    "return {1, {2, 'x'}, false, true, 'end'}",
    "return nil",
    "return false",
    "return true",
    "return redis.error_reply('ONE')",
    "return redis.error_reply('CODE and text')",
    "return redis.error_reply('-CODE and text')",
    "return redis.error_reply(1)",
    "return redis.status_reply('FINE')",
    "return redis.status_reply()",
    "return {err = 'A b'}",
    "return {ok = 'c'}",
    "return tostring(1760000123456789)",
    "return 1760000123456789 .. ''",
    "return string.format('%.0f', 1760000123456789)",
    "return 9007199254740991",
    "return 2^53 + 1",
    "return 1e300",
    "return 0/0",
    "return {[1] = 'a', [3] = 'c'}",
    "return {a = 1}",
    "return #KEYS + #ARGV",
    "return redis.call('SET', 'k', 3)",
    "return {redis.call('SET', 'k', 3.5), redis.call('GET', 'k')}",
    "return {redis.call('SET', 'k', 1e17), redis.call('GET', 'k')}",
    "return {redis.call('SET', 'k', 1760000123456789), redis.call('GET', 'k')}",
    "return {redis.call('SET', 'k', 0.1), redis.call('GET', 'k')}",
    "return {redis.call('SET', 'k', -0.0), redis.call('GET', 'k')}",
    "return redis.call('GET', {})",
    "return redis.call('GET', true)",
    "return redis.call('GET', nil)",
    "return redis.call()",
    "return redis.call('GET')",
    "return redis.pcall('GET')",
    "return redis.call('HGET', 'k', 'f')",
    "redis.call('RPUSH', 'l', 1) return redis.call('INCR', 'l')",
    "redis.call('RPUSH', 'l', 1) return redis.pcall('INCR', 'l')",
    "redis.call('RPUSH', 'l', 1) return redis.pcall('INCR', 'l').err",
    "redis.call('RPUSH', 'l', 1) local _, e = pcall(redis.call, 'INCR', 'l') return e.err",
    "return type(redis.call('GET', 'nothing'))",
    "return type(redis.call('SET', 'k', 1))",
    "return redis.call('SET', 'k', 1).ok",
    "return redis.call('HMGET', 'nothing', 'a', 'b')",
    "redis.call('HSET', 'h', 'a', 1) return redis.call('HMGET', 'h', 'none', 'a')",
    "error('plain')",
    "error({err = 'MINE indeed'})",
    "return nothing_of_this_name",
    "a_new_global = 1",
    "redis = 1",
    "string.format = 1",
    "local x = nil return x.y",
    "return 1 + {}",
    "return tonumber('0x10')",
    "return tonumber('') or 'none'",
    "return {tonumber('1e3'), tonumber(' 12 '), tonumber('1760000123456789')}",
    "return {string.find('WRONGTYPE x', '^WRONGTYPE'), string.sub('abcdef', 15, 15), ('x'):rep(3)}",
    "return {math.max(1, 2), math.floor(1.5), math.ceil(1.5), 7 % 3, -7 % 3}",
    "local t = {3, 1, 2} table.sort(t) return {t[1], t[2], t[3], #t, unpack(t)}",
    "return select('#', 1, nil, nil)",
    "return redis.call('PEXPIRE', 'nothing', '100', 'GT')",
    "redis.call('SET', 'k', 1, 'PX', 100000) return redis.call('PEXPIRE', 'k', 50000, 'GT')",
    "#!lua\nreturn {KEYS[1], ARGV[1], KEYS[2], ARGV[2]}",
    "#!lua flags=no-writes\nreturn redis.call('SET', KEYS[1], 1)",
    "#!lua flags=no-writes\nreturn redis.pcall('SET', KEYS[1], 1)",
    "#!lua flags=no-writes,allow-oom\nreturn redis.call('EXISTS', KEYS[1])",
];

#[tokio::test]
async fn scripts_end_as_on_a_real_server() {
    let mut pair = Pair::start().await;
    for snippet in SNIPPETS {
        pair.script(snippet, &words(&["key"]), &words(&["argument"]));
        pair.compare_dumps_and_clear();
    }
    pair.deployment.stop().await.unwrap();
}

/// Scripts that run both with and without free memory.
const MEMORY: &[&str] = &[
    "#!lua\nreturn redis.call('DEL', 'k')",
    "#!lua flags=allow-oom\nreturn redis.call('SET', 'k', 1)",
    "#!lua flags=no-writes\nreturn redis.call('EXISTS', 'k')",
    "return redis.call('SET', 'k', 1)",
    "return redis.pcall('HSET', 'h', 'a', 1)",
    "return redis.call('DEL', 'k')",
    "redis.call('SADD', 's', 1) return redis.call('DEL', 's')",
    "redis.call('DEL', 'k') return redis.call('HSET', 'h', 'a', 1)",
    "redis.call('ZREM', 'z', 'a') return redis.call('ZADD', 'z', 1, 'a')",
    "return redis.call('PEXPIRE', 'k', 100000)",
];

#[tokio::test]
async fn scripts_are_refused_without_memory_as_on_a_real_server() {
    let mut pair = Pair::start().await;
    pair.modelled.out_of_memory = true;
    pair.real.ask(&words(&["CONFIG", "SET", "maxmemory", "1"]));
    for script in MEMORY {
        pair.script(script, &[], &[]);
    }
    for command in [
        &["SET", "k", "1"][..],
        &["HDEL", "k", "a"],
        &["PUBLISH", "c", "m"],
    ] {
        pair.command(&words(command));
    }
    pair.deployment.stop().await.unwrap();
}
