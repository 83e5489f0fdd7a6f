//! A majority's view: the state of a lock, the list of locks, and forced releases.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::abstention::{Abstention, no_quorum, other_kind};
use super::fan_out::FanOut;
use super::members::Members;
use super::node::Node;
use locktopus_contract::{
    BackendError, Eviction, Executed, FencingToken, HolderState, LockPage, LockState, LockTarget,
    OwnerId, ScanCursor,
};

/// One node's answer about a lock.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NodeView {
    /// The node.
    pub label: String,
    /// The lock's state on this node, or why the node gave no answer.
    pub state: Result<LockState, String>,
}

type Answers<T> = Vec<Result<T, Abstention>>;

/// Asks all nodes and waits for all answers, but not past the deadline.
async fn ask_all<T, F>(
    members: &Arc<Members>,
    deadline: Instant,
    call: impl Fn(Arc<Node>, Instant) -> F,
) -> Answers<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, BackendError>> + Send + 'static,
{
    let mut fan = FanOut::new(members);
    let node_deadline = deadline.min(Instant::now() + members.node_timeout);
    for (index, node) in members.nodes.iter().enumerate() {
        let (node, answer) = (Arc::clone(node), call(Arc::clone(node), node_deadline));
        fan.push(async move { (index, node.call(node_deadline, answer).await) });
    }
    let silent = || Err(Abstention::void("no answer in time"));
    let mut answers: Answers<T> = members.nodes.iter().map(|_| silent()).collect();
    while let Some((index, answer)) = fan.next(deadline).await {
        answers[index] = answer;
    }
    answers
}

/// The answers, if there are enough of them.
fn majority<T>(
    members: &Members,
    what: &str,
    executed: Executed,
    target: Option<&LockTarget>,
    answers: Answers<T>,
) -> Result<Vec<T>, BackendError> {
    if answers.iter().flatten().count() >= members.majority() {
        return Ok(answers.into_iter().flatten().collect());
    }
    let abstentions = answers.iter().filter_map(|answer| answer.as_ref().err());
    let other = target.and_then(|target| other_kind(target, members.nodes.len(), abstentions));
    if let Some(error) = other {
        return Err(error);
    }
    let did = |answer: &Result<T, Abstention>| match answer {
        Ok(_) => "answered".to_owned(),
        Err(abstention) => abstention.to_string(),
    };
    let labels = members.nodes.iter().map(|node| &node.label);
    let told = labels.zip(answers.iter().map(did));
    Err(no_quorum(what, members.majority(), executed, told))
}

/// The state in a majority's view.
pub(super) async fn inspect(
    members: &Arc<Members>,
    target: &LockTarget,
    deadline: Instant,
) -> Result<LockState, BackendError> {
    members.ready_before(deadline)?;
    let answers = states(members, target, deadline).await;
    let states = majority(
        members,
        "the state of a lock",
        Executed::No,
        Some(target),
        answers,
    )?;
    let mut votes: HashMap<OwnerId, Vec<HolderState>> = HashMap::new();
    for holder in states.iter().flat_map(|state| &state.holders) {
        let votes = votes.entry(holder.owner.clone()).or_default();
        votes.push(holder.clone());
    }
    let tokens = states.iter().map(|state| state.last_token).collect();
    let last_token = last_token_of(tokens, members.nodes.len());
    let holders = votes
        .into_values()
        .filter(|votes| votes.len() >= members.majority())
        .filter_map(|votes| seen_by_majority(votes, members.majority()));
    let mut state = LockState::default();
    state.holders = holders.collect();
    state.last_token = last_token;
    Ok(state)
}

/// The holder, with the remaining time that a majority agrees on.
fn seen_by_majority(mut votes: Vec<HolderState>, majority: usize) -> Option<HolderState> {
    let left = |holder: &HolderState| holder.remaining.unwrap_or(Duration::MAX);
    votes.sort_unstable_by_key(|holder| std::cmp::Reverse(left(holder)));
    // A majority granted it no earlier than the last node of that majority did.
    let held_for = votes.iter().filter_map(|holder| holder.held_for).min();
    let holder = votes.into_iter().nth(majority - 1)?;
    Some(holder.held_for(held_for))
}

/// The last token that may have been given out, from the last tokens of some nodes.
///
/// A majority knows every token given out, so all nodes that answered know it, except a minority.
/// Single nodes may be ahead, with their own grants from attempts that failed or came too late.
fn last_token_of(mut tokens: Vec<Option<FencingToken>>, nodes: usize) -> Option<FencingToken> {
    let minority = (nodes - 1) / 2;
    tokens.sort_unstable_by(|a, b| b.cmp(a));
    let known_to = tokens.len().saturating_sub(minority);
    tokens.get(known_to.saturating_sub(1)).copied().flatten()
}

/// The answers of all nodes.
pub(super) async fn nodes(
    members: &Arc<Members>,
    target: &LockTarget,
    deadline: Instant,
) -> Result<Vec<NodeView>, BackendError> {
    members.ready()?;
    let answers = states(members, target, deadline).await;
    let view = |(node, state): (&Arc<Node>, Result<LockState, Abstention>)| NodeView {
        label: node.label.to_string(),
        state: state.map_err(|abstention| abstention.to_string()),
    };
    Ok(members.nodes.iter().zip(answers).map(view).collect())
}

async fn states(
    members: &Arc<Members>,
    target: &LockTarget,
    deadline: Instant,
) -> Answers<LockState> {
    ask_all(members, deadline, |node, deadline| {
        let target = target.clone();
        async move { node.backend.inspect(&target, deadline).await }
    })
    .await
}

/// Ends every hold on every node that answers.
pub(super) async fn evict(
    members: &Arc<Members>,
    target: &LockTarget,
    deadline: Instant,
) -> Result<Eviction, BackendError> {
    members.ready_before(deadline)?;
    let answers = ask_all(members, deadline, |node, deadline| {
        let target = target.clone();
        async move { node.backend.evict(&target, deadline).await }
    })
    .await;
    let evictions = majority(
        members,
        "a forced release",
        Executed::Maybe,
        Some(target),
        answers,
    )?;
    let mut evicted: Vec<OwnerId> = Vec::new();
    for owner in evictions.iter().flat_map(|eviction| &eviction.evicted) {
        if !evicted.contains(owner) {
            evicted.push(owner.clone());
        }
    }
    let fences = evictions.iter().map(|eviction| eviction.fence).collect();
    let fence = fence_of_majority(fences, members.majority());
    Ok(Eviction::new(evicted, fence))
}

/// The largest token that a majority will not give out again. Any later grant includes one node of
/// that majority.
fn fence_of_majority(
    mut fences: Vec<Option<FencingToken>>,
    majority: usize,
) -> Option<FencingToken> {
    fences.sort_unstable_by(|a, b| b.cmp(a));
    fences.get(majority - 1).copied().flatten()
}

/// Lists the locks that any node of a majority knows, a page of each node at a time.
pub(super) async fn scan(
    members: &Arc<Members>,
    prefix: &str,
    cursor: Option<ScanCursor>,
    deadline: Instant,
) -> Result<LockPage, BackendError> {
    members.ready_before(deadline)?;
    let at = match &cursor {
        None => vec![NodeCursor::Start; members.nodes.len()],
        Some(cursor) => NodeCursor::parse(&cursor.0, members.nodes.len()).ok_or_else(|| {
            let kind = locktopus_contract::BackendErrorKind::Refused;
            let message = "this cursor was not made by this quorum";
            BackendError::new(super::abstention::BACKEND_NAME, kind, Executed::No, message)
        })?,
    };
    let mut answers = ask_all(members, deadline, |node, deadline| {
        let (prefix, progress) = (prefix.to_owned(), at[node.index].clone());
        async move {
            match progress {
                NodeCursor::Start => node.backend.scan(&prefix, None, deadline).await,
                NodeCursor::At(cursor) => {
                    let cursor = Some(ScanCursor(cursor));
                    node.backend.scan(&prefix, cursor, deadline).await
                }
                NodeCursor::Done | NodeCursor::Failed => Ok(LockPage::default()),
            }
        }
    })
    .await;
    let mut next = Vec::with_capacity(answers.len());
    for (answer, progress) in answers.iter_mut().zip(at) {
        next.push(match (&*answer, progress) {
            (_, NodeCursor::Failed) => NodeCursor::Failed,
            (Err(_), _) => NodeCursor::Failed,
            (Ok(page), _) => page
                .next
                .clone()
                .map_or(NodeCursor::Done, |c| NodeCursor::At(c.0)),
        });
        // Its earlier pages do not help: no other node may have listed the locks that it did not.
        if matches!(next.last(), Some(NodeCursor::Failed)) && answer.is_ok() {
            *answer = Err(Abstention::not_asked("it failed at an earlier page"));
        }
    }
    let pages = majority(members, "a list of locks", Executed::No, None, answers)?;
    let mut locks: Vec<_> = pages.into_iter().flat_map(|page| page.locks).collect();
    locks.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    locks.dedup();
    let more = next.iter().any(|p| matches!(p, NodeCursor::At(_)));
    let cursor = more.then(|| ScanCursor(next.iter().map(NodeCursor::to_string).collect()));
    Ok(LockPage::new(locks, cursor))
}

/// The progress of one node's list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NodeCursor {
    Start,
    At(String),
    Done,
    Failed,
}

/// A letter, followed by the length and text of the node's own cursor.
impl fmt::Display for NodeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("s"),
            Self::At(cursor) => write!(f, "a{}:{cursor}", cursor.len()),
            Self::Done => f.write_str("d"),
            Self::Failed => f.write_str("f"),
        }
    }
}

impl NodeCursor {
    fn parse(mut text: &str, nodes: usize) -> Option<Vec<Self>> {
        let mut all = Vec::with_capacity(nodes);
        for _ in 0..nodes {
            let (letter, rest) = text.split_at_checked(1)?;
            text = rest;
            all.push(match letter {
                "s" => Self::Start,
                "d" => Self::Done,
                "f" => Self::Failed,
                "a" => {
                    let (length, rest) = rest.split_once(':')?;
                    let (cursor, rest) = rest.split_at_checked(length.parse().ok()?)?;
                    text = rest;
                    Self::At(cursor.to_owned())
                }
                _ => return None,
            });
        }
        text.is_empty().then_some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_of_nodes_survive_being_joined() {
        let all = vec![
            NodeCursor::At("12:34".to_owned()),
            NodeCursor::Done,
            NodeCursor::Failed,
            NodeCursor::Start,
            NodeCursor::At(String::new()),
        ];
        let text: String = all.iter().map(NodeCursor::to_string).collect();
        assert_eq!(NodeCursor::parse(&text, 5), Some(all));
        for bad in ["", "x", "a9:short", "aa:", "dd", "dddddd"] {
            assert_eq!(NodeCursor::parse(bad, 5), None, "{bad:?}");
        }
    }

    #[test]
    fn the_last_token_is_not_that_of_a_node_alone() {
        let token = FencingToken::new;
        let late = [token(9), token(7), token(8), token(7), token(7)];
        assert_eq!(last_token_of(late.to_vec(), 5), token(7));
        assert_eq!(last_token_of(vec![token(9), None, None], 3), None);
        // Two silent nodes may be among the three that know it.
        let few = vec![token(6), token(7), token(5)];
        assert_eq!(last_token_of(few, 5), token(7));
    }

    #[test]
    fn the_fence_is_one_that_a_majority_is_past() {
        let token = FencingToken::new;
        let fences = vec![token(9), token(3), None, token(7), token(8)];
        assert_eq!(fence_of_majority(fences, 3), token(7));
        assert_eq!(fence_of_majority(vec![token(9), None, None], 2), None);
    }
}
