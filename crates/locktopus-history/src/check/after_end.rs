//! What holders did when the lock was not theirs any more.

use crate::assemble::Assembled;
use crate::clock::nanos;
use crate::offence::Offence;
use crate::offence::Worst;
use crate::options::Options;
use crate::verdict::AfterEnd;

pub(super) fn check(all: &Assembled, options: &Options) -> AfterEnd {
    let reaction = nanos(options.reaction);
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
                found.uses += 1;
                found.longest_ns = found.longest_ns.max(end - from);
                found.total_ns = found.total_ns.saturating_add(end - from);
                uses.add(offence(from, end - from, "still inside"));
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
