//! Actions of holders after the lock had ended.

use crate::assemble::Assembled;
use crate::attempt::{Attempt, Held};
use crate::clock::nanos;
use crate::offence::Offence;
use crate::offence::Worst;
use crate::options::Options;
use crate::verdict::AfterEnd;

pub(super) fn check(all: &Assembled, options: &Options) -> AfterEnd {
    let reaction = nanos(options.reaction);
    let limit = nanos(options.use_limit);
    let mut found = AfterEnd::default();
    let mut uses = Worst::new(options.examples);
    let mut extensions = Worst::new(options.examples);
    for lock in &all.locks {
        for (attempt, held) in lock.grants() {
            let offence = |at_ns, length_ns, note: &str| Offence {
                lock: lock.name.clone(),
                at_ns,
                length_ns,
                first: attempt.id,
                second: None,
                note: note.to_owned(),
            };
            found.grants += 1;
            let allowed = held.usable_until(reaction);
            for (start, end) in attempt.certain_uses().filter(|&(_, end)| end > allowed) {
                let from = allowed.max(start);
                let stalled = all.stalls.within(attempt.id.worker, from, end);
                found.uses += 1;
                let over = end - from - stalled > limit;
                found.uses_over_limit += u64::from(over);
                found.longest_ns = found.longest_ns.max(end - from);
                found.total_ns = found.total_ns.saturating_add(end - from);
                if over {
                    uses.add(offence(from, end - from, "still inside"));
                }
            }
            for &at in &held.late_extensions {
                found.extensions += 1;
                extensions.add(offence(at, 0, "extended when it was over"));
            }
        }
    }
    found.use_examples = uses.into_list();
    found.extension_examples = extensions.into_list();
    found
}

/// The uses, without the excused parts. If a use ended a moment too late, or because its worker was
/// stalled, this takes the end that it should have had.
pub(super) fn uses_less_excused<'a>(
    all: &'a Assembled,
    (attempt, held): (&'a Attempt, &'a Held),
    options: &Options,
) -> impl Iterator<Item = (u64, u64)> + 'a {
    let allowed = held.usable_until(nanos(options.reaction));
    let limit = nanos(options.use_limit);
    attempt.certain_uses().map(move |(start, end)| {
        let from = allowed.max(start);
        if end <= from {
            return (start, end);
        }
        let stalled = all.stalls.within(attempt.id.worker, from, end);
        let excused = end - from - stalled <= limit;
        (start, if excused { from } else { end })
    })
}
