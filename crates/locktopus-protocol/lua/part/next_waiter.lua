-- Finds the first waiter that listens: of those that live, as `first` of the queue has removed the
-- dead. Deaf waiters before it are set aside: they keep their places but do not block others, and
-- their next attempt puts them back into the queue. A waiter without an inbox polls, and is not
-- deaf. Needs `publish`; `first`, `parse`, `line_from`, `set_aside` of the queue. Defines `say`,
-- `next_waiter`.

-- Publishes a message about a waiter to its process: a token is a grant, 0 makes the waiter check
-- its lock. A polling waiter has no inbox.
local function say(inbox, word, owner)
  return inbox ~= '' and redis.pcall(publish, inbox, word .. ' ' .. owner)
end

-- Whether each inbox checked by this script has a listener on this server. All waiters of a process
-- share an inbox.
local heard = {[''] = true}

-- Counts the listeners of these waiters' inboxes.
--
-- It counts before it publishes anything: messages also reach this server's replicas, and a client
-- subscribed there would rely on a grant that is not made because the client was not counted.
local function count(waiters)
  local inboxes = {}
  for i, waiter in ipairs(waiters) do
    inboxes[i] = waiter[3]
  end
  local counts = redis.pcall('PUBSUB', publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', unpack(inboxes))
  for i, waiter in ipairs(waiters) do
    -- Without the right to count, take the receivers of a message without meaning.
    local listeners = counts[2 * i] or say(waiter[3], '?', waiter[1])
    heard[waiter[3]] = listeners ~= 0
  end
end

-- How often one script may set up to 64 waiters aside: a crowd of deaf waiters must not make it
-- slow.
local batches = 16

-- Sets this deaf waiter aside, and deaf ones behind it. Publishes 'd' to each: a waiter that hears
-- it is subscribed on the wrong server.
local function pass_over(skip, owner, self)
  local waiters, unknown, asked = line_from(skip, owner), {}, {}
  for _, waiter in ipairs(waiters) do
    local inbox = waiter[3]
    if heard[inbox] == nil and not asked[inbox] then
      asked[inbox] = true
      unknown[#unknown + 1] = waiter
    end
  end
  if unknown[1] then
    count(unknown)
  end
  local deaf = {}
  for _, waiter in ipairs(waiters) do
    if not heard[waiter[3]] and waiter[1] ~= self then
      deaf[#deaf + 1] = waiter
      say(waiter[3], 'd', waiter[1])
    end
  end
  set_aside(deaf)
end

-- The first waiter after `skip` of them that listens or is `self`, and its record; or another
-- library's waiter, which has no record. If there is none: nil, nil, and 'more' if this script has
-- set aside as many as it may. A publish command in lower case means that listeners on other nodes
-- cannot be counted.
local function next_waiter(skip, self)
  while true do
    local owner, record = first(skip)
    if not record or owner == self or publish == 'publish' then
      return owner, record
    end
    local inbox = select(6, parse(record))
    if heard[inbox] == nil then
      count({{owner, record, inbox}})
    end
    if heard[inbox] then
      return owner, record
    end
    if batches == 0 then
      return nil, nil, 'more'
    end
    batches = batches - 1
    pass_over(skip, owner, self)
  end
end
