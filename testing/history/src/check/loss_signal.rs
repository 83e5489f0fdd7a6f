//! When holders learned that they had lost the lock.

use crate::assemble::Assembled;
use crate::attempt::{Attempt, Held};
use crate::clock::nanos;
use crate::offence::Offence;
use crate::offence::Worst;
use crate::options::Options;
use crate::quantiles::Quantiles;
use crate::verdict::Lateness;

pub(super) fn check(all: &Assembled, options: &Options) -> Lateness {
    let limit = options.lateness_limit.map(nanos);
    let allowed = limit.unwrap_or(0);
    let mut found = Lateness {
        limit_ns: limit,
        ..Lateness::default()
    };
    let mut values = Vec::new();
    let mut worst = Worst::new(options.examples);
    for lock in &all.locks {
        let mut add = |attempt: &Attempt, at_ns, length_ns, note: &str| {
            worst.add(Offence {
                lock: lock.name.clone(),
                at_ns,
                length_ns,
                first: attempt.id,
                second: None,
                note: note.to_owned(),
            });
        };
        for (attempt, held) in lock.grants() {
            if let Some(lost) = &held.lost {
                let late = lost.at.saturating_sub(lost.valid_until);
                values.push(late);
                found.early += u64::from(lost.at < lost.valid_until);
                let stalled = all
                    .stalls
                    .within(attempt.id.worker, lost.valid_until, lost.at);
                if late.saturating_sub(stalled) > allowed {
                    found.late += u64::from(limit.is_some());
                    add(attempt, lost.at, late, "signalled late");
                }
            } else if let Some((end, late)) = unsignalled(held).filter(|&(end, late)| {
                let stalled = all.stalls.within(attempt.id.worker, end, end + late);
                late - stalled > allowed
            }) {
                found.unsignalled += 1;
                add(attempt, end, late, "never signalled");
            }
        }
    }
    found.lateness = Quantiles::of(values);
    found.examples = worst.into_list();
    found
}

/// A validity that ended while the holder continued: its end, and how long the holder continued.
fn unsignalled(held: &Held) -> Option<(u64, u64)> {
    let &(_, end) = held.believed.first()?;
    let went_on_until = held.release_started.unwrap_or(held.touched);
    let late = went_on_until.checked_sub(end)?;
    (late > 0).then_some((end, late))
}
