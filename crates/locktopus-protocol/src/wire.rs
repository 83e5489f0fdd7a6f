//! Script arguments and replies: numbers as text, time limits on the server's clock, decoding.

pub(crate) mod numbers;
pub(crate) mod other_kind;
pub(crate) mod reply;
pub(crate) mod server_clock;
pub(crate) mod too_few;
