//! Which token a round proposes to the nodes, so that all of them answer with the same one and
//! nothing is left to be written back.
//!
//! A proposal is this machine's clock and some slack: for the way to the nodes, and for clocks that
//! are ahead of this one. It decides nothing. A node that is further ahead answers with a larger
//! token, and that one is written back.

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{FencingToken, lock};

/// The slack to begin with, and the least there is.
const LEAST: Micros = 1_000;
/// The most slack; how far this clock and those of the nodes may be apart; and so, how far ahead of
/// the nodes' clocks proposals may put their tokens.
const FARTHEST: Micros = 1_000_000;
/// Slack that was enough so many times in a row shrinks by such a part. It is just what was needed
/// last, so the next round may disagree: one of so many.
const ENOUGH: u32 = 64;
const DECAY: Micros = 16;
/// After how long a round proposes nothing, to see again where the nodes' clocks are.
const LOOK_AGAIN: Duration = Duration::from_secs(10 * 60);

/// Microseconds since 1970, or a difference of them. The unit of tokens.
type Micros = i64;

/// What was learnt from the rounds of this quorum so far.
#[derive(Debug)]
pub(super) struct Proposals {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    slack: Micros,
    /// How many rounds agreed since it changed.
    agreed: u32,
    /// This machine's clock when it was read last, from where the monotonic clock counts on: a
    /// clock that is set must not move what is proposed before the nodes are looked at again.
    read: Option<(Micros, BootInstant)>,
    /// How far the nodes' clocks were ahead of it (or, negative, behind).
    ahead: Option<Micros>,
}

/// What a round knows of its own tokens beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Proposal {
    sent: Micros,
    /// `None`: nothing was proposed, and the tokens show the clocks of the nodes.
    token: Option<Micros>,
}

impl Default for Proposals {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                slack: LEAST,
                agreed: 0,
                read: None,
                ahead: None,
            }),
        }
    }
}

impl Proposal {
    pub(super) fn token(self) -> Option<FencingToken> {
        FencingToken::new(u64::try_from(self.token?).ok()?)
    }
}

impl Proposals {
    /// What to propose to nodes that are about to be asked.
    pub(super) fn next(&self) -> Proposal {
        lock(&self.state).next(clock::now(), wall)
    }

    /// Takes note of the tokens with which the first majority answered.
    pub(super) fn learn(&self, proposal: Proposal, tokens: &[FencingToken]) {
        let tokens = tokens.iter().filter_map(|t| Micros::try_from(t.get()).ok());
        lock(&self.state).learn(proposal, tokens.collect(), clock::now());
    }
}

fn wall() -> Micros {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    micros(since)
}

fn micros(time: Duration) -> Micros {
    Micros::try_from(time.as_micros()).unwrap_or(Micros::MAX / 4)
}

impl State {
    fn next(&mut self, now: BootInstant, wall: impl Fn() -> Micros) -> Proposal {
        let fresh = |(_, at): &(Micros, BootInstant)| now.since(*at) < LOOK_AGAIN;
        let near = self.ahead.filter(|ahead| ahead.abs() <= FARTHEST);
        let (Some(ahead), Some((wall, at))) = (near, self.read.filter(fresh)) else {
            // Where the nodes are is not known, or too far from here: this round tells.
            let sent = wall();
            (self.read, self.ahead) = (Some((sent, now)), None);
            return Proposal { sent, token: None };
        };
        let sent = wall + micros(now.since(at));
        let token = sent + self.slack.min(ahead + FARTHEST);
        let token = Some(token);
        Proposal { sent, token }
    }

    fn learn(&mut self, proposal: Proposal, mut tokens: Vec<Micros>, now: BootInstant) {
        tokens.sort_unstable();
        let (Some(least), Some(largest)) = (tokens.first(), tokens.last()) else {
            return;
        };
        match proposal.token {
            Some(_) if least == largest => {
                self.agreed += 1;
                if self.agreed == ENOUGH {
                    self.slack = (self.slack - self.slack / DECAY).max(LEAST);
                    self.agreed = 0;
                }
            }
            Some(proposed) => {
                // Bounded by what was missing, so that clients do not drive one another up: none
                // has more slack than some client needed. What no slack may reach is left alone.
                let needed = largest - proposal.sent;
                if largest > &proposed && needed <= FARTHEST {
                    self.slack = needed.min(self.slack * 2).max(self.slack);
                    self.agreed = 0;
                }
            }
            // Clocks are never equal to the microsecond; equal tokens were counted from what others
            // proposed.
            None if tokens.windows(2).any(|two| two[0] == two[1]) => {}
            None => {
                let Some((wall, at)) = self.read else {
                    return;
                };
                let needed = largest - proposal.sent;
                if needed <= FARTHEST {
                    self.slack = self.slack.max(needed);
                }
                let here = wall + micros(now.since(at));
                self.ahead = Some(tokens[(tokens.len() - 1) / 2] - here);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Micros = 1_000;
    const NOON: Micros = 1_700_000_000_000_000;

    fn state() -> State {
        let Proposals { state } = Proposals::default();
        state.into_inner().unwrap()
    }

    /// A client that has looked where the nodes are, so far ahead of it.
    fn looked(state: &mut State, ahead: Micros) {
        let now = clock::now();
        let first = state.next(now, || NOON);
        assert_eq!((first.sent, first.token), (NOON, None));
        let tokens = vec![NOON + ahead + 1, NOON + ahead, NOON + ahead - 1];
        state.learn(first, tokens, now);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_round_looks_and_later_ones_propose_the_clock_and_some_slack() {
        let mut state = state();
        looked(&mut state, 0);
        tokio::time::advance(Duration::from_millis(5)).await;
        // The clock is not read again: what it was set to meanwhile does not matter.
        let proposal = state.next(clock::now(), || 0);
        assert_eq!(proposal.sent, NOON + 5 * MS);
        assert_eq!(proposal.token, Some(NOON + 6 * MS));
        tokio::time::advance(LOOK_AGAIN).await;
        assert_eq!(state.next(clock::now(), || NOON).token, None, "looks again");
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_round_shows_how_far_the_nodes_are_away() {
        let mut state = state();
        let first = state.next(clock::now(), || NOON);
        tokio::time::advance(Duration::from_millis(20)).await;
        let tokens = vec![NOON + 9 * MS, NOON + 12 * MS, NOON + 10 * MS];
        state.learn(first, tokens, clock::now());
        assert_eq!((state.slack, state.ahead), (12 * MS, Some(-10 * MS)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_far_from_those_of_the_nodes_proposes_nothing() {
        for (ahead, proposes) in [
            (-FARTHEST, true),
            (FARTHEST, true),
            (-FARTHEST - 1, false),
            (FARTHEST + 1, false),
            (-3_600_000 * MS, false),
        ] {
            let mut state = state();
            looked(&mut state, ahead);
            state.slack = FARTHEST;
            let proposal = state.next(clock::now(), || NOON);
            assert_eq!(proposal.token.is_some(), proposes, "{ahead}");
            let farthest = NOON + ahead + FARTHEST;
            assert!(proposal.token.is_none_or(|token| token <= farthest));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slack_grows_with_what_was_missing_and_shrinks_slowly() {
        let mut state = state();
        looked(&mut state, 0);
        let round = |state: &mut State, others: &dyn Fn(Proposal, Micros) -> Micros| {
            let proposal = state.next(clock::now(), || NOON);
            let token = proposal.token.unwrap();
            let tokens = vec![token, token, others(proposal, token)];
            state.learn(proposal, tokens, clock::now());
            state.slack
        };
        // One node is 5 ms ahead: twice as much, again, and then just what it takes.
        let five = |proposal: Proposal, token: Micros| token.max(proposal.sent + 5 * MS);
        let slack: Vec<_> = (0..68).map(|_| round(&mut state, &five)).collect();
        assert_eq!(slack[..4], [2 * MS, 4 * MS, 5 * MS, 5 * MS]);
        assert_eq!(slack[65..], [5 * MS, 5 * MS - 5 * MS / DECAY, 5 * MS]);
        // It is not in the way of a proposal, or further away than any slack.
        let before = state.slack;
        for others in [-1, FARTHEST + 1] {
            let slack = round(&mut state, &|proposal, _| proposal.sent + others);
            assert_eq!(slack, before);
        }
        for _ in 0..64 * 40 {
            round(&mut state, &|_, token| token);
        }
        assert_eq!(state.slack, LEAST);
    }

    /// Two clients that each see what the other proposed do not drive one another up.
    #[tokio::test(start_paused = true)]
    async fn the_slack_of_others_is_not_outdone() {
        let (mut one, mut two) = (state(), state());
        looked(&mut one, 0);
        looked(&mut two, 0);
        one.slack = 40 * MS;
        for _ in 0..100 {
            for [a, b] in [[0, 1], [1, 0]] {
                let both = [&mut one, &mut two];
                let theirs = both[b].next(clock::now(), || NOON).token.unwrap();
                let proposal = both[a].next(clock::now(), || NOON);
                let mine = proposal.token.unwrap();
                let tokens = vec![mine, mine, mine.max(theirs + 1)];
                both[a].learn(proposal, tokens, clock::now());
            }
        }
        assert!(one.slack <= 41 * MS && two.slack <= 41 * MS);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_that_were_counted_do_not_show_where_the_clocks_are() {
        let mut state = state();
        let first = state.next(clock::now(), || NOON);
        state.learn(first, vec![NOON + 9, NOON + 9, NOON + 4], clock::now());
        assert_eq!(state.next(clock::now(), || NOON).token, None);
    }

    /// For ten minutes.
    #[tokio::test(start_paused = true)]
    async fn where_the_nodes_are_is_known_for_so_long_and_no_longer() {
        let mut state = state();
        looked(&mut state, 0);
        tokio::time::advance(Duration::from_secs(600) - Duration::from_nanos(1)).await;
        assert!(state.next(clock::now(), || NOON).token.is_some());
        tokio::time::advance(Duration::from_nanos(1)).await;
        assert_eq!(state.next(clock::now(), || NOON).token, None);
        // Of two nodes the one that is less ahead counts.
        let proposal = state.next(clock::now(), || NOON);
        state.learn(proposal, vec![NOON + 12, NOON + 9], clock::now());
        assert_eq!(state.ahead, Some(9));
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_below_the_proposal_says_nothing_of_its_slack() {
        let mut state = state();
        looked(&mut state, 0);
        let proposal = state.next(clock::now(), || NOON);
        let token = proposal.token.unwrap();
        state.agreed = 5;
        state.learn(proposal, vec![token - 1, token, token], clock::now());
        assert_eq!((state.slack, state.agreed), (LEAST, 5));
    }

    #[test]
    fn no_time_is_so_long_that_it_could_not_be_added() {
        assert_eq!(micros(Duration::from_micros(7)), 7);
        assert_eq!(micros(Duration::MAX), Micros::MAX / 4);
    }
}
