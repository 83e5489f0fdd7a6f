//! What is left on the servers when everybody is gone.

use crate::violation::Violation;
use crate::world::World;

/// How long after the end the servers are searched, in µs. All leases, places in queues and notes
/// are over by then, the reasons of forced releases last: they are kept for a day.
const LATER: u64 = 25 * 3_600_000_000;

/// What stays by design: tokens, records of histories, the numbers of semaphores and latches; and
/// of those who died, what is kept without an end as Redisson does: the next who asks removes it.
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

/// Keys that nobody will remove.
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
