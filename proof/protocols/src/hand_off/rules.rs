//! The rules that make the hand-off sound, each of which can be left out, and how far the model
//! goes.

/// What a lease is, in ticks.
pub(super) const LEASE: u8 = 4;
/// How long a waiter pauses between two looks.
pub(super) const HEARTBEAT: u8 = 2;
/// For how long a caller waits for an answer.
pub(super) const CALL: u8 = 2;
/// How long a place is kept without a look (`terms` in `attempts.rs`).
pub(super) const PLACE: u8 = 3 * HEARTBEAT + CALL;

/// Each is true in what is shipped.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The token is published when its waiter is the holder, not before (`lua/part/hand_off.lua`).
    pub publish_last: bool,
    /// A waiter that nobody listens for is passed over (`listens` in `lua/part/hand_off.lua`).
    pub count_listeners: bool,
    /// A pushed token must be newer than the last answer (`believe` in `granted.rs`).
    pub token_above_fence: bool,
    /// Validity counts from when the attempt was sent (`take` and `believe` in `granted.rs`).
    pub validity_from_sending: bool,
    /// Who has subscribed looks again (`run` in `attempts.rs`).
    pub look_after_subscribing: bool,
    /// Waiters look by themselves after a while (`next_pause` in `waiting.rs`).
    pub heartbeats: bool,
    /// An attempt that arrives too late is refused (`late` in `lua/part/now.lua`).
    pub refuse_late: bool,
    /// What is given back while an attempt is under way is given back once more
    /// (`give_back` in `reaper.rs`).
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

/// How far the model goes.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How many clients there are; the first begins as the holder.
    pub clients: u8,
    /// How many faults there may be: messages lost, late or doubled, subscriptions misplaced or
    /// broken, crashes.
    pub faults: u8,
    /// Of which sort.
    pub sort: Faults,
    /// Whether futures of waiters are dropped.
    pub drops: bool,
    /// Whether to count for how long a free lock is waited for.
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
