//! The votes of one round and their result. Independent of calls and clocks.

use std::fmt;
use std::time::Duration;

use locktopus_contract::{AttemptOutcome, FencingToken};

use super::abstention::Abstention;

/// One node's answer.
pub(super) type Answer = Result<AttemptOutcome, Abstention>;

/// One node's vote so far.
#[derive(Debug)]
pub(super) enum Vote {
    Pending,
    Granted(Option<FencingToken>),
    Busy(Option<Duration>),
    Abstained(Abstention),
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("no answer yet"),
            Self::Granted(_) => f.write_str("granted"),
            Self::Busy(Some(left)) => write!(f, "held by somebody else for {left:?}"),
            Self::Busy(None) => f.write_str("held by somebody else"),
            Self::Abstained(abstention) => abstention.fmt(f),
        }
    }
}

/// The result of the votes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// More answers are needed.
    Open,
    /// A majority granted it, but these nodes still have the wrong token.
    WriteBack(FencingToken, Vec<usize>),
    Granted(Option<FencingToken>),
    Busy(Option<Duration>),
    NoQuorum,
}

/// The votes of one round. Independent of calls and clocks.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) votes: Vec<Vote>,
    pub(super) majority: usize,
    /// Whether this kind of lock has tokens.
    pub(super) tokens: bool,
    /// The token of this owner's earlier grant. A repetition should get the same one.
    pub(super) before: Option<FencingToken>,
    /// Once decided: the token to write to a majority, the nodes asked to write it, and those that
    /// have not answered.
    pub(super) chosen: Option<FencingToken>,
    pub(super) asked: Vec<bool>,
    pub(super) writing: Vec<bool>,
    /// The tokens in the answers of the first majority, until they are taken.
    pub(super) first_tokens: Option<Vec<FencingToken>>,
}

impl Tally {
    pub(super) fn new(nodes: usize, tokens: bool, before: Option<FencingToken>) -> Self {
        Self {
            votes: (0..nodes).map(|_| Vote::Pending).collect(),
            majority: nodes / 2 + 1,
            tokens,
            before,
            chosen: None,
            asked: vec![false; nodes],
            writing: vec![false; nodes],
            first_tokens: None,
        }
    }

    pub(super) fn put(&mut self, node: usize, answer: Answer) {
        self.writing[node] = false;
        self.votes[node] = match answer {
            Ok(AttemptOutcome::Granted { token }) => Vote::Granted(token),
            // The attempt did not ask for a place in a queue.
            Ok(AttemptOutcome::Busy { remaining } | AttemptOutcome::Queued { remaining, .. }) => {
                Vote::Busy(remaining)
            }
            Err(abstention) => Vote::Abstained(abstention),
        };
    }

    /// Whether an answer of this node is still to come.
    pub(super) fn awaits(&self, node: usize) -> bool {
        self.writing[node] || matches!(self.votes[node], Vote::Pending)
    }

    pub(super) fn count(&self, counts: impl Fn(&Vote) -> bool) -> usize {
        self.votes.iter().filter(|vote| counts(vote)).count()
    }

    pub(super) fn verdict(&mut self) -> Verdict {
        let granted = self.count(|vote| matches!(vote, Vote::Granted(_)));
        let pending = self.count(|vote| matches!(vote, Vote::Pending));
        if granted >= self.majority {
            return self.token_verdict(pending);
        }
        if granted + pending >= self.majority {
            return Verdict::Open;
        }
        if self.count(|vote| matches!(vote, Vote::Abstained(_))) >= self.majority {
            return Verdict::NoQuorum;
        }
        // It is not available. The other answers decide whether another owner has it or too many
        // nodes are silent.
        let held = self.votes.len() - pending - self.count(|v| matches!(v, Vote::Abstained(_)));
        if held >= self.majority {
            Verdict::Busy(self.remaining(granted))
        } else {
            Verdict::Open
        }
    }

    /// A majority granted it. Chooses the token, and checks that a majority knows it.
    ///
    /// The largest token of the majority is not enough. Other owners' failed attempts may have
    /// driven up the counter of one node, and the next majority may miss that node. So the largest
    /// token is written to a majority that still holds the lock. Any later majority includes one of
    /// those nodes.
    pub(super) fn token_verdict(&mut self, pending: usize) -> Verdict {
        if !self.tokens || self.count(|vote| matches!(vote, Vote::Granted(None))) > 0 {
            return Verdict::Granted(None);
        }
        if let Some(before) = self.before {
            if self.count(|vote| matches!(vote, Vote::Granted(Some(t)) if *t == before))
                >= self.majority
            {
                return Verdict::Granted(Some(before));
            }
            if pending > 0 && self.chosen.is_none() {
                return Verdict::Open;
            }
        }
        let tokens = self.votes.iter().filter_map(|vote| match vote {
            Vote::Granted(token) => *token,
            _ => None,
        });
        let chosen = if let Some(chosen) = self.chosen {
            chosen
        } else {
            let tokens: Vec<_> = tokens.collect();
            let Some(largest) = tokens.iter().max().copied() else {
                return Verdict::Granted(None);
            };
            self.first_tokens = Some(tokens);
            largest
        };
        self.chosen = Some(chosen);
        let knows = |vote: &Vote| matches!(vote, Vote::Granted(Some(t)) if *t >= chosen);
        let agrees = |vote: &Vote| matches!(vote, Vote::Granted(Some(t)) if *t == chosen);
        // A node with a larger token of its own is as good as one that agrees. But then a
        // repetition would find no majority for this token.
        let settled = !self.writing.contains(&true) && self.count(knows) >= self.majority;
        if settled || self.count(agrees) >= self.majority {
            return Verdict::Granted(Some(chosen));
        }
        let behind = |node: usize| matches!(self.votes[node], Vote::Granted(Some(t)) if t < chosen);
        let ask: Vec<usize> = (0..self.votes.len())
            .filter(|node| behind(*node) && !self.asked[*node])
            .collect();
        for node in &ask {
            (self.asked[*node], self.writing[*node]) = (true, true);
        }
        if ask.is_empty() {
            Verdict::Open
        } else {
            Verdict::WriteBack(chosen, ask)
        }
    }

    /// The time until a majority votes, if time is all that is missing.
    pub(super) fn votes_in(&self) -> Option<Duration> {
        let voting = self.count(|vote| matches!(vote, Vote::Granted(_) | Vote::Busy(_)));
        let mut left: Vec<_> = self
            .votes
            .iter()
            .filter_map(|vote| match vote {
                Vote::Abstained(abstention) => abstention.votes_in(),
                _ => None,
            })
            .collect();
        left.sort_unstable();
        let missing = self.majority.checked_sub(voting + 1)?;
        left.get(missing).copied()
    }

    /// Each node's answer, for errors.
    pub(super) fn told(&self) -> impl Iterator<Item = String> {
        let votes = self.votes.iter().zip(&self.asked);
        votes.map(|(vote, asked)| match (vote, asked) {
            (Vote::Granted(token), true) if *token < self.chosen => {
                "granted, but did not confirm the fencing token".to_owned()
            }
            _ => vote.to_string(),
        })
    }

    /// The time until enough nodes could be free, judging by the leases that block it. `None` if
    /// those do not expire.
    pub(super) fn remaining(&self, granted: usize) -> Option<Duration> {
        let mut left: Vec<_> = self
            .votes
            .iter()
            .filter_map(|vote| match vote {
                Vote::Busy(left) => Some(left.unwrap_or(Duration::MAX)),
                // Its answer is on the way, and may name a shorter time than the others.
                Vote::Pending => Some(Duration::ZERO),
                _ => None,
            })
            .collect();
        left.sort_unstable();
        let missing = self.majority.saturating_sub(granted).max(1);
        let last = left.get(missing - 1).or_else(|| left.last()).copied();
        last.filter(|left| *left < Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(n: u64) -> FencingToken {
        FencingToken::new(n).unwrap()
    }

    fn granted(n: u64) -> Answer {
        let token = Some(token(n));
        Ok(AttemptOutcome::Granted { token })
    }

    fn held(seconds: u64) -> Answer {
        let remaining = Some(Duration::from_secs(seconds));
        Ok(AttemptOutcome::Busy { remaining })
    }

    fn silent() -> Answer {
        Err(Abstention::void("down"))
    }

    #[test]
    fn the_largest_token_is_written_to_a_majority_before_it_is_given_out() {
        let mut tally = Tally::new(5, true, None);
        assert_eq!(tally.verdict(), Verdict::Open);
        tally.put(0, granted(7));
        tally.put(1, granted(9));
        assert_eq!(tally.verdict(), Verdict::Open);
        tally.put(2, granted(8));
        assert_eq!(tally.verdict(), Verdict::WriteBack(token(9), vec![0, 2]));
        assert_eq!(tally.verdict(), Verdict::Open);
        tally.put(0, granted(9));
        assert_eq!(tally.verdict(), Verdict::Open);
        tally.put(2, granted(9));
        assert_eq!(tally.verdict(), Verdict::Granted(Some(token(9))));
    }

    #[test]
    fn a_node_that_answers_late_helps_to_carry_the_token() {
        let mut tally = Tally::new(3, true, None);
        tally.put(0, granted(5));
        tally.put(1, granted(6));
        assert_eq!(tally.verdict(), Verdict::WriteBack(token(6), vec![0]));
        // The node that was written to dies, and the third one takes its place.
        tally.put(0, silent());
        assert_eq!(tally.verdict(), Verdict::Open);
        tally.put(2, granted(4));
        assert_eq!(tally.verdict(), Verdict::WriteBack(token(6), vec![2]));
        tally.put(2, silent());
        assert_eq!(tally.verdict(), Verdict::NoQuorum);
    }

    #[test]
    fn a_repetition_gets_the_token_it_had() {
        let mut tally = Tally::new(3, true, Some(token(6)));
        tally.put(2, granted(9));
        tally.put(0, granted(6));
        assert_eq!(tally.verdict(), Verdict::Open, "the third one may agree");
        tally.put(1, granted(6));
        assert_eq!(tally.verdict(), Verdict::Granted(Some(token(6))));
    }

    #[test]
    fn held_and_no_quorum_are_told_apart() {
        let mut tally = Tally::new(5, true, None);
        for (node, answer) in [held(3), silent(), silent(), held(1)]
            .into_iter()
            .enumerate()
        {
            tally.put(node, answer);
        }
        assert_eq!(tally.verdict(), Verdict::Open, "one more may be silent too");
        tally.put(4, granted(1));
        // Two more are needed: after three seconds, not after one.
        let remaining = Some(Duration::from_secs(3));
        assert_eq!(tally.verdict(), Verdict::Busy(remaining));
        tally.put(4, silent());
        assert_eq!(tally.verdict(), Verdict::NoQuorum);
    }

    #[test]
    fn an_answer_is_awaited_until_it_comes_and_again_when_a_token_is_written() {
        let mut tally = Tally::new(3, true, None);
        tally.put(0, granted(5));
        assert!(!tally.awaits(0) && tally.awaits(1));
        tally.put(1, granted(6));
        assert_eq!(tally.verdict(), Verdict::WriteBack(token(6), vec![0]));
        assert!(tally.awaits(0) && !tally.awaits(1));
        tally.put(0, silent());
        assert!(!tally.awaits(0));
    }

    #[test]
    fn one_that_grants_and_one_that_is_silent_may_be_a_majority() {
        let mut tally = Tally::new(3, true, None);
        tally.put(0, granted(5));
        tally.put(1, held(1));
        assert_eq!(tally.verdict(), Verdict::Open);
    }

    #[test]
    fn a_repetition_that_no_majority_agrees_with_gets_the_largest_token() {
        let mut tally = Tally::new(3, true, Some(token(6)));
        tally.put(0, granted(9));
        tally.put(1, granted(8));
        assert_eq!(tally.verdict(), Verdict::Open, "the third one may agree");
        tally.put(2, granted(7));
        assert_eq!(tally.verdict(), Verdict::WriteBack(token(9), vec![1, 2]));
    }

    #[test]
    fn a_node_with_a_larger_token_knows_the_one_that_is_written() {
        let mut tally = Tally::new(3, true, None);
        tally.put(0, granted(5));
        tally.put(1, granted(6));
        assert_eq!(tally.verdict(), Verdict::WriteBack(token(6), vec![0]));
        tally.put(0, granted(8));
        assert_eq!(tally.verdict(), Verdict::Granted(Some(token(6))));
    }

    #[test]
    fn a_node_without_tokens_makes_the_token_absent() {
        let mut tally = Tally::new(3, true, None);
        tally.put(0, granted(5));
        tally.put(1, Ok(AttemptOutcome::Granted { token: None }));
        assert_eq!(tally.verdict(), Verdict::Granted(None));
    }

    #[test]
    fn a_node_that_has_not_answered_yet_may_be_free_sooner() {
        let mut tally = Tally::new(3, true, None);
        tally.put(0, held(4));
        tally.put(2, held(30));
        let remaining = Some(Duration::from_secs(4));
        assert_eq!(tally.verdict(), Verdict::Busy(remaining));
    }

    #[test]
    fn a_lock_may_be_free_when_as_many_leases_have_ended_as_votes_are_missing() {
        let mut tally = Tally::new(5, true, None);
        for (node, answer) in [granted(1), held(3), silent(), held(1), held(2)]
            .into_iter()
            .enumerate()
        {
            tally.put(node, answer);
        }
        let remaining = |seconds| Verdict::Busy(Some(Duration::from_secs(seconds)));
        assert_eq!(tally.verdict(), remaining(2), "two votes are missing");
        let without_end = || Ok(AttemptOutcome::Busy { remaining: None });
        tally.put(3, without_end());
        assert_eq!(tally.verdict(), remaining(3));
        tally.put(4, without_end());
        assert_eq!(tally.verdict(), Verdict::Busy(None));
    }

    #[test]
    fn a_node_that_does_not_have_the_written_token_yet_is_told() {
        let mut tally = Tally::new(3, true, None);
        tally.put(0, granted(5));
        tally.put(1, granted(6));
        assert_eq!(tally.verdict(), Verdict::WriteBack(token(6), vec![0]));
        let told = |tally: &Tally| tally.told().collect::<Vec<_>>();
        let unconfirmed = "granted, but did not confirm the fencing token";
        assert_eq!(told(&tally), [unconfirmed, "granted", "no answer yet"]);
        tally.put(0, granted(6));
        assert_eq!(told(&tally), ["granted", "granted", "no answer yet"]);
        tally.put(0, granted(7));
        tally.put(2, held(2));
        assert_eq!(
            told(&tally),
            ["granted", "granted", "held by somebody else for 2s"]
        );
    }

    #[test]
    fn it_is_told_what_each_node_said_and_who_did_not_confirm_the_token() {
        let mut tally = Tally::new(6, true, None);
        tally.put(0, granted(7));
        tally.put(1, granted(9));
        tally.put(2, granted(8));
        tally.put(3, granted(9));
        let written = Verdict::WriteBack(token(9), vec![0, 2]);
        assert_eq!(tally.verdict(), written);
        tally.put(0, granted(9));
        tally.put(4, held(1));
        let told: Vec<_> = tally.told().collect();
        let expected = [
            "granted",
            "granted",
            "granted, but did not confirm the fencing token",
            "granted",
            "held by somebody else for 1s",
            "no answer yet",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_majority_votes_when_enough_of_the_young_do() {
        let young = |seconds| Err(Abstention::not_yet(Duration::from_secs(seconds)));
        for (last, expected) in [
            (silent(), Some(9)),
            (granted(1), Some(3)),
            (young(5), Some(5)),
        ] {
            let mut tally = Tally::new(5, true, None);
            let first = [silent(), young(9), young(3), held(1)];
            for (node, answer) in first.into_iter().chain([last]).enumerate() {
                tally.put(node, answer);
            }
            assert_eq!(tally.votes_in(), expected.map(Duration::from_secs));
            tally.put(2, silent());
            assert_ne!(tally.votes_in(), expected.map(Duration::from_secs));
        }
    }
}
