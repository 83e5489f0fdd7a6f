-- Asking a holder for its lock: one who keeps its lease for a while after its work is done wants to hear who waits.
-- Needs `publish`; KEYS[4] the waiters (hash: '!recall' -> '<holder> <inbox channel>'), absent where nobody queues.
-- Defines `note_recall`, `ask_back`, `forget_recall`.

-- Notes whom to tell, for as long as its lease at least.
local function note_recall(owner, lease, inbox)
  redis.call('HSET', KEYS[4], '!recall', owner .. ' ' .. inbox)
  if redis.call('PEXPIRE', KEYS[4], lease, 'NX') == 0 then
    redis.call('PEXPIRE', KEYS[4], lease, 'GT')
  end
end

-- Tells the holder that it is wanted: 'w <holder>'. Once is enough if somebody heard it, and a note that is left from
-- an earlier holder tells nobody.
local function ask_back()
  local note = KEYS[4] and redis.call('HGET', KEYS[4], '!recall')
  if not note then
    return
  end
  local holder, inbox = string.match(note, '^(%S+) (.*)$')
  local receivers = holder and redis.pcall(publish, inbox, 'w ' .. holder)
  if receivers ~= 0 then
    redis.call('HDEL', KEYS[4], '!recall')
  end
end

-- Nobody waits for what was released, so nobody has asked for it.
local function forget_recall()
  if KEYS[4] then
    redis.call('HDEL', KEYS[4], '!recall')
  end
end
