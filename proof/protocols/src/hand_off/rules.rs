//! The rules that make the hand-off sound, which tests can leave out, and the bounds.

/// The length of a lease, in ticks.
pub(super) const LEASE: u8 = 4;
/// How long a waiter pauses between two attempts.
pub(super) const HEARTBEAT: u8 = 2;
/// How long a caller waits for an answer.
pub(super) const CALL: u8 = 2;
/// How long a place is kept without an attempt (`place` in `attempts.rs`).
pub(super) const PLACE: u8 = 3 * HEARTBEAT + CALL;

/// Each is true as shipped.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The token is published after its waiter became the holder (`lua/part/hand_off.lua`).
    pub publish_last: bool,
    /// A waiter without a listener is skipped (`lua/part/next_waiter.lua`).
    pub count_listeners: bool,
    /// A pushed token must be newer than the last answer (`believe` in `granted.rs`).
    pub token_above_fence: bool,
    /// Validity counts from when the attempt was sent (`take` and `believe` in `granted.rs`).
    pub validity_from_sending: bool,
    /// A client that has subscribed tries again (`run` in `attempts.rs`).
    pub look_after_subscribing: bool,
    /// Waiters poll after a while (`next_pause` in `waiting.rs`).
    pub heartbeats: bool,
    /// A late attempt is refused (`late` in `lua/part/now.lua`).
    pub refuse_late: bool,
    /// A release during an attempt is repeated afterwards (`give_back` in `reaper.rs`).
    pub release_twice: bool,
}

impl Rules {
    /// As shipped.
    pub const SHIPPED: Self = Self {
        publish_last: true,
        count_listeners: true,
        token_above_fence: true,
        validity_from_sending: true,
        look_after_subscribing: true,
        heartbeats: true,
        refuse_late: true,
        release_twice: true,
    };
}

/// The bounds of the model.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The number of clients; the first one starts as the holder.
    pub clients: u8,
    /// The number of faults: messages lost, late or doubled, subscriptions misplaced or broken,
    /// crashes.
    pub faults: u8,
    /// Their sort.
    pub sort: Faults,
    /// Whether futures of waiters are dropped.
    pub drops: bool,
    /// Whether to count how long a free lock is waited for.
    pub waits: bool,
}

/// Sorts of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    /// All of them.
    Any,
    /// Messages that are lost, late or doubled.
    Messages,
    /// Subscriptions that land on the replica, or break.
    Subscriptions,
    /// Processes that end.
    Crashes,
}

impl Faults {
    pub(super) fn has(self, sort: Self) -> bool {
        self == Self::Any || self == sort
    }
}
