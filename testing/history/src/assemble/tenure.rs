//! Which grants form one tenure: a holder that re-enters keeps its tenure.

use std::collections::HashMap;

use super::Lock;
use crate::attempt::Tenure;

/// Gives every grant its tenure.
pub(super) fn assign(lock: &mut Lock) {
    let Lock {
        attempts, tenures, ..
    } = lock;
    let mut order: Vec<usize> = (0..attempts.len())
        .filter(|&at| attempts[at].held().is_some())
        .collect();
    order.sort_by_key(|&at| attempts[at].held().map_or(0, |held| held.at));
    // The present tenure of each holder that may re-enter, and when it ends.
    let mut running: HashMap<u32, (usize, u64)> = HashMap::new();
    for at in order {
        let attempt = &mut attempts[at];
        let (holder, shares, started) = (attempt.holder, attempt.shares_holder, attempt.started);
        let Some(held) = attempt.held_mut() else {
            continue;
        };
        let inside = running
            .get_mut(&holder)
            .filter(|(_, end)| shares && held.at < *end);
        match inside {
            Some((tenure, end)) => {
                *end = held.end().max(*end);
                held.tenure = *tenure;
                held.reentrant = true;
            }
            None => {
                held.tenure = tenures.len();
                tenures.push(Tenure {
                    started,
                    granted: held.at,
                });
                if shares {
                    running.insert(holder, (held.tenure, held.end()));
                }
            }
        }
    }
}
