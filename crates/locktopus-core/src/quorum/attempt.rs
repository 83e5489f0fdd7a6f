//! Taking a lock on a majority: one round of attempts, and the fencing token written back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::claim::Claim;
use super::fan::Fan;
use super::panel::{Panel, SPARE};
use super::silence::{NAME, Silence, no_quorum, other_kind};
use crate::backend_error::{BackendError, BackendErrorKind, Executed};
use crate::clock;
use crate::request::{AcquireAttempt, AttemptOutcome};
use crate::token::FencingToken;

type Answer = Result<AttemptOutcome, Silence>;

/// Tries once to take a lock on a majority of the nodes. What a failed try leaves on any node is given back in
/// the background, and where that is quick, before this returns.
pub(super) async fn attempt(
    panel: &Arc<Panel>,
    attempt: &AcquireAttempt,
) -> Result<AttemptOutcome, BackendError> {
    panel.ready()?;
    panel.check_lease(attempt.lease)?;
    if attempt.deadline <= Instant::now() {
        let (kind, executed) = (BackendErrorKind::Timeout, Executed::No);
        let message = "the deadline was over before any node was asked";
        return Err(BackendError::new(NAME, kind, executed, message));
    }
    let sent = clock::now();
    let until = attempt.deadline.saturating_duration_since(Instant::now()) + attempt.lease;
    let (target, owner) = (&attempt.target, &attempt.owner);
    let nodes = panel.nodes.len();
    let claim = panel
        .ledger
        .want(target, owner, attempt.permits, (nodes, until));
    let mut round = Round::new(panel, attempt, claim);
    let outcome = round.run().await;
    let valid_until = panel.margin.valid_until(sent, attempt.lease);
    match outcome {
        Ok(AttemptOutcome::Granted { token }) if clock::now() < valid_until => {
            round.won(token);
            Ok(AttemptOutcome::Granted { token })
        }
        Ok(AttemptOutcome::Granted { .. }) => {
            round.lose().await;
            let message = "the nodes agreed only after the validity of the lease was spent";
            let (kind, executed) = (BackendErrorKind::Timeout, Executed::No);
            Err(BackendError::new(NAME, kind, executed, message))
        }
        other => {
            round.lose().await;
            other
        }
    }
}

/// What one node said so far.
#[derive(Debug)]
enum Vote {
    Pending,
    Granted(Option<FencingToken>),
    Held(Option<Duration>),
    Silent(Silence),
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("no answer yet"),
            Self::Granted(_) => f.write_str("granted"),
            Self::Held(Some(left)) => write!(f, "held by somebody else for {left:?}"),
            Self::Held(None) => f.write_str("held by somebody else"),
            Self::Silent(silence) => silence.fmt(f),
        }
    }
}

/// What the votes come to.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// More answers are needed.
    Open,
    /// A majority granted it, but on these nodes the token is not yet what it must be.
    WriteBack(FencingToken, Vec<usize>),
    Granted(Option<FencingToken>),
    Held(Option<Duration>),
    NoQuorum,
}

/// The votes of one round. Knows nothing of calls and clocks.
#[derive(Debug)]
struct Tally {
    votes: Vec<Vote>,
    majority: usize,
    /// Whether this kind of lock has tokens.
    tokens: bool,
    /// What this owner was granted before: a repetition should get the same.
    before: Option<FencingToken>,
    /// The token to be written to a majority, once it is decided, the nodes that were asked to, and those of them
    /// that have not answered.
    chosen: Option<FencingToken>,
    asked: Vec<bool>,
    writing: Vec<bool>,
}

impl Tally {
    fn new(nodes: usize, tokens: bool, before: Option<FencingToken>) -> Self {
        Self {
            votes: (0..nodes).map(|_| Vote::Pending).collect(),
            majority: nodes / 2 + 1,
            tokens,
            before,
            chosen: None,
            asked: vec![false; nodes],
            writing: vec![false; nodes],
        }
    }

    fn put(&mut self, node: usize, answer: Answer) {
        self.writing[node] = false;
        self.votes[node] = match answer {
            Ok(AttemptOutcome::Granted { token }) => Vote::Granted(token),
            // Nobody asked for a place in a queue.
            Ok(AttemptOutcome::Held { remaining } | AttemptOutcome::Queued { remaining, .. }) => {
                Vote::Held(remaining)
            }
            Err(silence) => Vote::Silent(silence),
        };
    }

    /// Whether an answer of this node is still to come.
    fn awaits(&self, node: usize) -> bool {
        self.writing[node] || matches!(self.votes[node], Vote::Pending)
    }

    fn count(&self, counts: impl Fn(&Vote) -> bool) -> usize {
        self.votes.iter().filter(|vote| counts(vote)).count()
    }

    fn verdict(&mut self) -> Verdict {
        let granted = self.count(|vote| matches!(vote, Vote::Granted(_)));
        let pending = self.count(|vote| matches!(vote, Vote::Pending));
        if granted >= self.majority {
            return self.token_verdict(pending);
        }
        if granted + pending >= self.majority {
            return Verdict::Open;
        }
        if self.count(|vote| matches!(vote, Vote::Silent(_))) >= self.majority {
            return Verdict::NoQuorum;
        }
        // It cannot be had; whether somebody has it or too many nodes are silent, the rest will tell.
        let held = self.votes.len() - pending - self.count(|v| matches!(v, Vote::Silent(_)));
        if held >= self.majority {
            Verdict::Held(self.remaining(granted))
        } else {
            Verdict::Open
        }
    }

    /// A majority granted it. Which token is it, and does a majority know it?
    ///
    /// The maximum of the majority's tokens is not enough: failed attempts of others may have driven up the counter of
    /// one node, and the next majority may miss that node. So the maximum is written to a majority that still
    /// holds the lock, and any later majority has one of those nodes in it.
    fn token_verdict(&mut self, pending: usize) -> Verdict {
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
        let Some(chosen) = self.chosen.or_else(|| tokens.max()) else {
            return Verdict::Granted(None);
        };
        self.chosen = Some(chosen);
        let knows = |vote: &Vote| matches!(vote, Vote::Granted(Some(t)) if *t >= chosen);
        let agrees = |vote: &Vote| matches!(vote, Vote::Granted(Some(t)) if *t == chosen);
        // A node with a larger token of its own is as good as one that agrees, but a repetition would then find no
        // majority for this token.
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

    /// What each node said, for errors.
    fn told(&self) -> impl Iterator<Item = String> {
        let votes = self.votes.iter().zip(&self.asked);
        votes.map(|(vote, asked)| match (vote, asked) {
            (Vote::Granted(token), true) if *token < self.chosen => {
                "granted, but did not confirm the fencing token".to_owned()
            }
            _ => vote.to_string(),
        })
    }

    /// After how long enough nodes could be free, by the leases in the way. `None` if they do not expire.
    fn remaining(&self, granted: usize) -> Option<Duration> {
        let mut left: Vec<_> = self
            .votes
            .iter()
            .filter_map(|vote| match vote {
                Vote::Held(left) => Some(left.unwrap_or(Duration::MAX)),
                _ => None,
            })
            .collect();
        left.sort_unstable();
        let missing = self.majority.saturating_sub(granted).max(1);
        let last = left.get(missing - 1).or_else(|| left.last()).copied();
        last.filter(|left| *left < Duration::MAX)
    }
}

/// One round of attempts. Dropped before it is won, it gives everything back.
struct Round<'a> {
    panel: &'a Arc<Panel>,
    attempt: &'a AcquireAttempt,
    claim: Arc<Claim>,
    tally: Tally,
    /// The nodes that did not answer the last time. None if they are more than a minority, and needed.
    silent: Vec<bool>,
    over: bool,
}

impl<'a> Round<'a> {
    fn new(panel: &'a Arc<Panel>, attempt: &'a AcquireAttempt, claim: Arc<Claim>) -> Self {
        let tokens = attempt.target.kind().has_tokens();
        // A repetition that asks for more than it has gets more.
        let before = claim
            .token()
            .filter(|token| attempt.floor.is_none_or(|floor| *token >= floor));
        let tally = Tally::new(panel.nodes.len(), tokens, before);
        let mut silent: Vec<_> = panel.nodes.iter().map(|node| node.is_silent()).collect();
        if silent.iter().filter(|silent| **silent).count() >= panel.majority() {
            silent.fill(false);
        }
        Self {
            panel,
            attempt,
            claim,
            tally,
            silent,
            over: false,
        }
    }

    async fn run(&mut self) -> Result<AttemptOutcome, BackendError> {
        let begun = Instant::now();
        let mut heard = begun;
        // Late answers are not waited for, but heard: the fan goes on in the background.
        let mut fan = Fan::new(self.panel);
        for node in 0..self.panel.nodes.len() {
            fan.push(self.ask(node, self.attempt.floor));
        }
        loop {
            match self.tally.verdict() {
                Verdict::Open => {}
                Verdict::WriteBack(floor, nodes) => {
                    for node in nodes {
                        fan.push(self.ask(node, Some(floor)));
                    }
                }
                Verdict::Granted(token) => return Ok(AttemptOutcome::Granted { token }),
                Verdict::Held(remaining) => return Ok(AttemptOutcome::Held { remaining }),
                Verdict::NoQuorum => return Err(self.no_quorum()),
            }
            match fan.next(self.patience(begun, heard)).await {
                Some((node, answer)) => self.tally.put(node, answer),
                None => return Err(self.no_quorum()),
            }
            heard = Instant::now();
        }
    }

    /// Until when to wait for the next answer. A node that hangs would make every round as long as its timeout in which
    /// the others disagree, so it gets as long again as they took.
    fn patience(&self, begun: Instant, heard: Instant) -> Instant {
        let expected = |node: &usize| self.tally.awaits(*node) && !self.silent[*node];
        if (0..self.silent.len()).any(|node| expected(&node)) {
            return self.attempt.deadline;
        }
        let as_long_again = heard + heard.saturating_duration_since(begun) + SPARE;
        self.attempt.deadline.min(as_long_again)
    }

    /// One attempt on one node, which outlives the round if it must.
    fn ask(
        &self,
        node: usize,
        floor: Option<FencingToken>,
    ) -> impl Future<Output = (usize, Answer)> + Send + 'static {
        let (panel, claim) = (Arc::clone(self.panel), Arc::clone(&self.claim));
        let attempt = AcquireAttempt {
            floor,
            place: None,
            recall: false,
            ..self.attempt.clone()
        };
        async move {
            let answer = ask(&panel, &claim, node, &attempt).await;
            (node, answer)
        }
    }

    fn no_quorum(&self) -> BackendError {
        let silences = self.tally.votes.iter().filter_map(|vote| match vote {
            Vote::Silent(silence) => Some(silence),
            _ => None,
        });
        let nodes = self.panel.nodes.len();
        if let Some(error) = other_kind(&self.attempt.target, nodes, silences) {
            return error;
        }
        let labels = self.panel.nodes.iter().map(|node| &node.label);
        let (what, needed) = ("the lock", self.tally.majority);
        no_quorum(what, needed, Executed::No, labels.zip(self.tally.told()))
    }

    fn won(mut self, token: Option<FencingToken>) {
        self.claim.granted(token);
        self.claim.kept_for(self.attempt.lease);
        self.over = true;
    }

    /// Gives back what was taken. Waits for nodes that are known to answer, so that the next round of this owner
    /// does not find its own leavings; the others are dealt with in the background.
    async fn lose(mut self) {
        self.over = true;
        self.panel.give_up(&self.claim);
        let share = self.panel.share_of(self.attempt.lease);
        let deadline = self.attempt.deadline.min(Instant::now() + share);
        for (node, vote) in self.tally.votes.iter().enumerate() {
            if matches!(vote, Vote::Granted(_)) {
                self.claim.clean(node, deadline).await;
            }
        }
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.panel.give_up(&self.claim);
        }
    }
}

/// One attempt on one node, entered in the claim. It ends with its own deadline or its share of the lease.
pub(super) async fn ask(
    panel: &Panel,
    claim: &Arc<Claim>,
    node: usize,
    attempt: &AcquireAttempt,
) -> Answer {
    let closed = || {
        Silence::not_asked(
            "not asked, because an earlier attempt of this owner is not surely given back",
        )
    };
    let share = panel.share_of(attempt.lease);
    let soon = attempt.deadline.min(Instant::now() + share);
    if !claim.clean(node, soon).await {
        return Err(closed());
    }
    let sent = claim.begin(node).ok_or_else(closed)?;
    let voter = &panel.nodes[node];
    let call = |deadline| {
        let (backend, attempt) = (Arc::clone(&voter.backend), attempt.clone());
        async move {
            let attempt = AcquireAttempt {
                deadline,
                ..attempt
            };
            backend.attempt(&attempt).await
        }
    };
    let answer = voter.vote(attempt.deadline, share, call).await;
    sent.answer(&answer);
    answer
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
        Ok(AttemptOutcome::Held { remaining })
    }

    fn silent() -> Answer {
        Err(Silence::void("down"))
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
        // The node that was written to dies; the third one takes its place.
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
        assert_eq!(tally.verdict(), Verdict::Held(remaining));
        tally.put(4, silent());
        assert_eq!(tally.verdict(), Verdict::NoQuorum);
    }

    #[test]
    fn a_node_without_tokens_makes_the_token_absent() {
        let mut tally = Tally::new(3, true, None);
        tally.put(0, granted(5));
        tally.put(1, Ok(AttemptOutcome::Granted { token: None }));
        assert_eq!(tally.verdict(), Verdict::Granted(None));
    }
}
