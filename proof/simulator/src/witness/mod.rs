//! Watches every script that runs on any server, and reports what it must not do: to holders, to
//! waiters, to tokens and to other keys.
//!
//! | module | what is in it |
//! |---|---|
//! | `call`, `seen` | the operations of a script; the state of a lock on a server |
//! | `holders`, `queue`, `answers` | rules for holders; for waiters; for replies and messages |
//! | `kinds` | names that are in use as another kind |
//! | `kept` | how long servers kept locks for their owners |
//! | `taken` | the locks that operators took away |

mod answers;
mod call;
mod holders;
mod kept;
mod kinds;
mod queue;
mod seen;
mod taken;

use std::collections::{BTreeMap, BTreeSet};

use locktopus_model::layout::Holder;
use locktopus_model::lua::Evaluation;
use locktopus_model::redis::{Reply, Server};
use locktopus_protocol::slot::key_slot;

use crate::violation::Violation;
use call::{Answer, Call, What};
use kept::Kept;
pub(crate) use kinds::Names;
use kinds::Used;
use seen::Seen;
pub(crate) use taken::Suspect;
use taken::Taken;

/// Everything seen on all servers.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    found: Vec<Violation>,
    /// The greatest token of each lock, by server.
    tops: BTreeMap<(usize, Vec<u8>), i64>,
    /// The first token of each grant and how many there were, by server, lock and owner.
    granted: BTreeMap<(usize, Vec<u8>, String), (i64, i64)>,
    /// How long servers kept a lock for its owners.
    kept: Kept,
    taken: Vec<Taken>,
    names: Names,
    /// Slots in which a server may have lost some keys and kept others.
    torn: BTreeSet<u16>,
}

/// A script before it runs.
#[derive(Debug)]
pub(crate) struct Before {
    calls: Vec<(Call, Seen)>,
    /// Operations on a name of unknown kind: the witness believes only what the reply says of their
    /// own owner.
    unjudged: Vec<Call>,
    /// Set if its name is in use as another kind.
    other: Option<Other>,
    /// Its slot is moving, so some keys may be on the other server.
    on_its_way: bool,
}

/// The state before a script whose name is in use as another kind.
#[derive(Debug)]
struct Other {
    kind: &'static str,
    /// The server's clock in ms. Scripts see keys as expired that were over by then.
    begun: i64,
    /// All keys and values.
    picture: Vec<(String, String)>,
    /// The stored reply, if the same operation was done before.
    answered: Option<String>,
}

/// A script that ran, for one of its operations.
struct Run<'a> {
    now: u64,
    node: usize,
    script: &'a str,
    quarantined: bool,
    fair: bool,
    call: &'a Call,
    /// All operations of the script.
    all: &'a [(Call, Seen)],
    before: &'a Seen,
    after: Seen,
    answer: Answer,
    on_its_way: bool,
    /// It called a waiter of another library, and left the lock to that one.
    calls_another: bool,
}

/// More violations than this are not needed.
const ENOUGH: usize = 3;

impl Witness {
    pub(crate) fn new(names: Names) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    pub(crate) fn take_found(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.found)
    }

    /// The data or the clock of a server changed.
    pub(crate) fn forget(&mut self, node: usize) {
        self.tops.retain(|(of, _), _| *of != node);
        self.granted.retain(|(of, ..), _| *of != node);
    }

    /// The keys of a slot are on another server now, which has run scripts on them since the last
    /// one came.
    pub(crate) fn slot_moved(&mut self, slot: u16, from: usize, to: usize) {
        let moves = |of: usize, lock: &[u8]| of == from && key_slot(lock) == slot;
        for ((of, lock), top) in std::mem::take(&mut self.tops) {
            let at = if moves(of, &lock) { to } else { of };
            let known = self.tops.entry((at, lock)).or_insert(top);
            *known = top.max(*known);
        }
        for ((of, lock, owner), tokens) in std::mem::take(&mut self.granted) {
            let at = if moves(of, &lock) { to } else { of };
            let known = self.granted.entry((at, lock, owner)).or_insert(tokens);
            *known = tokens.max(*known);
        }
    }

    /// A server lost data while the keys of a slot moved to or from it, or after that.
    pub(crate) fn tears(&mut self, slot: u16) {
        self.torn.insert(slot);
    }

    fn is_torn(&self, lock: &[u8]) -> bool {
        self.torn.contains(&key_slot(lock))
    }

    fn fails(&mut self, now: u64, rule: &'static str, what: impl FnOnce() -> String) {
        if self.found.len() < ENOUGH {
            self.found.push(Violation::new(now, rule, what()));
        }
    }

    fn check(&mut self, holds: bool, now: u64, rule: &'static str, what: impl FnOnce() -> String) {
        if !holds {
            self.fails(now, rule, what);
        }
    }

    /// Records the server before a script runs.
    pub(crate) fn look(
        &self,
        script: &str,
        server: &Server,
        keys: &[Vec<u8>],
        arguments: &[Vec<u8>],
        on_its_way: bool,
    ) -> Before {
        let used = self.names.used(script, keys, server);
        if let Used::Other(kind) = used {
            return Before {
                calls: Vec::new(),
                unjudged: Vec::new(),
                other: Some(Other {
                    kind,
                    begun: server.now(),
                    picture: kinds::picture(script, keys, (server, server.now())),
                    answered: kinds::answered(keys, server),
                }),
                on_its_way,
            };
        }
        let calls = Call::all(script, keys, arguments);
        let (unjudged, calls) = match used {
            Used::Unknown => (calls, Vec::new()),
            _ => (Vec::new(), calls),
        };
        let calls = calls.into_iter().map(|call| {
            let seen = Seen::of(&call.layout, server);
            (call, seen)
        });
        Before {
            calls: calls.collect(),
            unjudged,
            other: None,
            on_its_way,
        }
    }

    /// Judges what a script did. Add `server_to_true` to the server's clock to get true time.
    pub(crate) fn judge(
        &mut self,
        (now, node): (u64, usize),
        (script, keys): (&str, &[Vec<u8>]),
        before: &Before,
        evaluation: &Evaluation,
        server: &Server,
        server_to_true: i64,
    ) {
        self.run_well(now, script, before, evaluation);
        if let Some(Other {
            kind,
            begun,
            picture,
            answered,
        }) = &before.other
        {
            let right = match answered {
                Some(answer) => kinds::is_told_again(answer, &evaluation.reply),
                None => kinds::is_turned_away(script, &evaluation.reply),
            };
            self.check(right, now, "kinds are kept apart", || {
                format!(
                    "{script} of a name in use as a {kind} answered {:?}",
                    evaluation.reply
                )
            });
            self.check(
                *picture == kinds::picture(script, keys, (server, *begun)),
                now,
                "kinds are kept apart",
                || format!("{script} of a name in use as a {kind} changed something"),
            );
            return;
        }
        for call in &before.unjudged {
            self.keeps_own((now, node, server_to_true), call, evaluation, server);
            let what = (&call.what, call.lock.as_slice());
            self.takes_from_somebody((now, node), what, &evaluation.reply);
        }
        for (call, seen) in &before.calls {
            let run = Run {
                all: &before.calls,
                now,
                node,
                script,
                quarantined: script.starts_with("quarantined_"),
                fair: script.contains("fair_lock_"),
                call,
                before: seen,
                after: Seen::of(&call.layout, server),
                answer: call.answer(&evaluation.reply),
                on_its_way: before.on_its_way,
                calls_another: queue::calls_another(&call.lock, server),
            };
            self.holders(&run);
            self.queue(&run);
            self.answers(&run);
            self.tokens(&run, server.published());
            self.keeps(&run, server_to_true);
            self.takes(&run);
            let immortal = call.layout.immortal_of_its_own(server);
            self.check(
                immortal.is_empty(),
                now,
                "everything ends by itself",
                || format!("after {script}, {immortal:?} will never expire"),
            );
        }
    }

    /// Whether a batch did what its members did one after the other.
    pub(crate) fn batch(&mut self, same: bool, now: u64, script: &str, told: &Reply) {
        self.check(same, now, "a batch does what its members do", || {
            format!("{script} did something else, and answered {told:?}")
        });
    }

    /// Checks that it touched only its keys, read the clock at most once, and failed only with
    /// known errors.
    fn run_well(&mut self, now: u64, script: &str, before: &Before, evaluation: &Evaluation) {
        let mut undeclared = evaluation.undeclared.clone();
        for (call, _) in &before.calls {
            undeclared.retain(|key| !call.layout.may_touch(key));
        }
        let undeclared = undeclared.iter().map(|key| String::from_utf8_lossy(key));
        let undeclared: Vec<_> = undeclared.collect();
        // Inspecting a read-write lock reads the keys of its readers.
        let looks = before.calls.is_empty() || undeclared.is_empty();
        self.check(looks, now, "scripts touch their keys", || {
            format!("{script} touched {undeclared:?}")
        });
        let readings = evaluation.clock_readings;
        self.check(readings <= 1, now, "scripts read the clock once", || {
            format!("{script} read it {readings} times")
        });
        if let Reply::Error(line) = &evaluation.reply {
            let known = [
                "OOM ",
                "READONLY ",
                "NOREPLICAS ",
                "WRONGKIND ",
                "TOOFEW ",
                "OTHERLEASE ",
            ];
            let excused = known.iter().any(|code| line.starts_with(code));
            self.check(excused, now, "scripts run", || format!("{script}: {line}"));
        }
    }
}

/// Turns a server's time into true time, in µs.
fn true_time(server: i64, server_to_true: i64) -> u64 {
    u64::try_from(server + server_to_true).unwrap_or(0)
}

impl Run<'_> {
    /// Whether this is the hold of an owner that the script was called for.
    fn is_of(&self, holder: &Holder) -> bool {
        let mut calls = self.all.iter();
        calls
            .any(|(call, _)| call.owner.as_ref() == Some(&holder.owner) && call.mode == holder.mode)
    }

    fn is_acquire(&self) -> bool {
        matches!(self.call.what, What::Acquire { .. })
    }
}
