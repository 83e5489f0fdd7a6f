//! Rules for holders.

use locktopus_model::layout::Holder;

use super::seen::SCRIPT;
use super::{Answer, Run, What, Witness};

impl Witness {
    /// Checks that holders came, left and stayed as they may.
    pub(super) fn holders(&mut self, run: &Run<'_>) {
        let (now, script) = (run.now, run.script);
        for holder in run.after.live() {
            if run.before.same(holder).is_none() {
                self.newcomer(run, holder);
            }
            self.check(
                holder.expires_at.is_some(),
                now,
                "everything ends by itself",
                || format!("after {script}, {} holds for ever", holder.owner),
            );
        }
        for holder in run.before.live() {
            match run.after.same(holder) {
                Some(still) => self.expiry(run, holder, still),
                None => self.check(
                    may_end(run, holder),
                    now,
                    "holds end by their owners",
                    || format!("{script} ended the hold of {}", holder.owner),
                ),
            }
        }
        let live: Vec<_> = run.after.live().collect();
        for (place, one) in live.iter().enumerate() {
            for other in &live[place + 1..] {
                let shared = one.mode.shares_with(other.mode) || one.owner == other.owner;
                self.check(shared, now, "holders exclude each other", || {
                    format!(
                        "after {script}, both {} and {} hold",
                        one.owner, other.owner
                    )
                });
            }
        }
        if let What::Acquire { not_after, .. } = run.call.what {
            let late = not_after > 0 && run.before.micros > not_after;
            let (before, after) = (run.before, &run.after);
            let same = before.holders == after.holders && before.waiters == after.waiters;
            self.check(!late || same, now, "what is late does nothing", || {
                format!("{script} ran at {}, after {not_after}", before.micros)
            });
        }
        self.permits(run);
    }

    /// Checks that no permit is lost and none is added.
    fn permits(&mut self, run: &Run<'_>) {
        let Some(after) = run.after.permits() else {
            return;
        };
        // A new number counts the permits that are held.
        let given = match &run.call.what {
            What::Counter { action, number } if action == "init" => Some(*number),
            _ => None,
        };
        let Some(before) = run.before.permits().or(given) else {
            return;
        };
        let wanted = match (&run.call.what, &run.answer) {
            // A repeated operation changes nothing, and gets the same reply.
            (What::Counter { action, number }, Answer::Changed(_, true)) => {
                match action.as_str() {
                    "init" | "resize" => vec![*number, before],
                    // The free permits are gone, and the held ones stay. A repeated drain takes
                    // nothing.
                    "drain" => vec![after - run.after.free.unwrap_or(0), before],
                    _ => return,
                }
            }
            _ => vec![before],
        };
        self.check(wanted.contains(&after), run.now, "permits are kept", || {
            format!(
                "after {} of {:?} there are {after} permits, not {wanted:?}",
                run.script, run.call.what
            )
        });
    }

    /// Checks that a new holder asked for the lock, or had waited for it.
    fn newcomer(&mut self, run: &Run<'_>, holder: &Holder) {
        let asked = run.is_acquire() && run.is_of(holder);
        let waited = run.before.waiter(&holder.owner);
        let alive = waited.is_some_and(|waiter| waiter.alive_until > run.before.micros);
        self.check(asked || alive, run.now, "holders asked for it", || {
            format!("{} made {} the holder", run.script, holder.owner)
        });
        // The lease must be the one it asked for.
        let lease = match run.call.what {
            What::Acquire { lease_ms, .. } if asked => Some(lease_ms),
            _ => waited.map(|waiter| waiter.lease_ms),
        };
        let (Some(lease), Some(end)) = (lease, holder.expires_at) else {
            return;
        };
        let given = end - run.before.micros;
        let right = (lease * 1_000 - 1_000..=lease * 1_000 + 5 * SCRIPT).contains(&given);
        self.check(right, run.now, "leases are as asked for", || {
            format!(
                "{} gave {} {given} us, and not {lease} ms",
                run.script, holder.owner
            )
        });
    }

    fn expiry(&mut self, run: &Run<'_>, before: &Holder, after: &Holder) {
        if before.expires_at == after.expires_at {
            return;
        }
        let mut calls = run.all.iter();
        let own = calls.any(|(call, _)| call.owner.as_ref() == Some(&before.owner));
        self.check(own, run.now, "only owners extend", || {
            format!("{} moved the expiry of {}", run.script, before.owner)
        });
        self.check(
            before.expires_at.is_none() || after.expires_at > before.expires_at,
            run.now,
            "leases are not shortened",
            || format!("{} shortened the lease of {}", run.script, before.owner),
        );
    }
}

/// Whether a script may end a hold: by its owner's release, by force, or after its expiry. (The
/// script's clock may be a little ahead of what was seen before it.)
fn may_end(run: &Run<'_>, holder: &Holder) -> bool {
    let released = run.call.what == What::Release && run.is_of(holder);
    let over = |at: i64| at <= run.before.micros + SCRIPT;
    released || run.call.what.is_forced() || holder.expires_at.is_some_and(over)
}
