//! Whether answers, pushes and tokens are true.

use super::{Before, Execution, Invariant, Judge, SCRIPT};
use crate::sim::ask::{Answer, Ask, Extension, Heard, Mode, Owner};
use crate::sim::counts::Counts;
use crate::sim::wire::Wire;

impl Judge {
    /// Whether an answer says what is.
    pub(super) fn judge_answer(&mut self, run: &Execution<'_>, after: &Before) {
        let Some(owner) = run.ask.owner() else {
            return;
        };
        let (holds, waits) = (after.holder(owner).is_some(), after.waiter(owner).is_some());
        let true_answer = match &run.ran.answer {
            Answer::Granted { .. } => holds,
            Answer::Held { remaining_ms } => !holds && !waits && is_left(run, *remaining_ms, after),
            Answer::Queued {
                remaining_ms,
                ahead,
                ..
            } => {
                // Waiters that are set aside are ahead of no other.
                let mut in_line = after.waiters.iter().filter(|waiter| !waiter.aside);
                let place = in_line.position(|waiter| waiter.owner == *owner);
                let counted = !matches!(run.ask, Ask::Acquire { first: true, .. });
                let ahead = usize::try_from(*ahead).ok();
                let place = place.map(|place| if counted { place } else { place.min(1) });
                let ahead = ahead.map(|ahead| if counted { ahead } else { ahead.min(1) });
                !holds && place == ahead && waits && is_left(run, *remaining_ms, after)
            }
            Answer::Extended(Extension::Extended) => {
                let expires_at = after.holder(owner).and_then(|holder| holder.expires_at);
                let wanted = match run.ask {
                    // Leases that are written down are rounded to a millisecond.
                    Ask::Extend { lease_ms, .. } => run.before.micros + lease_ms * 1_000 - 500,
                    _ => i64::MAX,
                };
                expires_at.is_some_and(|at| at >= wanted)
            }
            Answer::Extended(Extension::Missing) => !holds,
            Answer::Extended(Extension::TakenOver) => !holds && !after.holders.is_empty(),
            // What is over may be given back as long as nobody has noticed.
            Answer::Released(true) => run.before.holders.iter().any(|it| it.owner == *owner),
            // What ends while the script runs is over.
            Answer::Released(false) => run.before.holder(owner).is_none_or(|holder| {
                let end = holder.expires_at;
                end.is_some_and(|at| at <= run.before.micros + SCRIPT)
            }),
            _ => true,
        };
        self.check(true_answer, run.now, Invariant::TruthfulAnswer, || {
            let (ask, answer) = (run.ask, &run.ran.answer);
            format!("{ask:?} was answered {answer:?}, but {after:?}")
        });
        self.judge_place(run, owner);
        if let (Ask::Release { .. }, Answer::Released(_)) = (run.ask, &run.ran.answer) {
            self.check(!holds && !waits, run.now, Invariant::ReleaseIsFinal, || {
                format!(
                    "after its release, {owner} {}",
                    if holds { "holds" } else { "waits" }
                )
            });
        }
    }

    /// Whether one who has a place, and repeated its attempt in time because nothing went wrong, still has it.
    fn judge_place(&mut self, run: &Execution<'_>, owner: &Owner) {
        let kept = run.before.waiter(owner).is_some() || run.before.holder(owner).is_some();
        let placed = matches!(run.ask, Ask::Acquire { .. }) && self.placed.contains(owner);
        self.check(
            kept || !placed || !self.calm,
            run.now,
            Invariant::PlaceKept,
            || format!("{owner} has lost its place"),
        );
        if matches!(run.ran.answer, Answer::Queued { .. }) {
            self.placed.insert(owner.clone());
        } else {
            self.placed.remove(owner);
        }
    }

    /// Whether new holders have new tokens, and are told the truth.
    pub(super) fn judge_grants(
        &mut self,
        run: &Execution<'_>,
        after: &Before,
        wire: &Wire,
        counts: &mut Counts,
    ) {
        // Also of what nobody hears here: those who listen to a replica do.
        for published in &run.ran.published {
            if let Heard::Granted { owner, token } = wire.heard(published) {
                let holds = after.holder(&owner).is_some();
                let held = run.before.holder(&owner).is_some();
                self.check(holds && !held, run.now, Invariant::TruthfulPush, || {
                    format!("{owner} is told that it was granted the lock")
                });
                let heard = published.receivers > 0;
                self.check(heard, run.now, Invariant::TruthfulPush, || {
                    format!(
                        "{owner} was granted the lock, and nobody listens here who could tell it"
                    )
                });
                counts.handed += 1;
                let count = run
                    .before
                    .waiter(&owner)
                    .map_or(1, |waiter| waiter.tokens.max(1));
                self.judge_token(run, &owner, token, count);
            }
        }
        if let (
            Ask::Acquire {
                owner,
                tokens: count @ 1..,
                ..
            },
            Answer::Granted { token },
        ) = (run.ask, &run.ran.answer)
        {
            let given = self.granted.get(owner).copied();
            if run.before.holder(owner).is_none() {
                self.judge_token(run, owner, *token, *count);
            } else {
                self.check(
                    given == Some(*token),
                    run.now,
                    Invariant::TokenOfGrant,
                    || format!("{owner} is told of token {token}, but was granted {given:?}"),
                );
            }
        }
    }

    fn judge_token(&mut self, run: &Execution<'_>, owner: &Owner, token: i64, count: i64) {
        let top = self.top_token;
        self.check(token > top, run.now, Invariant::TokensIncrease, || {
            format!("{owner} is granted token {token} after {top}")
        });
        self.top_token = token + count - 1;
        self.granted.insert(owner.clone(), token);
    }
}

/// Whether somebody is in the way for as long as an answer says. For kinds that several can hold at once the answer is
/// about whoever ends first, or last.
fn is_left(run: &Execution<'_>, remaining_ms: Option<i64>, after: &Before) -> bool {
    let exclusive = matches!(
        run.ask,
        Ask::Acquire {
            mode: Mode::Exclusive,
            ..
        }
    );
    let Some(remaining) = remaining_ms.filter(|_| exclusive && !after.open) else {
        return true;
    };
    after
        .holders
        .iter()
        .filter_map(|holder| holder.expires_at)
        .any(|at| (at - after.micros).abs_diff(remaining * 1_000) <= SCRIPT.unsigned_abs())
}
