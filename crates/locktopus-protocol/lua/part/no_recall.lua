-- Nobody keeps what it does not need. Defines `note_recall`, `ask_back`, `forget_recall`.
local function note_recall() end
local function ask_back() end
local function forget_recall() end
