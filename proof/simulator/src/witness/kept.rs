//! How long servers kept locks for their owners, in true time, as far as any script saw it.

use std::collections::BTreeMap;

use locktopus_model::layout::Mode;
use locktopus_model::lua::Evaluation;
use locktopus_model::redis::Server;

use super::call::{Answer, Call};
use super::seen::Seen;
use super::{Run, Witness, true_time};

/// The record of all owners: on any server (`None`), and on each.
#[derive(Debug, Default)]
pub(super) struct Kept {
    until: BTreeMap<(String, Option<usize>), u64>,
    /// The time of the latest grant, by whether it was exclusive: a writer may go on as a reader.
    since: BTreeMap<(String, Option<usize>, bool), u64>,
}

impl Kept {
    pub(super) fn until(&self, owner: &str, node: Option<usize>) -> Option<u64> {
        self.until.get(&(owner.to_owned(), node)).copied()
    }

    pub(super) fn since(&self, owner: &str, node: Option<usize>, alone: bool) -> Option<u64> {
        self.since.get(&(owner.to_owned(), node, alone)).copied()
    }

    /// How many servers kept it until then, or longer.
    pub(super) fn servers(&self, owner: &str, then: u64) -> usize {
        let from = (owner.to_owned(), Some(0));
        let all = self
            .until
            .range(from..=(owner.to_owned(), Some(usize::MAX)));
        all.filter(|(_, until)| **until >= then).count()
    }

    /// A server keeps it. `since` turns the known time of the grant into the new one.
    pub(super) fn note(
        &mut self,
        (owner, alone): (&str, bool),
        node: usize,
        until: u64,
        since: impl Fn(Option<u64>) -> u64,
    ) {
        for by in [None, Some(node)] {
            let granted = since(self.since(owner, by, alone));
            self.since.insert((owner.to_owned(), by, alone), granted);
            self.until.insert((owner.to_owned(), by), until);
        }
    }
}

fn is_alone(mode: Mode) -> bool {
    matches!(mode, Mode::Exclusive | Mode::Write)
}

impl Witness {
    /// Until when a server kept a lock for this owner.
    pub(crate) fn kept(&self, owner: &str) -> Option<u64> {
        self.kept.until(owner, None)
    }

    /// Notes how long the server keeps the lock for its holders.
    pub(super) fn keeps(&mut self, run: &Run<'_>, server_to_true: i64) {
        for holder in run.before.holders.iter().chain(&run.after.holders) {
            let (owner, name) = (&holder.owner, holder.owner.to_string());
            let until = run.after.keeps(owner, server_to_true);
            // A script of one key runs while the key with a reader's deadline is still on the other
            // server.
            let as_it_was = !run.before.holds(owner) && run.after.is_written(owner);
            if run.on_its_way && until.is_none() && as_it_was {
                continue;
            }
            let until = until.unwrap_or_else(|| {
                // Nothing shows when a reader expired: no later than was seen before.
                let end = holder.expires_at.map(|end| true_time(end, server_to_true));
                let end = end.or_else(|| self.kept.until(&name, None));
                end.map_or(run.now, |end| end.min(run.now))
            });
            let held = run.before.same(holder).is_some();
            let holds = run.after.same(holder).is_some();
            let since = |known: Option<u64>| match known {
                Some(known) if held || !holds => known,
                _ => run.now,
            };
            let of = (name.as_str(), is_alone(holder.mode));
            self.kept.note(of, run.node, until, since);
        }
    }

    /// As [`keeps`](Self::keeps), for the owner that was just told that it holds the lock.
    pub(super) fn keeps_own(
        &mut self,
        (now, node, server_to_true): (u64, usize, i64),
        call: &Call,
        evaluation: &Evaluation,
        server: &Server,
    ) {
        let told = matches!(
            call.answer(&evaluation.reply),
            Answer::Granted { .. } | Answer::Extended
        );
        let Some(owner) = call.owner.as_ref().filter(|_| told) else {
            return;
        };
        let Some(until) = Seen::of(&call.layout, server).keeps(owner, server_to_true) else {
            return;
        };
        let name = owner.to_string();
        let lasts = self
            .kept
            .until(&name, None)
            .is_some_and(|known| known >= now);
        let since = |known: Option<u64>| known.filter(|_| lasts).unwrap_or(now);
        let of = (name.as_str(), is_alone(call.mode));
        self.kept.note(of, node, until, since);
    }
}
