//! What stands before a shipped script so that two servers can be compared: both see the same time,
//! and what is published comes with the answer.

/// The script, with two more arguments at the end: seconds and microseconds of the time that it
/// sees. It answers {what was published and to how many, the script's own answer}.
pub(crate) fn shimmed(source: &str) -> String {
    let (first, rest) = source.split_once('\n').expect("a script has a first line");
    // All of it on one line, so that errors name the script's own lines.
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

/// Every key with its type, what is left of it in ms, and its value.
pub(crate) const DUMP: &str = "local found = {} \
    local read = {string = {'GET'}, hash = {'HGETALL'}, list = {'LRANGE', 0, -1}, set = {'SMEMBERS'}, \
      zset = {'ZRANGE', 0, -1, 'WITHSCORES'}} \
    for _, key in ipairs(redis.call('KEYS', '*')) do \
      local kind = redis.call('TYPE', key).ok \
      local how = read[kind] \
      found[#found + 1] = {key, kind, redis.call('PTTL', key), redis.call(how[1], key, unpack(how, 2))} \
    end \
    return found";

/// What is left of each key becomes less, all at once.
pub(crate) const LAPSE: &str = "for _, key in ipairs(redis.call('KEYS', '*')) do \
      local left = redis.call('PTTL', key) \
      if left >= 0 then redis.call('PEXPIRE', key, math.max(0, left - ARGV[1])) end \
    end";
