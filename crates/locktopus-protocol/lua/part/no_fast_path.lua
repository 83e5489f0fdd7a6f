-- Nothing is usual here. Defines `released` (nil: not looked at yet).
local released
