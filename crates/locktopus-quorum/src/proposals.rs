//! The token that a round proposes to the nodes. If all of them answer with it, nothing has to be
//! written back.
//!
//! A proposal is this machine's clock plus some slack, for the way to the nodes and for clocks that
//! are ahead of this one. It decides nothing. A node that is further ahead answers with a larger
//! token, and that one is written back.

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{FencingToken, lock};

/// The initial slack, and the minimum.
const MIN_SLACK: Micros = 1_000;
/// The maximum slack. Also the largest accepted difference between this clock and the nodes'
/// clocks, and so how far ahead of the nodes' clocks a proposal may put their tokens.
const MAX_DISTANCE: Micros = 1_000_000;
/// After this many sufficient rounds in a row, slack shrinks by one part in `DECAY_DIVISOR`. It is
/// exactly what was needed last, so the next round may disagree: one in this many.
const AGREED_BEFORE_DECAY: u32 = 64;
const DECAY_DIVISOR: Micros = 16;
/// After this long, a round proposes nothing, to measure the nodes' clocks again.
const REREAD_CLOCK_AFTER: Duration = Duration::from_secs(10 * 60);

/// Microseconds since 1970, or a difference of them. The unit of tokens.
type Micros = i64;

/// Measurements from this quorum's rounds so far.
#[derive(Debug)]
pub(super) struct Proposals {
    state: Mutex<ProposalState>,
}

#[derive(Debug)]
struct ProposalState {
    slack: Micros,
    /// How many rounds agreed since the slack changed.
    agreed: u32,
    /// The last reading of this machine's clock. The monotonic clock counts on from there: setting
    /// the clock must not move proposals before the nodes are measured again.
    read: Option<(Micros, BootInstant)>,
    /// How far the nodes' clocks were ahead of it (negative: behind).
    ahead: Option<Micros>,
}

/// A round's advance knowledge about its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Proposal {
    sent: Micros,
    /// `None`: nothing was proposed, so the tokens show the nodes' clocks.
    token: Option<Micros>,
}

impl Default for Proposals {
    fn default() -> Self {
        Self {
            state: Mutex::new(ProposalState {
                slack: MIN_SLACK,
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
    /// The next proposal to the nodes.
    pub(super) fn next(&self) -> Proposal {
        lock(&self.state).next(clock::now(), wall)
    }

    /// Learns from the tokens in the answers of the first majority.
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

impl ProposalState {
    fn next(&mut self, now: BootInstant, wall: impl Fn() -> Micros) -> Proposal {
        let fresh = |(_, at): &(Micros, BootInstant)| now.since(*at) < REREAD_CLOCK_AFTER;
        let near = self.ahead.filter(|ahead| ahead.abs() <= MAX_DISTANCE);
        let (Some(ahead), Some((wall, at))) = (near, self.read.filter(fresh)) else {
            // The nodes' clocks are unknown or too far from here. This round measures them.
            let sent = wall();
            (self.read, self.ahead) = (Some((sent, now)), None);
            return Proposal { sent, token: None };
        };
        let sent = wall + micros(now.since(at));
        let token = sent + self.slack.min(ahead + MAX_DISTANCE);
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
                if self.agreed == AGREED_BEFORE_DECAY {
                    self.slack = (self.slack - self.slack / DECAY_DIVISOR).max(MIN_SLACK);
                    self.agreed = 0;
                }
            }
            Some(proposed) => {
                // Limited to what was missing, so that clients do not drive each other up: none has
                // more slack than some client needed. If no slack is enough, leave it.
                let needed = largest - proposal.sent;
                if largest > &proposed && needed <= MAX_DISTANCE {
                    self.slack = needed.min(self.slack * 2).max(self.slack);
                    self.agreed = 0;
                }
            }
            // Clocks are never equal to the microsecond. Equal tokens were derived from other
            // clients' proposals.
            None if tokens.windows(2).any(|two| two[0] == two[1]) => {}
            None => {
                let Some((wall, at)) = self.read else {
                    return;
                };
                let needed = largest - proposal.sent;
                if needed <= MAX_DISTANCE {
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

    fn state() -> ProposalState {
        let Proposals { state } = Proposals::default();
        state.into_inner().unwrap()
    }

    /// A client that has measured the nodes' clocks, which are this far ahead of its own.
    fn looked(state: &mut ProposalState, ahead: Micros) {
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
        // The clock is not read again, so setting it in between does not matter.
        let proposal = state.next(clock::now(), || 0);
        assert_eq!(proposal.sent, NOON + 5 * MS);
        assert_eq!(proposal.token, Some(NOON + 6 * MS));
        tokio::time::advance(REREAD_CLOCK_AFTER).await;
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
            (-MAX_DISTANCE, true),
            (MAX_DISTANCE, true),
            (-MAX_DISTANCE - 1, false),
            (MAX_DISTANCE + 1, false),
            (-3_600_000 * MS, false),
        ] {
            let mut state = state();
            looked(&mut state, ahead);
            state.slack = MAX_DISTANCE;
            let proposal = state.next(clock::now(), || NOON);
            assert_eq!(proposal.token.is_some(), proposes, "{ahead}");
            let farthest = NOON + ahead + MAX_DISTANCE;
            assert!(proposal.token.is_none_or(|token| token <= farthest));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slack_grows_with_what_was_missing_and_shrinks_slowly() {
        let mut state = state();
        looked(&mut state, 0);
        let round = |state: &mut ProposalState, others: &dyn Fn(Proposal, Micros) -> Micros| {
            let proposal = state.next(clock::now(), || NOON);
            let token = proposal.token.unwrap();
            let tokens = vec![token, token, others(proposal, token)];
            state.learn(proposal, tokens, clock::now());
            state.slack
        };
        // One node is 5 ms ahead. The slack doubles, doubles again, and then is exactly enough.
        let five = |proposal: Proposal, token: Micros| token.max(proposal.sent + 5 * MS);
        let slack: Vec<_> = (0..68).map(|_| round(&mut state, &five)).collect();
        assert_eq!(slack[..4], [2 * MS, 4 * MS, 5 * MS, 5 * MS]);
        assert_eq!(
            slack[65..],
            [5 * MS, 5 * MS - 5 * MS / DECAY_DIVISOR, 5 * MS]
        );
        // No node disagrees, or one is further away than any slack.
        let before = state.slack;
        for others in [-1, MAX_DISTANCE + 1] {
            let slack = round(&mut state, &|proposal, _| proposal.sent + others);
            assert_eq!(slack, before);
        }
        for _ in 0..64 * 40 {
            round(&mut state, &|_, token| token);
        }
        assert_eq!(state.slack, MIN_SLACK);
    }

    /// Two clients that see each other's proposals do not drive each other up.
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
        // The less advanced of two nodes counts.
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
        assert_eq!((state.slack, state.agreed), (MIN_SLACK, 5));
    }

    #[test]
    fn no_time_is_so_long_that_it_could_not_be_added() {
        assert_eq!(micros(Duration::from_micros(7)), 7);
        assert_eq!(micros(Duration::MAX), Micros::MAX / 4);
    }
}
