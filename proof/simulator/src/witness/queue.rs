//! What a script may do to those who wait for a lock.

use locktopus_model::layout::{Mode, Owner, Waiter};
use locktopus_model::redis::Server;

use super::seen::{SCRIPT, Seen};
use super::{Answer, Run, What, Witness};

/// Whether a script has just called a waiter of another library, which stands in the line of a fair
/// lock and listens there.
pub(super) fn calls_another(lock: &[u8], server: &Server) -> bool {
    let (open, close): (&[u8], &[u8]) = if lock.contains(&b'{') {
        (b"", b"")
    } else {
        (b"{", b"}")
    };
    let called = [b"redisson_lock__channel:", open, lock, close, b":"].concat();
    server.published().iter().any(|message| {
        let topic = (message.sharded, message.channel.clone());
        let listeners = server.listeners.get(&topic).copied().unwrap_or(0);
        message.channel.starts_with(&called) && listeners > 0
    })
}

impl Witness {
    pub(super) fn queue(&mut self, run: &Run<'_>) {
        self.places(run);
        // Under quarantine a queue is there, and is not looked at; and kinds of one name may share
        // one.
        if run.before.open || run.quarantined || self.names.is_mixed(&run.call.lock) {
            return;
        }
        self.nobody_is_overtaken(run);
        self.what_is_free_is_handed_on(run);
    }

    /// Nobody holds and waits, or waits twice.
    fn places(&mut self, run: &Run<'_>) {
        let (now, script) = (run.now, run.script);
        // A slot whose keys moved one by one while a server lost some may have a line from before
        // somebody was granted the lock.
        let torn = self.is_torn(&run.call.lock);
        for holder in run.after.live() {
            let waits = run.after.waiter(&holder.owner);
            let waits = waits.is_some_and(|waiter| waiter.mode == holder.mode);
            let came_so = torn
                && run.before.holds(&holder.owner)
                && run.before.waiter(&holder.owner).is_some();
            self.check(!waits || came_so, now, "one place each", || {
                format!("after {script}, {} holds and waits", holder.owner)
            });
        }
        // Or the line without its records and deadlines. Nobody looks through a line for a place
        // that nothing else speaks of: whoever comes back gets one more.
        for waiter in &run.after.waiters {
            let owner = &waiter.owner;
            let bare = run.call.owner.as_ref() == Some(owner) && run.before.bare.contains(owner);
            let lost = torn && (bare || run.before.waits_twice(owner));
            let twice = run.after.waits_twice(owner);
            self.check(!twice || lost, now, "one place each", || {
                format!("after {script}, {owner} waits twice")
            });
        }
        // Whoever is alive is in line until it is granted the lock, or gives up.
        let own = |waiter: &Waiter| run.call.owner.as_ref() == Some(&waiter.owner);
        for waiter in run.before.waiters.iter().filter(|waiter| !own(waiter)) {
            let dead = waiter.alive_until <= run.before.micros + SCRIPT;
            let stays = run.after.waiter(&waiter.owner).is_some();
            self.check(
                dead || stays || run.after.holds(&waiter.owner),
                now,
                "waiters keep their places",
                || format!("{script} took {} out of the line", waiter.owner),
            );
        }
        // Those who stay keep their order, but for one who had lost its place.
        let stays = |waiter: &Waiter| {
            let lived = run.before.waiter(&waiter.owner);
            lived.is_some_and(|it| it.alive_until > run.before.micros + SCRIPT)
                && run.after.waiter(&waiter.owner).is_some()
        };
        let order = |waiters: &[Waiter]| -> Vec<Owner> {
            let kept = waiters.iter().filter(|waiter| stays(waiter));
            kept.map(|waiter| waiter.owner.clone()).collect()
        };
        let before = order(&run.before.waiters);
        let after = order(&run.after.waiters);
        self.check(before == after, now, "waiters keep their order", || {
            format!("{script} made {after:?} of {before:?}")
        });
    }

    fn nobody_is_overtaken(&mut self, run: &Run<'_>) {
        // One whose time was over but who is still written down comes back to its own place.
        let new = |owner: &Owner| run.before.holders.iter().all(|it| it.owner != *owner);
        for holder in run.after.live().filter(|holder| new(&holder.owner)) {
            let ahead = run.before.waiters.iter();
            let ahead = ahead.take_while(|it| it.owner != holder.owner);
            let ahead = ahead.filter(|it| run.before.is_ready(it) && !run.after.is_hopeless(it));
            // Whoever leaves by its own release is not overtaken.
            let leaves = |owner: &Owner| {
                run.call.what == What::Release && run.call.owner.as_ref() == Some(owner)
            };
            let overtaken = ahead.map(|it| &it.owner);
            let overtaken = overtaken.filter(|it| !run.after.holds(it) && !leaves(it));
            let overtaken: Vec<_> = overtaken.collect();
            self.check(overtaken.is_empty(), run.now, "nobody is overtaken", || {
                let (script, owner) = (run.script, &holder.owner);
                format!("{script} granted {owner} the lock before {overtaken:?}")
            });
        }
    }

    fn what_is_free_is_handed_on(&mut self, run: &Run<'_>) {
        // A script that only looks, or that does nothing for the lock, hands nothing on.
        let hands_on = match (&run.call.what, &run.call.owner) {
            // With the first key alone, while a slot moves, nothing can be handed on.
            (What::Release, Some(owner)) => {
                let waits = |seen: &Seen| seen.waiter(owner).is_some();
                // Where a server that lacks replicas refuses it, whoever wanted to leave stands
                // where it stood.
                let refused = matches!(run.answer, Answer::Error(_)) && waits(&run.after);
                run.answer == Answer::Released(true) || waits(run.before) && !refused
            }
            // One who finds no room for itself looks no further, and neither does one who takes its
            // turn: if there is room for more, they find it when they look.
            (What::Acquire { .. }, Some(owner)) if run.call.place.is_none() => {
                let waits = matches!(run.answer, Answer::Held { .. } | Answer::Queued { .. });
                let new = !run.before.holds(owner);
                let came_back = run.before.over() > run.after.over();
                let room = run.before.has_room(run.call.mode, run.call.permits);
                waits && new && (came_back || room)
            }
            _ => false,
        };
        if !hands_on || run.after.open || run.calls_another {
            return;
        }
        // A waiter that does not listen is passed over, but only when it would have been its turn.
        // What ends by itself while the script runs, a waiter's life or a holder's lease, it need
        // not have seen: there is room if there was, or if it made some.
        let alive = run.after.waiters.iter();
        let alive = alive.filter(|waiter| waiter.alive_until > run.before.micros);
        // Who says for how long the lock is held has removed nobody, though none is left: the rest
        // ended meanwhile.
        let removed = run.answer == Answer::Released(true)
            || run.before.over() > run.after.over()
                && !(run.after.holders.is_empty() && run.answer.is_held_for_a_time());
        // Of those that are counted the permits came back. Others may have been in the way besides
        // whoever was removed.
        let made = |mode: Mode| {
            let mut others = run.before.live();
            let own = |owner: &Owner| run.call.owner.as_ref() == Some(owner);
            let beside = others.all(|it| own(&it.owner) || it.mode.shares_with(mode));
            removed && (run.after.free.is_some() || beside)
        };
        let mut next = alive.take_while(|it| {
            let room = |seen: &Seen| seen.has_room(it.mode, it.permits);
            room(&run.after) && (made(it.mode) || room(run.before))
        });
        if let Some(next) = next.find(|it| run.after.is_ready(it)) {
            let owner = next.owner.clone();
            self.fails(run.now, "what is free is handed on", || {
                format!("after {} it is free, but {owner} waits", run.script)
            });
        }
    }
}
