//! Extends leases on a majority of the nodes, and restores locks on nodes that lost them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use super::abstention::{Abstention, no_quorum};
use super::attempt;
use super::claim::Claim;
use super::fan_out::FanOut;
use super::members::Members;
use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendError, Executed, ExtendOutcome, ExtendRequest,
};

type NodeAnswers = Vec<(usize, Result<ExtendOutcome, Abstention>)>;

/// Extends several locks. Each counts as extended when a majority says so before the deadline.
///
/// The caller does not wait for the remaining nodes, but their answers still count. Otherwise the
/// slowest node would never get back a lock that it lost.
pub(super) async fn extend(
    members: &Arc<Members>,
    batch: &[ExtendRequest],
    deadline: Instant,
) -> Vec<Result<ExtendOutcome, BackendError>> {
    let mut round = ExtendRound::begin(members, batch, deadline);
    while !round.is_decided() && round.hear().await {}
    let outcomes = round.outcomes();
    if !round.fan.is_empty() {
        members.background(async move { while round.hear().await {} });
    }
    outcomes
}

/// One round of extensions under way.
struct ExtendRound {
    members: Arc<Members>,
    deadline: Instant,
    locks: Vec<Ballot>,
    fan: FanOut<(usize, NodeAnswers)>,
}

impl ExtendRound {
    fn begin(members: &Arc<Members>, batch: &[ExtendRequest], deadline: Instant) -> Self {
        let open = |request| Ballot::open(members, request, deadline);
        let locks: Vec<Ballot> = batch.iter().map(open).collect();
        let mut fan = FanOut::new(members);
        for node in 0..members.nodes.len() {
            for requests in by_shard(members, node, batch, &locks) {
                fan.push(ask(Arc::clone(members), node, requests, deadline));
            }
        }
        Self {
            members: Arc::clone(members),
            deadline,
            locks,
            fan,
        }
    }

    fn is_decided(&self) -> bool {
        self.locks.iter().all(Ballot::is_decided)
    }

    /// Counts the next answer, and restores locks on nodes that lost them. False if there are no
    /// more answers.
    async fn hear(&mut self) -> bool {
        let Some((node, answers)) = self.fan.next(self.deadline).await else {
            return false;
        };
        for (index, answer) in answers {
            let lock = &mut self.locks[index];
            lock.votes[node] = match answer {
                Ok(outcome) => ExtendVote::Said(outcome),
                Err(abstention) => ExtendVote::Abstained(abstention),
            };
            for node in lock.put_back_now() {
                let again = put_back(&self.members, lock, (node, index), self.deadline);
                self.fan.push(again);
            }
        }
        true
    }

    fn outcomes(&mut self) -> Vec<Result<ExtendOutcome, BackendError>> {
        let locks = self.locks.iter_mut();
        locks.map(|lock| lock.outcome(&self.members)).collect()
    }
}

/// The requests that can go to one node together. A node may be a cluster with shards of its own.
fn by_shard(
    members: &Members,
    node: usize,
    batch: &[ExtendRequest],
    locks: &[Ballot],
) -> impl Iterator<Item = Vec<(usize, ExtendRequest)>> + use<> {
    let mut shards: BTreeMap<u32, Vec<(usize, ExtendRequest)>> = BTreeMap::new();
    let open = batch.iter().enumerate().zip(locks);
    for ((index, request), _) in open.filter(|(_, lock)| lock.refused.is_none()) {
        let shard = members.nodes[node].backend.shard(&request.target);
        shards
            .entry(shard)
            .or_default()
            .push((index, request.clone()));
    }
    shards.into_values()
}

async fn ask(
    members: Arc<Members>,
    node: usize,
    requests: Vec<(usize, ExtendRequest)>,
    deadline: Instant,
) -> (usize, NodeAnswers) {
    let voter = &members.nodes[node];
    let shortest = requests.iter().map(|(_, request)| request.lease).min();
    let share = members.share_of(shortest.unwrap_or_default());
    let (indexes, batch): (Vec<usize>, Vec<ExtendRequest>) = requests.into_iter().unzip();
    let call = |deadline| {
        let (backend, batch) = (Arc::clone(&voter.backend), batch);
        async move { Ok(backend.extend(&batch, deadline).await) }
    };
    let answers = match voter.vote(deadline, share, call).await {
        Ok(answers) => {
            if answers.iter().any(Result::is_err) {
                voter.suspect();
            }
            let mut answers = answers.into_iter().map(|answer| Ok(answer?));
            let missing = || Err(Abstention::void("it answered for too few locks"));
            indexes
                .into_iter()
                .map(|index| (index, answers.next().unwrap_or_else(missing)))
                .collect()
        }
        Err(abstention) => indexes
            .into_iter()
            .map(|index| (index, Err(abstention.clone())))
            .collect(),
    };
    (node, answers)
}

/// Takes the lock again on a node that lost it, for the same owner and with the same token, with
/// the requested retention.
fn put_back(
    members: &Arc<Members>,
    lock: &Ballot,
    (node, index): (usize, usize),
    deadline: Instant,
) -> impl Future<Output = (usize, NodeAnswers)> + Send + 'static {
    let (members, claim) = (Arc::clone(members), Arc::clone(&lock.claim));
    let request = &lock.request;
    let (target, owner) = (request.target.clone(), request.owner.clone());
    let attempt = AcquireAttempt {
        permits: request.permits,
        floor: claim.token(),
        token_retention: claim.retention(),
        ..AcquireAttempt::new(target, owner, request.lease, deadline)
    };
    async move {
        let answer = match attempt::ask(&members, &claim, node, &attempt).await {
            Ok(AttemptOutcome::Granted { .. }) => {
                tracing::debug!(lock = %claim.target, node = %members.nodes[node].label, "put back");
                Ok(ExtendOutcome::Extended)
            }
            Ok(_) => Ok(ExtendOutcome::TakenOver),
            Err(abstention) => Err(abstention),
        };
        (node, vec![(index, answer)])
    }
}

/// The answer of one node about one lock.
#[derive(Debug, Clone)]
enum ExtendVote {
    Pending,
    Said(ExtendOutcome),
    Abstained(Abstention),
}

impl fmt::Display for ExtendVote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("no answer in time"),
            Self::Said(ExtendOutcome::Extended) => f.write_str("extended"),
            Self::Said(ExtendOutcome::Missing) => f.write_str("not held there"),
            Self::Said(ExtendOutcome::TakenOver) => f.write_str("held by somebody else"),
            Self::Abstained(abstention) => abstention.fmt(f),
        }
    }
}

/// The votes about one lock.
struct Ballot {
    request: ExtendRequest,
    claim: Arc<Claim>,
    votes: Vec<ExtendVote>,
    majority: usize,
    refused: Option<BackendError>,
}

impl Ballot {
    fn open(members: &Arc<Members>, request: &ExtendRequest, deadline: Instant) -> Self {
        let refused = members
            .ready_before(deadline)
            .and_then(|()| super::supported(request.target.kind()))
            .and_then(|()| members.check_lease(request.lease));
        let nodes = members.nodes.len();
        let (target, owner) = (&request.target, &request.owner);
        let claim = members.ledger.adopt(target, owner, (nodes, request.lease));
        claim.kept_for(request.lease);
        Self {
            request: request.clone(),
            claim,
            votes: vec![ExtendVote::Pending; nodes],
            majority: members.majority(),
            refused: refused.err(),
        }
    }

    fn count(&self, outcome: ExtendOutcome) -> usize {
        let is = |vote: &&ExtendVote| matches!(vote, ExtendVote::Said(said) if *said == outcome);
        self.votes.iter().filter(is).count()
    }

    fn is_decided(&self) -> bool {
        self.refused.is_some() || self.count(ExtendOutcome::Extended) >= self.majority
    }

    /// The nodes that lost the lock and may get it back: only while it is wanted, some node still
    /// has it, and it is certain that no majority has lost it. A lock unknown to a majority was
    /// released, evicted or taken over, and must stay so.
    fn put_back_now(&mut self) -> Vec<usize> {
        let pending = self
            .votes
            .iter()
            .filter(|vote| matches!(vote, ExtendVote::Pending));
        let may_be_gone = self.gone() + pending.count();
        let has = self.count(ExtendOutcome::Extended) > 0;
        if !has || may_be_gone >= self.majority || !self.claim.is_wanted() {
            return Vec::new();
        }
        let lost =
            |node: &usize| matches!(self.votes[*node], ExtendVote::Said(ExtendOutcome::Missing));
        let nodes: Vec<usize> = (0..self.votes.len()).filter(lost).collect();
        for node in &nodes {
            self.votes[*node] = ExtendVote::Pending;
        }
        nodes
    }

    fn gone(&self) -> usize {
        self.count(ExtendOutcome::Missing) + self.count(ExtendOutcome::TakenOver)
    }

    /// Whether another owner may have a majority, judging by the answers so far. A single node may
    /// only be late to run an earlier holder's release in the background.
    fn may_be_taken_over(&self) -> bool {
        let by_another = self.count(ExtendOutcome::TakenOver);
        let unknown = self.votes.len() - self.gone() - self.count(ExtendOutcome::Extended);
        by_another > 0 && by_another + unknown >= self.majority
    }

    fn outcome(&mut self, members: &Members) -> Result<ExtendOutcome, BackendError> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        if self.count(ExtendOutcome::Extended) >= self.majority {
            return Ok(ExtendOutcome::Extended);
        }
        // A majority does not have it. That is certain, and no later answer can change it.
        if self.gone() >= self.majority {
            return Ok(if self.may_be_taken_over() {
                ExtendOutcome::TakenOver
            } else {
                ExtendOutcome::Missing
            });
        }
        let labels = members.nodes.iter().map(|node| &node.label);
        let (what, needed) = ("the extension", self.majority);
        let executed = Executed::Maybe;
        Err(no_quorum(what, needed, executed, labels.zip(&self.votes)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::Ledger;
    use super::*;
    use locktopus_contract::{LockKind, LockName, LockTarget, MutexProfile, OwnerId};
    use std::time::Duration;

    /// A ballot with the answers of five nodes: extended, missing, taken over, abstained, or no
    /// answer yet.
    fn ballot(said: [char; 5]) -> Ballot {
        let kind = LockKind::Mutex(Arc::new(MutexProfile::default()));
        let target = LockTarget::new(LockName::new("n").unwrap(), kind);
        let (owner, lease) = (OwnerId::from_bytes(*b"somebody"), Duration::from_secs(1));
        let vote = |said| match said {
            'e' => ExtendVote::Said(ExtendOutcome::Extended),
            'm' => ExtendVote::Said(ExtendOutcome::Missing),
            't' => ExtendVote::Said(ExtendOutcome::TakenOver),
            'a' => ExtendVote::Abstained(Abstention::void("down")),
            _ => ExtendVote::Pending,
        };
        Ballot {
            claim: Ledger::default().adopt(&target, &owner, (5, lease)),
            request: ExtendRequest::new(target, owner, lease),
            votes: said.map(vote).to_vec(),
            majority: 3,
            refused: None,
        }
    }

    #[test]
    fn somebody_else_may_have_it_who_may_have_a_majority() {
        for (said, may_be) in [
            ("tttmm", true),
            ("ttmee", false),
            ("tmm..", true),
            ("tmm.e", false),
            ("tmmme", false),
            ("m....", false),
            ("t....", true),
        ] {
            let said: Vec<char> = said.chars().collect();
            let ballot = ballot(said.clone().try_into().unwrap());
            assert_eq!(ballot.may_be_taken_over(), may_be, "{said:?}");
        }
    }

    /// While a majority may have lost it, no node gets it back.
    #[test]
    fn a_lock_is_put_back_where_a_majority_surely_has_it() {
        for (said, nodes) in [
            ("mm.ee", vec![]),
            ("mmeee", vec![0, 1]),
            ("m.eee", vec![0]),
            ("mteee", vec![0]),
            ("m....", vec![]),
            ("mmmee", vec![]),
            ("aaamm", vec![]),
        ] {
            let said: Vec<char> = said.chars().collect();
            let mut ballot = ballot(said.clone().try_into().unwrap());
            assert_eq!(ballot.put_back_now(), nodes, "{said:?}");
            assert_eq!(ballot.put_back_now(), [0; 0], "it is under way");
        }
        let mut released = ballot(['m', 'm', 'e', 'e', 'e']);
        released.claim.give_up();
        assert_eq!(released.put_back_now(), [0; 0]);
    }
}
