-- Quarantine: grants nothing while a lease unknown to this server may still be running. If the
-- server's replication id is not the recorded one, it was promoted, restarted or given the slot,
-- and may have missed earlier grants. All of those have expired once the longest allowed lease has
-- passed. A server may also have missed grants if sentinels replaced it and promoted it again
-- before it became a replica: it keeps its replication id, but their epoch is higher. Needs `now`,
-- `record`, `seen`, `longest`. Defines `held_back`.

local function replication_id()
  local info = redis.pcall('INFO', 'replication')
  return type(info) == 'string' and string.match(info, 'master_replid:(%x+)') or nil
end

-- What is left of the quarantine in ms, 0 if there is none; or nil and an error, if it cannot be
-- determined. Starts one if the record belongs to another history or does not exist. Evaluated once
-- per script.
local left, trouble
local function held_back()
  if left or trouble then
    return left, trouble
  end
  local id = replication_id()
  if not id then
    trouble = 'NOHISTORY nothing was written: the server does not tell its replication id'
    return nil, trouble
  end
  local known = redis.call('HMGET', record, 'history', 'until', 'lease', 'epoch')
  if known[3] and tonumber(known[3]) ~= longest then
    trouble = string.format('OTHERLEASE nothing was written: others on this server have quarantine_max_lease=%sms, this client %.0fms', known[3], longest)
    return nil, trouble
  end
  local now_ms = math.floor(now / 1000)
  local epoch = string.match(seen, '@(%d+)$')
  local promoted = epoch and known[4] and tonumber(epoch) > tonumber(known[4])
  local stays = known[1] == id and not promoted
  local ends = stays and tonumber(known[2]) or nil
  local before = ends
  ends = ends or now_ms + longest
  -- A client that has seen the slot here for a while vouches for it: no other server can have
  -- granted it meanwhile.
  local age = tonumber(string.match(seen, '^' .. id .. '=(%d+)') or 0)
  -- But not a client whose request was under way while sentinels replaced the server and promoted
  -- it again.
  if known[4] and tonumber(epoch or 0) < tonumber(known[4]) then
    age = 0
  end
  ends = math.min(ends, now_ms + longest - math.min(age, longest))
  if ends ~= before then
    redis.call('HSET', record, 'history', id, 'until', string.format('%.0f', ends), 'lease', string.format('%.0f', longest))
  end
  if epoch and not (stays and known[4]) then
    redis.call('HSET', record, 'epoch', epoch)
  end
  left = math.max(0, ends - now_ms)
  return left
end

-- Wraps the `status` of a kind: reports a free lock as held by another until the end of the
-- quarantine. An owner may still repeat its own acquisition, and a writer may read.
local function guarded(judge)
  return function(owner, mode, permits)
    local code, remaining, foreign = judge(owner, mode, permits)
    if code ~= 0 then
      return code, remaining, foreign
    end
    local wait, problem = held_back()
    if problem then
      -- Checking a kind with several holders may have taken back expired permits, so the error
      -- cannot claim that nothing was written.
      error({err = exclusive and problem or (string.gsub(problem, 'nothing was written: ', ''))})
    end
    if wait > 0 then
      return 2, wait, 0
    end
    return code, remaining, foreign
  end
end
