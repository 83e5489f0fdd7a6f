-- Tells the kinds of one name apart by the type of a key. Defines `wrong_type`.

-- Whether a reply is the error of a command on a key of another type. Any other error ends the
-- script.
local function wrong_type(answer)
  if type(answer) ~= 'table' or not answer.err then
    return false
  end
  if string.find(answer.err, '^WRONGTYPE') then
    return true
  end
  error(answer)
end
