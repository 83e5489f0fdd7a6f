//! A prefix of shipped scripts for comparing two servers: both see the same time, and each reply
//! includes the messages.

/// The script with two more arguments at the end: seconds and microseconds of the time it sees. It
/// returns {the messages with their numbers of receivers, the script's own reply}.
pub(crate) fn shimmed(source: &str) -> String {
    let (first, rest) = source.split_once('\n').expect("a script has a first line");
    // All on the first line, so that errors give the script's own line numbers.
    format!("{first}\n{BEFORE} {rest}\nend return {{said, (shipped())}}")
}

const BEFORE: &str = "local micros, seconds = table.remove(ARGV), table.remove(ARGV) \
    local said, server = {}, redis \
    local function shim(call) return function(name, ...) \
      local upper = string.upper(name) \
      if upper == 'TIME' then return {seconds, micros} end \
      if upper == 'PEXPIRETIME' then \
        local left = call('PTTL', ...) \
        return left < 0 and left or seconds * 1000 + math.floor(micros / 1000) + left \
      end \
      if upper ~= 'PUBLISH' and upper ~= 'SPUBLISH' then return call(name, ...) end \
      local heard = call(name, ...) \
      local channel, message = ... \
      said[#said + 1] = {name, channel, message, heard} \
      return heard \
    end end \
    local redis = {error_reply = server.error_reply, call = shim(server.call), pcall = shim(server.pcall)} \
    local function shipped()";

/// Every key with its type, its remaining time in ms, and its value.
pub(crate) const DUMP: &str = "local found = {} \
    local read = {string = {'GET'}, hash = {'HGETALL'}, list = {'LRANGE', 0, -1}, set = {'SMEMBERS'}, \
      zset = {'ZRANGE', 0, -1, 'WITHSCORES'}} \
    for _, key in ipairs(redis.call('KEYS', '*')) do \
      local kind = redis.call('TYPE', key).ok \
      local how = read[kind] \
      found[#found + 1] = {key, kind, redis.call('PTTL', key), redis.call(how[1], key, unpack(how, 2))} \
    end \
    return found";

/// Shortens the remaining time of all keys at once.
pub(crate) const LAPSE: &str = "for _, key in ipairs(redis.call('KEYS', '*')) do \
      local left = redis.call('PTTL', key) \
      if left >= 0 then redis.call('PEXPIRE', key, math.max(0, left - ARGV[1])) end \
    end";
