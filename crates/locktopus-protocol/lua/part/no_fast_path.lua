-- This kind has no fast path. Defines `released` (nil: not looked at yet).
local released
