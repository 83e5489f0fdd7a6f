//! What a script may do to the lock and its queue.

use super::{Before, Execution, Invariant, Judge, SCRIPT};
use crate::sim::ask::{Answer, Ask, Holder, Owner};
use crate::sim::rules::Micros;

impl Judge {
    /// Whether it ran as scripts should.
    pub(super) fn judge_run(&mut self, run: &Execution<'_>, after: &Before) {
        let now = run.now;
        let undeclared = &run.ran.undeclared;
        self.check(undeclared.is_empty(), now, Invariant::DeclaredKeys, || {
            let keys = undeclared.iter().map(|key| String::from_utf8_lossy(key));
            format!("{:?} touched {:?}", run.ask, keys.collect::<Vec<_>>())
        });
        let readings = run.ran.clock_readings;
        self.check(readings <= 1, now, Invariant::OneClockReading, || {
            format!("{:?} read the clock {readings} times", run.ask)
        });
        if let Answer::Error(error) = &run.ran.answer {
            let known = ["OOM ", "READONLY ", "NOREPLICAS "];
            let excused = known.iter().any(|code| error.starts_with(code));
            self.check(excused, now, Invariant::ScriptRuns, || {
                format!("{:?}: {error}", run.ask)
            });
        }
        if run.ran.answer == Answer::Nonsense {
            self.fails(now, Invariant::ScriptRuns, || {
                format!("{:?} answered {:?}", run.ask, run.ran.reply)
            });
        }
        if let Ask::Acquire { not_after, .. } = run.ask {
            let late = *not_after > 0 && run.before.micros > *not_after;
            let same = run.before.holders == after.holders && run.before.waiters == after.waiters;
            self.check(!late || same, now, Invariant::LateRefused, || {
                format!("{:?} ran at {}", run.ask, run.before.micros)
            });
        }
    }

    /// Whether holders came, went and stayed as they may.
    pub(super) fn judge_holders(&mut self, run: &Execution<'_>, after: &Before) {
        let now = run.now;
        for holder in after.live() {
            if run.before.holder(&holder.owner).is_none() {
                self.judge_newcomer(run, holder);
            }
            self.check(
                holder.expires_at.is_some(),
                now,
                Invariant::EverythingExpires,
                || format!("{} holds for ever", holder.owner),
            );
        }
        for holder in run.before.live() {
            match after.holder(&holder.owner) {
                Some(still) => self.judge_expiry(run, holder, still),
                None => self.check(may_end(run, holder), now, Invariant::OwnerChange, || {
                    format!("{:?} ended the hold of {}", run.ask, holder.owner)
                }),
            }
        }
        let live: Vec<&Holder> = after.live().collect();
        for (place, one) in live.iter().enumerate() {
            for other in &live[place + 1..] {
                self.check(
                    one.mode.shares_with(other.mode),
                    now,
                    Invariant::HoldersShare,
                    || format!("both {} and {} hold", one.owner, other.owner),
                );
            }
        }
        self.counted(now, after);
    }

    /// Whether permits are all there and no more.
    pub(in crate::sim) fn counted(&mut self, now: Micros, after: &Before) {
        let Some(free) = after.free else {
            return;
        };
        let held: i64 = after.holders.iter().map(|holder| holder.permits).sum();
        let total = self.total;
        let kept = free >= 0 && held + free == total;
        self.check(kept, now, Invariant::PermitsKept, || {
            format!("{held} of {total} are held and {free} are free")
        });
    }

    /// A new holder asked for it, or had waited for it.
    fn judge_newcomer(&mut self, run: &Execution<'_>, holder: &Holder) {
        let asked = matches!(run.ask, Ask::Acquire { owner, .. } if *owner == holder.owner);
        let waited = run.before.waiter(&holder.owner);
        let alive = waited.is_some_and(|waiter| waiter.alive_until > run.before.micros);
        self.check(asked || alive, run.now, Invariant::OwnerChange, || {
            format!("{:?} made {} the holder", run.ask, holder.owner)
        });
    }

    fn judge_expiry(&mut self, run: &Execution<'_>, before: &Holder, after: &Holder) {
        if before.expires_at == after.expires_at {
            return;
        }
        let own = run.ask.owner() == Some(&before.owner);
        self.check(own, run.now, Invariant::OnlyOwnerExtends, || {
            format!("{:?} moved the expiry of {}", run.ask, before.owner)
        });
        self.check(
            before.expires_at.is_none() || after.expires_at > before.expires_at,
            run.now,
            Invariant::NeverShortened,
            || format!("{:?} shortened the lease of {}", run.ask, before.owner),
        );
    }

    /// Whether the queue was respected.
    pub(super) fn judge_queue(&mut self, run: &Execution<'_>, after: &Before) {
        let now = run.now;
        for holder in after.live() {
            self.check(
                after.waiter(&holder.owner).is_none(),
                now,
                Invariant::OnePlace,
                || format!("{} holds and waits", holder.owner),
            );
        }
        for (place, waiter) in after.waiters.iter().enumerate() {
            let twice = after.waiters[place + 1..]
                .iter()
                .any(|it| it.owner == waiter.owner);
            self.check(!twice, now, Invariant::OnePlace, || {
                format!("{} waits twice", waiter.owner)
            });
        }
        if run.before.open {
            return;
        }
        // One whose time was over but who is still written down comes back to its own place.
        let new = |owner: &Owner| {
            run.before
                .holders
                .iter()
                .all(|holder| holder.owner != *owner)
        };
        for holder in after.live().filter(|holder| new(&holder.owner)) {
            let before = &run.before;
            let ahead = before
                .waiters
                .iter()
                .take_while(|it| it.owner != holder.owner);
            let ahead = ahead
                .filter(|it| before.is_ready(it))
                .map(|waiter| &waiter.owner);
            // Whoever leaves by its own release is not overtaken.
            let leaves =
                |owner: &Owner| matches!(run.ask, Ask::Release { owner: it, .. } if it == owner);
            let overtaken = ahead.filter(|owner| after.holder(owner).is_none() && !leaves(owner));
            let overtaken: Vec<&Owner> = overtaken.collect();
            self.check(overtaken.is_empty(), now, Invariant::NoBarging, || {
                format!("{} was granted the lock before {overtaken:?}", holder.owner)
            });
        }
        // A script that only looks, or that does nothing for the lock, hands nothing on.
        let hands_on = match run.ask {
            Ask::Release { owner, .. } => {
                run.ran.answer == Answer::Released(true) || run.before.waiter(owner).is_some()
            }
            // One who finds no room for itself looks no further, and neither does one who takes its turn: if there
            // is room for more, they find it when they look.
            Ask::Acquire {
                owner,
                mode,
                permits,
                ..
            } => {
                let waits = matches!(run.ran.answer, Answer::Held { .. } | Answer::Queued { .. });
                let new = run.before.holder(owner).is_none();
                let came_back = run.before.over() > after.over();
                waits && new && (came_back || run.before.has_room(*mode, *permits))
            }
            _ => false,
        };
        // A waiter that does not listen is passed over, but only when it would have been its turn.
        let alive = after
            .waiters
            .iter()
            .filter(|waiter| waiter.alive_until > after.micros);
        let mut next = alive.take_while(|it| hands_on && after.has_room(it.mode, it.permits));
        if let Some(next) = next.find(|it| after.is_ready(it) && !after.open) {
            let owner = next.owner.clone();
            self.fails(now, Invariant::HandedOn, || {
                format!("after {:?} the lock is free, but {owner} waits", run.ask)
            });
        }
    }
}

/// Whether a script may end a hold: its owner's release, or anybody's when its time is over (a script's clock may be
/// a little ahead of what was seen before it).
fn may_end(run: &Execution<'_>, holder: &Holder) -> bool {
    let released = matches!(run.ask, Ask::Release { owner, .. } if *owner == holder.owner);
    released
        || holder
            .expires_at
            .is_some_and(|at| at <= run.before.micros + SCRIPT)
}
