//! Counts the contents of a history.

use crate::assemble::Assembled;
use crate::attempt::Answer;
use crate::reader::History;
use crate::verdict::Facts;

pub(super) fn gather(history: &History, all: &Assembled) -> Facts {
    let records = history.records();
    let mut facts = Facts {
        records: records.len(),
        workers: all.workers,
        locks: all.locks.len(),
        faults: all.faults.len(),
        torn: history.damage().iter().filter(|line| line.torn).count(),
        from_ns: records.first().map_or(0, |record| record.at),
        until_ns: records.last().map_or(0, |record| record.at),
        ..Facts::default()
    };
    for attempt in all.locks.iter().flat_map(|lock| &lock.attempts) {
        facts.attempts += 1;
        match &attempt.answer {
            Answer::Pending => facts.open_attempts += 1,
            Answer::Failed { .. } => facts.failed += 1,
            Answer::Granted(held) => {
                facts.granted += 1;
                facts.spent += usize::from(held.was_spent());
                facts.open_uses += usize::from(matches!(held.uses.last(), Some((_, None))));
            }
        }
    }
    facts
}
