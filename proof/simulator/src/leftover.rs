//! Finds what is left on the servers after all processes have ended.

use crate::violation::Violation;
use crate::world::World;

/// How long after the end to search the servers, in µs. By then all leases, queue entries and notes
/// have expired; the reasons of forced releases last longest, a day.
const LATER: u64 = 25 * 3_600_000_000;

/// These stay by design: tokens, history records, the numbers of semaphores and latches. Also
/// entries of dead holders and waiters without an expiry, as Redisson keeps them: the next request
/// removes them.
const STAYS: [&str; 8] = [
    "token",
    "locktopus_history",
    "redisson_lock_queue",
    "redisson_lock_timeout",
    "locktopus_holders",
    ":timeout",
    "data:",
    "locktopus_fence",
];

/// Keys that nothing will remove.
pub(crate) fn leftovers(world: &mut World) -> Vec<Violation> {
    let later = world.now + LATER;
    let mut found = Vec::new();
    for number in world.primaries.clone() {
        let node = &mut world.nodes[number];
        node.set_time(later);
        for (key, value) in node.server.picture() {
            let number_of_permits = !value.starts_with('[') && value.ends_with("None");
            if !STAYS.iter().any(|stays| key.contains(stays)) && !number_of_permits {
                let what = format!("n{number} still has {key} = {value} a day later");
                found.push(Violation::new(world.now, "nothing is left", what));
            }
        }
    }
    found
}
