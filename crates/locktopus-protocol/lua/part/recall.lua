-- Recall: tells a process that caches its lease after a release when another process wants the
-- lock. Needs `publish`; KEYS[4] the waiters (hash: '!recall' -> '<holder> <inbox channel>'),
-- absent if the kind has no queue. Defines `note_recall`, `recall`, `forget_recall`.

-- Notes where to send the recall, for at least its lease.
local function note_recall(owner, lease, inbox)
  redis.call('HSET', KEYS[4], '!recall', owner .. ' ' .. inbox)
  if redis.call('PEXPIRE', KEYS[4], lease, 'NX') == 0 then
    redis.call('PEXPIRE', KEYS[4], lease, 'GT')
  end
end

-- Sends the recall to the holder: 'w <holder>'. Once is enough if a process received it; the note
-- of an earlier holder has no receiver.
local function recall()
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

-- No one waits for the released lock, so no recall is due.
local function forget_recall()
  if KEYS[4] then
    redis.call('HDEL', KEYS[4], '!recall')
  end
end
