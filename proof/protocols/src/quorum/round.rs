//! The round of a client.

use super::rules::{DRIFT, LEASE, Rules};
use super::state::{Phase, State, Vote};

impl State {
    fn votes(&self, client: usize) -> impl Iterator<Item = Vote> + '_ {
        self.nodes.iter().map(move |node| node.links[client].vote)
    }

    /// `verdict` and `token_verdict` in `votes.rs`, and the reaction of `run` in `attempt.rs`.
    pub(super) fn decide(&mut self, rules: Rules, client: usize, tokens: bool) {
        let Phase::Round { age, chosen } = self.clients[client] else {
            return;
        };
        let all = self.nodes.len();
        let majority = all / 2 + usize::from(rules.majority || all.is_multiple_of(2));
        // A node that must raise its token has granted the lock already.
        let wrote = |vote: &Vote| {
            matches!(
                vote,
                Vote::Asked { floor: 1.. } | Vote::Answered { wrote: true, .. }
            )
        };
        let pending = |vote: &Vote| {
            matches!(
                vote,
                Vote::Asked { floor: 0 } | Vote::Answered { wrote: false, .. }
            )
        };
        let granted = self
            .votes(client)
            .filter(|vote| matches!(vote, Vote::Granted(_)) || wrote(vote))
            .count();
        if granted >= majority {
            let tokens_of = self.votes(client).filter_map(|vote| match vote {
                Vote::Granted(token) => Some(token),
                _ => None,
            });
            let largest = tokens_of.max().unwrap_or(0);
            let chosen = match chosen {
                0 => largest,
                chosen => chosen,
            };
            self.clients[client] = Phase::Round { age, chosen };
            let knows = self
                .votes(client)
                .filter(|vote| matches!(vote, Vote::Granted(token) if *token >= chosen))
                .count();
            if knows >= majority || !tokens || !rules.write_back {
                self.win(rules, client, (age, chosen));
                return;
            }
            for node in &mut self.nodes {
                let vote = &mut node.links[client].vote;
                if matches!(vote, Vote::Granted(token) if *token < chosen) {
                    *vote = Vote::Asked { floor: chosen };
                }
            }
            return;
        }
        if granted + self.votes(client).filter(pending).count() < majority {
            self.lose(rules, client);
        }
    }

    /// A majority granted it; validity decides.
    fn win(&mut self, rules: Rules, client: usize, (age, token): (u8, u8)) {
        let margin = if rules.margin { DRIFT } else { 0 };
        let spent = if rules.validity_from_sending { age } else { 0 };
        if spent + margin >= LEASE {
            self.lose(rules, client);
            return;
        }
        let left = LEASE - margin - spent;
        self.clients[client] = Phase::Holding { left };
        if token > 0 {
            self.went_back |= token <= self.highest;
            self.highest = self.highest.max(token);
        }
        // Unanswered attempts may still arrive, but their answers are ignored.
        self.let_go(client);
    }

    /// Releases what the nodes have, or may have (`lose` and `Drop` of `Round`, `give_up` in
    /// `members.rs`).
    pub(super) fn lose(&mut self, rules: Rules, client: usize) {
        let age = match self.clients[client] {
            Phase::Round { age, .. } => age,
            _ => u8::MAX,
        };
        let failed = matches!(self.clients[client], Phase::Round { .. });
        self.let_go(client);
        self.clients[client] = Phase::Leaving { age };
        if !failed || rules.failed_rounds_give_back {
            for node in &mut self.nodes {
                node.links[client].releasing = true;
            }
        }
    }

    /// The client does not wait for answers any more.
    fn let_go(&mut self, client: usize) {
        for node in &mut self.nodes {
            let link = &mut node.links[client];
            link.stray |= matches!(link.vote, Vote::Asked { .. });
            link.vote = Vote::None;
        }
    }
}
