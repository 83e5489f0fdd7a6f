//! Rules for replies, messages and tokens: they must be true.

use locktopus_model::layout::{Mode, Owner, owner_of};
use locktopus_model::redis::Published;

use super::seen::SCRIPT;
use super::{Answer, Run, What, Witness};

impl Witness {
    /// Checks that a reply tells the truth.
    pub(super) fn answers(&mut self, run: &Run<'_>) {
        let Some(owner) = &run.call.owner else {
            return;
        };
        let (holds, waits) = (
            run.after.holder(owner, run.call.mode).is_some(),
            run.after.waiter(owner).is_some(),
        );
        let is_true = match &run.answer {
            Answer::Granted { .. } => holds,
            Answer::Held { remaining_ms } => {
                // An attempt that does not queue may run late, from an abandoned connection. Its
                // owner may have queued since through another one, and keeps that place.
                let kept = !run.call.queues && run.before.waiter(owner) == run.after.waiter(owner);
                !holds && (!waits || kept) && is_left(run, *remaining_ms)
            }
            Answer::Queued {
                remaining_ms,
                ahead,
            } => {
                // Waiters that are set aside are ahead of no other.
                let mut in_line = run.after.waiters.iter().filter(|it| !it.aside);
                let place = in_line.position(|it| it.owner == *owner);
                let counted = !matches!(run.call.what, What::Acquire { first: true, .. });
                let ahead = usize::try_from(*ahead).unwrap_or(0);
                let most = if counted { usize::MAX } else { 1 };
                let right = place.is_some_and(|place| match run.fair {
                    // Waiters of other libraries stand in this line too.
                    true => place.min(most) <= ahead,
                    false => place.min(most) == ahead.min(most),
                });
                !holds && waits && right && is_left(run, *remaining_ms)
            }
            Answer::Extended => {
                let end = run.after.holder(owner, run.call.mode);
                let end = end.and_then(|holder| holder.expires_at);
                // Stored leases are rounded to a millisecond.
                let wanted = match run.call.what {
                    What::Extend { lease_ms } => run.before.micros + lease_ms * 1_000 - 1_000,
                    _ => i64::MAX,
                };
                end.is_some_and(|end| end >= wanted)
            }
            Answer::Missing => !holds,
            Answer::TakenOver => !holds,
            // A hold that expired unnoticed may still be given back. But a waiter that only has to
            // wait must not get this error.
            Answer::Error(line) if line.starts_with("TOOFEW ") => {
                let most = run.after.permits();
                !holds && most.is_none_or(|most| most < run.call.permits)
            }
            Answer::Released(true) => run.before.holders.iter().any(|it| it.owner == *owner),
            // A hold that expires while the script runs is over.
            Answer::Released(false) => {
                run.before
                    .holder(owner, run.call.mode)
                    .is_none_or(|holder| {
                        let end = holder.expires_at;
                        end.is_some_and(|end| end <= run.before.micros + SCRIPT)
                    })
            }
            _ => true,
        };
        self.check(is_true, run.now, "answers are true", || {
            format!(
                "{} of {owner}: {:?}, but {:?}",
                run.script, run.answer, run.after
            )
        });
        if let (What::Release, Answer::Released(_)) = (&run.call.what, &run.answer) {
            let rest = if holds { "holds" } else { "waits" };
            // Its grant had left the place in line: see `places`.
            let came_so = self.is_torn(&run.call.lock)
                && run.before.holds(owner)
                && run.before.waiter(owner).is_some();
            self.check(
                !holds && (!waits || came_so),
                run.now,
                "a release is final",
                || format!("after its release, {owner} {rest}"),
            );
        }
    }

    /// Checks that new holders get new tokens, and that the messages about them are true.
    pub(super) fn tokens(&mut self, run: &Run<'_>, published: &[Published]) {
        // Checks messages without listeners here too: a replica may have listeners.
        for said in published {
            let Some((token, owner)) = granted(said) else {
                continue;
            };
            let waited = run.before.waiter(&owner);
            let new = run.after.holds(&owner) && !run.before.holds(&owner);
            self.check(new, run.now, "what is published is true", || {
                format!("{} tells {owner} that it was granted the lock", run.script)
            });
            self.check(
                said.receivers > 0,
                run.now,
                "what is published is true",
                || format!("{owner} was granted the lock, and nobody listens who could tell it"),
            );
            let count = waited.map_or(1, |waiter| waiter.tokens.max(1));
            if waited.is_none_or(|waiter| waiter.mode.has_tokens() && waiter.tokens > 0) {
                self.token(run, &owner, token, count);
            }
        }
        let (
            What::Acquire {
                tokens: count @ 1..,
                floor,
                ..
            },
            Answer::Granted { token },
            Some(owner),
        ) = (&run.call.what, &run.answer, &run.call.owner)
        else {
            return;
        };
        if run.before.holder(owner, run.call.mode).is_none() {
            self.token(run, owner, *token, *count);
            return;
        }
        // An owner that asks again gets the same token, unless it now wants a greater one, as a
        // quorum does. If it wants fewer, as a quorum that wins a node back does, it gets the last
        // of them.
        let given = self.granted.get(&grant_of(run, owner)).copied();
        if let Some((given, reserved)) = given.filter(|(given, _)| floor <= given) {
            let torn = self.is_torn(&run.call.lock);
            let right = are_granted((*token, *count), (given, reserved), torn);
            self.check(right, run.now, "tokens are those granted", || {
                format!(
                    "{owner} is told of {count} tokens from {token}, but was granted {reserved} from {given}"
                )
            });
        } else {
            self.granted.insert(grant_of(run, owner), (*token, *count));
        }
    }

    fn token(&mut self, run: &Run<'_>, owner: &Owner, token: i64, count: i64) {
        let lock = (run.node, run.call.lock.clone());
        let top = self.tops.get(&lock).copied().unwrap_or(0);
        self.check(
            token > top,
            run.now,
            "every grant has a greater token",
            || format!("{owner} is granted token {token} after {top}"),
        );
        self.tops.insert(lock, token + count - 1);
        self.granted.insert(grant_of(run, owner), (token, count));
    }
}

/// Whether a repeated attempt may get these tokens: the last ones of the grant, or greater ones if
/// the token was lost on its way to another server.
fn are_granted((token, count): (i64, i64), (given, reserved): (i64, i64), torn: bool) -> bool {
    let same = count <= reserved && token + count == given + reserved;
    same || torn && token > given
}

fn grant_of(run: &Run<'_>, owner: &Owner) -> (usize, Vec<u8>, String) {
    (run.node, run.call.lock.clone(), owner.to_string())
}

/// Parses `<token> <owner>`, if it announces a grant.
fn granted(said: &Published) -> Option<(i64, Owner)> {
    let space = said.message.iter().position(|byte| *byte == b' ')?;
    let (token, owner) = said.message.split_at(space);
    let token = std::str::from_utf8(token).ok()?.parse().ok();
    let token = token.filter(|token| *token > 0)?;
    Some((token, owner_of(&owner[1..])))
}

/// Whether a holder is there for as long as the reply says. For kinds with several holders, the
/// reply is about the one that ends first, or last.
fn is_left(run: &Run<'_>, remaining_ms: Option<i64>) -> bool {
    let alone = run.call.mode == Mode::Exclusive && !run.quarantined && run.call.place.is_none();
    let Some(remaining) = remaining_ms.filter(|_| alone && !run.after.open && !run.before.open)
    else {
        return true;
    };
    // Some holds expire while the script runs.
    let holders = run.before.holders.iter().chain(&run.after.holders);
    let mut ends = holders.filter_map(|it| it.expires_at);
    ends.any(|at| (at - run.after.micros).abs_diff(remaining * 1_000) <= SCRIPT.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::are_granted;

    #[test]
    fn who_asks_again_is_told_the_last_of_its_tokens_or_greater_ones_if_they_were_lost() {
        for (told, right, right_if_lost) in [
            ((5, 3), true, true),
            ((7, 1), true, true),
            ((6, 1), false, true),
            ((9, 3), false, true),
            ((5, 1), false, false),
            ((4, 4), false, false),
        ] {
            assert_eq!(are_granted(told, (5, 3), false), right, "{told:?}");
            assert_eq!(are_granted(told, (5, 3), true), right_if_lost, "{told:?}");
        }
    }
}
