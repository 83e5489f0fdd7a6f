//! What goes to a script and what comes back: numbers as text, time limits by the server's clock,
//! replies.

pub(crate) mod numbers;
pub(crate) mod other_kind;
pub(crate) mod reply;
pub(crate) mod server_clock;
pub(crate) mod too_few;
