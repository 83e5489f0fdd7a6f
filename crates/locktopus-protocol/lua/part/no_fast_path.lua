-- This kind has no fast path. Defines `released` (nil: nothing released yet).
local released
