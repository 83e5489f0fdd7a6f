-- The environment of scripts in the model: their few globals, and how their results are reported.
--
-- Arguments: a function that runs a command and returns (succeeded, value); a function that records
-- what the model lacks; the names of globals that exist on a server but not here.
local command, lacking, missing = ...

local redis = {}

function redis.call(...)
  local fine, value = command(...)
  if fine then
    return value
  end
  error(value, 0)
end

function redis.pcall(...)
  local _, value = command(...)
  return value
end

local function wrong_arguments()
  return {err = 'ERR wrong number or type of arguments'}
end

function redis.error_reply(...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then
    return wrong_arguments()
  end
  text = string.gsub(text, '^%-', '')
  if not string.find(text, ' ', 1, true) then
    text = 'ERR ' .. text
  end
  return {err = text}
end

function redis.status_reply(...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then
    return wrong_arguments()
  end
  return {ok = text}
end

-- As on a server, scripts cannot change these tables. The lookup of a missing member takes two
-- steps, so that existing ones are found without a call.
local function protected(members, absent)
  return setmetatable({}, {
    __index = setmetatable(members, {__index = absent}),
    __newindex = function()
      error('Attempt to modify a readonly table', 2)
    end,
  })
end

local function library(name, members)
  return protected(members, function(_, key)
    lacking(name .. '.' .. tostring(key))
  end)
end

local function copy(library, names)
  local members = {}
  for name in string.gmatch(names, '%S+') do
    members[name] = library[name]
  end
  return members
end

local globals = copy(_G, 'assert error ipairs next pairs rawequal rawget select tonumber tostring type unpack')
globals.redis = library('redis', redis)
globals.string = library('string', copy(string,
  'byte char find format gmatch gsub len lower match rep reverse sub upper'))
globals.table = library('table', copy(table, 'concat insert maxn remove sort'))
globals.math = library('math', copy(math,
  'abs ceil exp floor fmod frexp huge ldexp log log10 max min modf pi pow sqrt'))

-- A server's `pcall` returns the text of a command's error instead of its table.
local function caught(fine, ...)
  local problem = ...
  if not fine and type(problem) == 'table' and type(problem.err) == 'string' then
    return fine, problem.err
  end
  return fine, ...
end

globals.pcall = function(...)
  return caught(pcall(...))
end

local environment = protected(globals, function(_, name)
  if missing[name] then
    lacking(name)
  end
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end)

return environment, function(script, keys, arguments)
  return pcall(script, keys, arguments)
end
