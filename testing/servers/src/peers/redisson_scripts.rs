//! The effects of Redisson's scripts in our own words, without the answers that it keeps for
//! repeated releases.

/// Takes or re-enters a lock; returns nil, or the rest of the lease.
pub const LOCK: &str = "
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
return redis.call('PTTL', KEYS[1])";

/// Leaves a lock: nil if not held, 0 if still held, 1 if free. Without a channel: a spin lock.
pub const UNLOCK: &str = "
if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return nil end
if redis.call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
redis.call('DEL', KEYS[1])
if KEYS[2] then redis.call(ARGV[4], KEYS[2], ARGV[1]) end
return 1";

/// Takes a fair lock or a place in its queue: returns nil, or how long to sleep.
///
/// The keys are the lock, its queue and its deadlines; the arguments are the lease, the owner, how
/// long a waiter counts as alive, and the time on the client's clock, in ms.
#[must_use]
pub fn fair_lock() -> String {
    with_queue(4, FAIR_LOCK)
}

/// Leaves a fair lock: nil if another owner holds it, 0 if still held, 1 if it is free, or was
/// before.
///
/// The keys are the lock, its queue, its deadlines and its channel; the arguments are the message,
/// the lease, the owner, the command that publishes, and the time on the client's clock, in ms.
#[must_use]
pub fn fair_unlock() -> String {
    with_queue(5, FAIR_UNLOCK)
}

/// A script that first removes dead waiters from the queue. `time` is the number of the argument
/// with the current time.
fn with_queue(time: usize, script: &str) -> String {
    format!("local now = tonumber(ARGV[{time}]){PROLOGUE}{script}")
}

/// Removes heads of a fair lock's queue whose deadline has passed. `now` is defined before.
const PROLOGUE: &str = "
while true do
  local head = redis.call('LINDEX', KEYS[2], 0)
  if not head then break end
  local deadline = redis.call('ZSCORE', KEYS[3], head)
  if not deadline or tonumber(deadline) > now then break end
  redis.call('ZREM', KEYS[3], head)
  redis.call('LPOP', KEYS[2])
end
";

/// Runs after dead heads are removed. `now` is defined before.
const FAIR_LOCK: &str = "
local head = redis.call('LINDEX', KEYS[2], 0)
if redis.call('EXISTS', KEYS[1]) == 0 and (not head or head == ARGV[2]) then
  redis.call('LPOP', KEYS[2])
  redis.call('ZREM', KEYS[3], ARGV[2])
  for _, waiter in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    redis.call('ZINCRBY', KEYS[3], -tonumber(ARGV[3]), waiter)
  end
  redis.call('HSET', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
if redis.call('ZSCORE', KEYS[3], ARGV[2]) then return math.max(0, redis.call('PTTL', KEYS[1])) end
local last = redis.call('LINDEX', KEYS[2], -1)
local score = last and last ~= ARGV[2] and redis.call('ZSCORE', KEYS[3], last)
local wait = score and tonumber(score) - now or redis.call('PTTL', KEYS[1])
if redis.call('ZADD', KEYS[3], string.format('%.0f', wait + ARGV[3] + now), ARGV[2]) == 1 then
  redis.call('RPUSH', KEYS[2], ARGV[2])
end
return wait";

/// Leaves a fair lock and calls the head of its queue by name, even if the lock was gone.
const FAIR_UNLOCK: &str = "
local function call()
  local head = redis.call('LINDEX', KEYS[2], 0)
  if head then redis.call(ARGV[4], KEYS[4] .. ':' .. head, '0') end
end
if redis.call('EXISTS', KEYS[1]) == 0 then call() return 1 end
if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return nil end
if redis.call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
redis.call('DEL', KEYS[1])
call()
return 1";

/// Acquires for reading.
pub const READ_LOCK: &str = "
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'read', ARGV[2], 1)
  redis.call('SET', KEYS[2] .. ':1', 1, 'PX', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
if mode == 'read' or redis.call('HEXISTS', KEYS[1], ARGV[3]) == 1 then
  local count = redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('SET', KEYS[2] .. ':' .. count, 1, 'PX', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), ARGV[1]))
  return nil
end
return redis.call('PTTL', KEYS[1])";

/// Ends a reader's hold. Keeps the lock as long as the longest remaining reader, and deletes it if
/// there is none.
pub const READ_UNLOCK: &str = "
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then redis.call(ARGV[3], KEYS[2], ARGV[1]) return nil end
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return nil end
local count = redis.call('HINCRBY', KEYS[1], ARGV[2], -1)
if count == 0 then redis.call('HDEL', KEYS[1], ARGV[2]) end
redis.call('DEL', KEYS[3] .. ':' .. (count + 1))
if redis.call('HLEN', KEYS[1]) > 1 then
  local longest = -3
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    local holds = tonumber(redis.call('HGET', KEYS[1], field))
    for i = holds or 0, 1, -1 do
      longest = math.max(longest, redis.call('PTTL', KEYS[4] .. ':' .. field .. ':rwlock_timeout:' .. i))
    end
  end
  if longest > 0 then redis.call('PEXPIRE', KEYS[1], longest) return 0 end
  if mode == 'write' then return 0 end
end
redis.call('DEL', KEYS[1])
redis.call(ARGV[3], KEYS[2], ARGV[1])
return 1";

/// Acquires for writing.
pub const WRITE_LOCK: &str = "
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'write', ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
if mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) + ARGV[1])
  return nil
end
return redis.call('PTTL', KEYS[1])";

/// Ends the writer's hold. The writer's own read holds stay, without a message.
pub const WRITE_UNLOCK: &str = "
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then redis.call(ARGV[4], KEYS[2], ARGV[1]) return nil end
if mode ~= 'write' or redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return nil end
if redis.call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
redis.call('HDEL', KEYS[1], ARGV[3])
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1])
  redis.call(ARGV[4], KEYS[2], ARGV[1])
else
  redis.call('HSET', KEYS[1], 'mode', 'read')
end
return 1";

/// Takes permits without ids: 1, or 0 if there are too few.
pub const SEMAPHORE_ACQUIRE: &str = "
local value = tonumber(redis.call('GET', KEYS[1]))
if value and value >= tonumber(ARGV[1]) then
  redis.call('DECRBY', KEYS[1], ARGV[1])
  return 1
end
return 0";

/// Returns permits without ids, and answers how many there are now.
pub const SEMAPHORE_RELEASE: &str = "
local value = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call(ARGV[2], KEYS[2], value)
return value";

/// Sets the number of permits: 1, or 0 if it is set already.
pub const SEMAPHORE_SET: &str = "
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call(ARGV[2], KEYS[2], ARGV[1])
return 1";

/// Takes permits with ids: `OK`, `:<when the first one ends>`, or nil.
pub const PERMITS_ACQUIRE: &str = "
local over = redis.call('ZRANGEBYSCORE', KEYS[2], 0, ARGV[3], 'LIMIT', 0, ARGV[1])
if over[1] then
  redis.call('ZREM', KEYS[2], unpack(over))
  local value = redis.call('INCRBY', KEYS[1], #over)
  if value > 0 then redis.call(ARGV[5], KEYS[3], value) end
end
local value = tonumber(redis.call('GET', KEYS[1]) or 0)
if value >= tonumber(ARGV[1]) then
  redis.call('DECRBY', KEYS[1], ARGV[1])
  for i = 6, #ARGV do redis.call('ZADD', KEYS[2], ARGV[2], ARGV[i]) end
  return 'OK'
end
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if first[2] and first[2] ~= ARGV[4] then return ':' .. first[2] end
return nil";

/// Returns one permit: 0 if it is not held, or had ended.
pub const PERMITS_RELEASE: &str = "
local ends = redis.call('ZSCORE', KEYS[3], ARGV[1])
if not ends then return 0 end
redis.call('ZREM', KEYS[3], ARGV[1])
local value = redis.call('INCRBY', KEYS[1], ARGV[2])
redis.call(ARGV[4], KEYS[2], value)
return tonumber(ends) <= tonumber(ARGV[3]) and 0 or 1";

/// Sets the count of a latch: 1, or 0 if it is set already.
pub const LATCH_SET: &str = "
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call(ARGV[2], KEYS[2], '1')
return 1";

/// Counts a latch down by one, and answers the count.
pub const LATCH_DOWN: &str = "
local count = redis.call('DECR', KEYS[1])
if count <= 0 then redis.call('DEL', KEYS[1]) end
if count == 0 then redis.call(ARGV[1], KEYS[2], '0') end
return count";
