//! Rules for waiters.

use locktopus_model::layout::{Mode, Owner, Waiter};
use locktopus_model::redis::Server;

use super::seen::{SCRIPT, Seen};
use super::{Answer, Run, What, Witness};

/// Whether a script has just called a waiter of another library, which queues for a fair lock and
/// listens there.
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
        // Quarantine ignores the queue, and kinds of one name may share it.
        if run.before.open || run.quarantined || self.names.is_mixed(&run.call.lock) {
            return;
        }
        self.nobody_is_overtaken(run);
        self.what_is_free_is_handed_on(run);
    }

    /// Checks that no owner both holds and waits, nor waits twice.
    fn places(&mut self, run: &Run<'_>) {
        let (now, script) = (run.now, run.script);
        // If a server lost some keys of a moving slot, the line may be older than a grant to one of
        // its waiters.
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
        // Or the line survived without its records and deadlines. No script searches a line for a
        // place without a record, so an owner that comes back gets a second place.
        for waiter in &run.after.waiters {
            let owner = &waiter.owner;
            let bare = run.call.owner.as_ref() == Some(owner) && run.before.bare.contains(owner);
            let lost = torn && (bare || run.before.waits_twice(owner));
            let twice = run.after.waits_twice(owner);
            self.check(!twice || lost, now, "one place each", || {
                format!("after {script}, {owner} waits twice")
            });
        }
        // A live waiter stays in line until it is granted the lock or gives up.
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
        // Those who stay keep their order, except one that had lost its place.
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
        // An expired holder that is still stored gets its own hold back.
        let new = |owner: &Owner| run.before.holders.iter().all(|it| it.owner != *owner);
        for holder in run.after.live().filter(|holder| new(&holder.owner)) {
            let ahead = run.before.waiters.iter();
            let ahead = ahead.take_while(|it| it.owner != holder.owner);
            let ahead = ahead.filter(|it| run.before.is_ready(it) && !run.after.is_hopeless(it));
            // A waiter that leaves by its own release is not overtaken.
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
        // A script that only reads, or does nothing for the lock, hands nothing on.
        let hands_on = match (&run.call.what, &run.call.owner) {
            // With only the first key, while a slot moves, it can hand nothing on.
            (What::Release, Some(owner)) => {
                let waits = |seen: &Seen| seen.waiter(owner).is_some();
                // If a server that lacks replicas refuses the release, the waiter stays where it
                // was.
                let refused = matches!(run.answer, Answer::Error(_)) && waits(&run.after);
                run.answer == Answer::Released(true) || waits(run.before) && !refused
            }
            // An attempt that finds no room for itself looks no further, nor does one that takes
            // its turn. If there is more room, the next ones find it when they poll.
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
        // A waiter that does not listen is passed over, but only when its turn comes. The script
        // need not have seen a heartbeat or a lease that expired while it ran: there is room if
        // there was room before, or if the script made some.
        let alive = run.after.waiters.iter();
        let alive = alive.filter(|waiter| waiter.alive_until > run.before.micros);
        // A reply that tells how long the lock is held removed no holder, even if none is left: the
        // rest expired meanwhile.
        let removed = run.answer == Answer::Released(true)
            || run.before.over() > run.after.over()
                && !(run.after.holders.is_empty() && run.answer.is_held_for_a_time());
        // Permits that came back are counted. For other kinds, further holders may exclude the
        // waiter.
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
