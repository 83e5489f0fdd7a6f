-- This kind has no lease cache, so there is nothing to recall. Defines `note_recall`, `recall`,
-- `forget_recall`.
local function note_recall() end
local function recall() end
local function forget_recall() end
