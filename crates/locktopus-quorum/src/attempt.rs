//! Takes a lock on a majority: one round of attempts. If the nodes disagree about its token, a
//! second round writes the largest one back.

use std::sync::Arc;

use tokio::time::Instant;

use super::abstention::{Abstention, BACKEND_NAME, no_quorum, other_kind};
use super::claim::Claim;
use super::fan_out::FanOut;
use super::members::{Members, SPARE_TIME};
use super::proposals::Proposal;
use super::votes::{Answer, Tally, Verdict, Vote};
use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, Executed, FencingToken, clock,
};

/// Tries once to take a lock on a majority of the nodes. Gives back what a failed try left on any
/// node: before this returns if that is quick, otherwise in the background.
pub(super) async fn attempt(
    members: &Arc<Members>,
    attempt: &AcquireAttempt,
) -> Result<AttemptOutcome, BackendError> {
    members.ready_before(attempt.deadline)?;
    members.check_lease(attempt.lease)?;
    let sent = clock::now();
    let until = attempt.deadline.saturating_duration_since(Instant::now()) + attempt.lease;
    let (target, owner) = (&attempt.target, &attempt.owner);
    let nodes = members.nodes.len();
    let claim = members
        .ledger
        .want(target, owner, attempt.permits, (nodes, until));
    let mut round = AttemptRound::new(members, attempt, claim);
    let outcome = round.run().await;
    let valid_until = members.margin.valid_until(sent, attempt.lease);
    match outcome {
        Ok(AttemptOutcome::Granted { token }) if clock::now() < valid_until => {
            round.won(token);
            Ok(AttemptOutcome::Granted { token })
        }
        Ok(AttemptOutcome::Granted { .. }) => {
            round.lose().await;
            let message = "the nodes agreed only after the validity of the lease was spent";
            let (kind, executed) = (BackendErrorKind::Timeout, Executed::No);
            Err(BackendError::new(BACKEND_NAME, kind, executed, message))
        }
        other => {
            round.lose().await;
            other
        }
    }
}

/// One round of attempts. If it is dropped before it is won, it gives everything back.
struct AttemptRound<'a> {
    members: &'a Arc<Members>,
    attempt: &'a AcquireAttempt,
    claim: Arc<Claim>,
    tally: Tally,
    /// The smallest token to ask for, and the proposal behind it. Without a proposal, the tokens
    /// tell nothing about the clocks.
    floor: Option<FencingToken>,
    proposal: Option<Proposal>,
    /// The nodes that failed to answer the last time. All false if they are a majority, because
    /// then their votes are needed.
    silent: Vec<bool>,
    over: bool,
}

impl<'a> AttemptRound<'a> {
    fn new(members: &'a Arc<Members>, attempt: &'a AcquireAttempt, claim: Arc<Claim>) -> Self {
        let tokens = attempt.target.kind().has_tokens();
        // A repeated attempt with a higher floor does not reuse its old token.
        let before = claim
            .token()
            .filter(|token| attempt.floor.is_none_or(|floor| *token >= floor));
        // A node that may already hold it keeps its token. All others get the same one.
        let known = attempt.floor.max(claim.token());
        let fresh = tokens && claim.is_untouched();
        let proposal = fresh.then(|| members.proposals.next());
        let floor = known.max(proposal.and_then(Proposal::token));
        // If the caller asks for more, the tokens tell nothing about the clocks.
        let proposal = proposal.filter(|proposal| proposal.token() >= known);
        let tally = Tally::new(members.nodes.len(), tokens, before);
        let mut silent: Vec<_> = members.nodes.iter().map(|node| node.is_silent()).collect();
        if silent.iter().filter(|silent| **silent).count() >= members.majority() {
            silent.fill(false);
        }
        Self {
            members,
            attempt,
            claim,
            tally,
            floor,
            proposal,
            silent,
            over: false,
        }
    }

    async fn run(&mut self) -> Result<AttemptOutcome, BackendError> {
        let begun = Instant::now();
        let mut heard = begun;
        // The round does not wait for late answers, but counts them: the fan continues in the
        // background.
        let mut fan = FanOut::new(self.members);
        for node in 0..self.members.nodes.len() {
            fan.push(self.ask(node, self.floor));
        }
        loop {
            let verdict = self.tally.verdict();
            if let Some(tokens) = self.tally.first_tokens.take()
                && let Some(proposal) = self.proposal
            {
                self.members.proposals.learn(proposal, &tokens);
            }
            match verdict {
                Verdict::Open => {}
                Verdict::WriteBack(floor, nodes) => {
                    for node in nodes {
                        fan.push(self.ask(node, Some(floor)));
                    }
                }
                Verdict::Granted(token) => return Ok(AttemptOutcome::Granted { token }),
                Verdict::Busy(remaining) => return Ok(AttemptOutcome::Busy { remaining }),
                Verdict::NoQuorum => return Err(self.no_quorum()),
            }
            match fan.next(self.patience(begun, heard)).await {
                Some((node, answer)) => self.tally.put(node, answer),
                None => return Err(self.no_quorum()),
            }
            heard = Instant::now();
        }
    }

    /// How long to wait for the next answer. If only silent nodes are missing, they get as long
    /// again as the others took. Otherwise a node that hangs would delay every undecided round by
    /// its timeout.
    fn patience(&self, begun: Instant, heard: Instant) -> Instant {
        let expected = |node: &usize| self.tally.awaits(*node) && !self.silent[*node];
        if (0..self.silent.len()).any(|node| expected(&node)) {
            return self.attempt.deadline;
        }
        let as_long_again = heard + heard.saturating_duration_since(begun) + SPARE_TIME;
        self.attempt.deadline.min(as_long_again)
    }

    /// One attempt on one node. It may outlive the round.
    fn ask(
        &self,
        node: usize,
        floor: Option<FencingToken>,
    ) -> impl Future<Output = (usize, Answer)> + Send + 'static {
        let (members, claim) = (Arc::clone(self.members), Arc::clone(&self.claim));
        let attempt = AcquireAttempt {
            floor,
            place: None,
            recall: false,
            ..self.attempt.clone()
        };
        async move {
            let answer = ask(&members, &claim, node, &attempt).await;
            (node, answer)
        }
    }

    fn no_quorum(&self) -> BackendError {
        let abstentions = self.tally.votes.iter().filter_map(|vote| match vote {
            Vote::Abstained(abstention) => Some(abstention),
            _ => None,
        });
        let nodes = self.members.nodes.len();
        if let Some(error) = other_kind(&self.attempt.target, nodes, abstentions) {
            return error;
        }
        let labels = self.members.nodes.iter().map(|node| &node.label);
        let (what, needed) = ("the lock", self.tally.majority);
        let error = no_quorum(what, needed, Executed::No, labels.zip(self.tally.told()));
        match self.tally.votes_in() {
            Some(left) => error.with_ready_in(left),
            None => error,
        }
    }

    fn won(mut self, token: Option<FencingToken>) {
        self.claim.granted(token, self.attempt.token_retention);
        self.claim.kept_for(self.attempt.lease);
        self.over = true;
    }

    /// Gives back what was taken. Waits for nodes that are known to answer, so that this owner's
    /// next round does not run into its own remains. The others are cleaned in the background.
    async fn lose(mut self) {
        self.over = true;
        self.members.give_up(&self.claim);
        let share = self.members.share_of(self.attempt.lease);
        let deadline = self.attempt.deadline.min(Instant::now() + share);
        for (node, vote) in self.tally.votes.iter().enumerate() {
            if matches!(vote, Vote::Granted(_)) {
                self.claim.clean(node, deadline).await;
            }
        }
    }
}

impl Drop for AttemptRound<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.members.give_up(&self.claim);
        }
    }
}

/// One attempt on one node, recorded in the claim. It ends with its own deadline or its share of
/// the lease.
pub(super) async fn ask(
    members: &Members,
    claim: &Arc<Claim>,
    node: usize,
    attempt: &AcquireAttempt,
) -> Answer {
    let closed = || {
        Abstention::not_asked(
            "not asked, because an earlier attempt of this owner is not surely given back",
        )
    };
    let share = members.share_of(attempt.lease);
    let soon = attempt.deadline.min(Instant::now() + share);
    if !claim.clean(node, soon).await {
        return Err(closed());
    }
    let mut sent = claim.begin(node).ok_or_else(closed)?;
    let voter = &members.nodes[node];
    let call = |deadline| {
        // A server refuses it after its deadline, as far as the server's clock is known here. That
        // is off by no more than the time of a call.
        sent.leaves(deadline + voter.backend.info().call_timeout);
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
