//! Gives a lock back on every node.

use std::sync::Arc;

use tokio::time::Instant;

use super::abstention::{Abstention, no_quorum};
use super::fan_out::FanOut;
use super::members::Members;
use locktopus_contract::{BackendError, Executed, ReleaseOutcome, ReleaseRequest};

/// Releases on all nodes, and again in the background on silent ones until the lease has ended.
pub(super) async fn release(
    members: &Arc<Members>,
    request: &ReleaseRequest,
) -> Result<ReleaseOutcome, BackendError> {
    members.ready_before(request.deadline)?;
    let (target, owner) = (&request.target, &request.owner);
    let unknown = (members.nodes.len(), members.max_lease);
    let claim = members.ledger.adopt(target, owner, unknown);
    if let Some(linger) = &request.linger {
        claim.lingers(linger);
    }
    let mut fan = FanOut::new(members);
    for (node, responsible) in claim.give_up_everywhere().into_iter().enumerate() {
        let (members, claim) = (Arc::clone(members), Arc::clone(&claim));
        let deadline = request.deadline.min(Instant::now() + members.node_timeout);
        let request = ReleaseRequest {
            deadline,
            ..request.clone()
        };
        fan.push(async move {
            let voter = &members.nodes[node];
            let sent = responsible.then(|| claim.releasing(node));
            let answer = voter.call(deadline, voter.backend.release(&request)).await;
            if let Err(abstention) = &answer {
                claim.not_released(node, abstention);
            }
            if let Some(sent) = sent {
                let done = matches!(answer, Ok(outcome) if !claim.released(node, outcome, sent));
                if done {
                    members.ledger.tidy(&claim);
                } else {
                    members.clean_later(&claim, node);
                }
            }
            (node, answer)
        });
    }
    drop(claim);
    let mut tally = ReleaseTally::new(members.nodes.len());
    loop {
        if let Some(outcome) = tally.clear_majority() {
            return Ok(outcome);
        }
        match fan.next(request.deadline).await {
            Some((node, answer)) => tally.answers[node] = Some(answer),
            None => break,
        }
    }
    tally.last_word().ok_or_else(|| {
        let labels = members.nodes.iter().map(|node| &node.label);
        let (what, needed) = ("the release", members.majority());
        no_quorum(what, needed, Executed::Maybe, labels.zip(tally.told()))
    })
}

#[derive(Debug)]
struct ReleaseTally {
    answers: Vec<Option<Result<ReleaseOutcome, Abstention>>>,
    majority: usize,
}

impl ReleaseTally {
    fn new(nodes: usize) -> Self {
        Self {
            answers: (0..nodes).map(|_| None).collect(),
            majority: nodes / 2 + 1,
        }
    }

    fn count(&self, outcome: ReleaseOutcome) -> usize {
        let is = |answer: &&Option<_>| matches!(answer, Some(Ok(found)) if *found == outcome);
        self.answers.iter().filter(is).count()
    }

    /// The outcome, once a majority agrees on it.
    fn clear_majority(&self) -> Option<ReleaseOutcome> {
        [ReleaseOutcome::Released, ReleaseOutcome::NotHeld]
            .into_iter()
            .find(|outcome| self.count(*outcome) >= self.majority)
    }

    /// The outcome when no more answers will come. The lock was held unless a majority denies it.
    fn last_word(&self) -> Option<ReleaseOutcome> {
        let released = self.count(ReleaseOutcome::Released);
        let answered = released + self.count(ReleaseOutcome::NotHeld);
        (released > 0 && answered >= self.majority).then_some(ReleaseOutcome::Released)
    }

    fn told(&self) -> impl Iterator<Item = String> {
        self.answers.iter().map(|answer| match answer {
            Some(Ok(ReleaseOutcome::Released)) => "released".to_owned(),
            Some(Ok(ReleaseOutcome::NotHeld)) => "not held".to_owned(),
            Some(Err(abstention)) => abstention.to_string(),
            None => "no answer in time".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_decides_and_a_single_release_is_enough_when_nodes_are_silent() {
        use ReleaseOutcome::{NotHeld, Released};
        let tally = |answers: [Option<ReleaseOutcome>; 5]| {
            let mut tally = ReleaseTally::new(5);
            for (slot, answer) in tally.answers.iter_mut().zip(answers) {
                *slot = Some(answer.ok_or_else(|| Abstention::void("down")));
            }
            (tally.clear_majority(), tally.last_word())
        };
        let (y, n, down) = (Some(Released), Some(NotHeld), None);
        assert_eq!(tally([y, y, y, n, n]).0, y);
        assert_eq!(tally([n, n, n, y, y]).0, n);
        assert_eq!(tally([y, y, n, n, down]), (None, y));
        assert_eq!(tally([y, n, n, down, down]), (None, y));
        assert_eq!(tally([n, n, n, down, down]), (n, None));
        assert_eq!(tally([y, y, down, down, down]), (None, None));
        assert_eq!(tally([n, n, down, down, down]), (None, None));
    }

    #[test]
    fn it_is_told_what_each_node_said() {
        let mut tally = ReleaseTally::new(4);
        tally.answers[0] = Some(Ok(ReleaseOutcome::Released));
        tally.answers[1] = Some(Ok(ReleaseOutcome::NotHeld));
        tally.answers[2] = Some(Err(Abstention::void("down")));
        let told: Vec<_> = tally.told().collect();
        let down = Abstention::void("down").to_string();
        assert_eq!(told, ["released", "not held", &down, "no answer in time"]);
    }
}
