-- This kind has no lease cache, so nothing is recalled. Defines `note_recall`, `recall`,
-- `forget_recall`.
local function note_recall() end
local function recall() end
local function forget_recall() end
