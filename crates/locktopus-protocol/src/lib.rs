//! The Redis side of Locktopus: key layout, Lua scripts and reply decoding.
