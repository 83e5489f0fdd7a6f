//! The possible holds of one owner on the nodes, and the tasks that give them back.
//!
//! A release must never overtake an attempt of the same owner that counts towards a majority.
//! Otherwise the majority would silently be one vote short. So each node is either open to an
//! owner's attempts or being cleaned of that owner, never both. While a release may still be on its
//! way, the node is closed to that owner.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::abstention::Abstention;
use super::node_hold::{AttemptBegun, NodeHold};
use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{
    AttemptOutcome, FencingToken, Linger, LockTarget, OwnerId, ReleaseOutcome, TokenRetention, lock,
};

/// One owner of one lock, on all nodes.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) target: LockTarget,
    pub(super) owner: OwnerId,
    state: Mutex<ClaimState>,
    /// A node became clean, or an attempt was answered.
    changed: Notify,
}

#[derive(Debug)]
struct ClaimState {
    /// An attempt is under way or was granted, and no release has come.
    wanted: bool,
    permits: u32,
    token: Option<FencingToken>,
    /// The requested time to remember the token.
    retention: Option<TokenRetention>,
    /// When its hold has expired on every node.
    until: BootInstant,
    holds: Vec<NodeHold>,
    /// The heir that the nodes keep it for when they are cleaned of its owner, and until when.
    linger: Option<(OwnerId, BootInstant)>,
}

impl Claim {
    fn new(target: LockTarget, owner: OwnerId, nodes: usize) -> Self {
        Self {
            target,
            owner,
            state: Mutex::new(ClaimState {
                wanted: false,
                permits: 1,
                token: None,
                retention: None,
                until: clock::now(),
                holds: vec![NodeHold::default(); nodes],
                linger: None,
            }),
            changed: Notify::new(),
        }
    }

    pub(super) fn is_wanted(&self) -> bool {
        lock(&self.state).wanted
    }

    pub(super) fn permits(&self) -> u32 {
        lock(&self.state).permits
    }

    pub(super) fn token(&self) -> Option<FencingToken> {
        lock(&self.state).token
    }

    /// Whether, as far as this process knows, no node holds it, except for holds being given back.
    pub(super) fn is_untouched(&self) -> bool {
        let state = lock(&self.state);
        let untouched = |hold: &NodeHold| hold.is_clean() || hold.is_cleaning();
        state.holds.iter().all(untouched)
    }

    pub(super) fn retention(&self) -> Option<TokenRetention> {
        lock(&self.state).retention
    }

    pub(super) fn granted(&self, token: Option<FencingToken>, retention: Option<TokenRetention>) {
        let mut state = lock(&self.state);
        (state.token, state.retention) = (token, retention);
    }

    /// From now on, nodes that are cleaned of its owner keep it held as long as the release says.
    pub(super) fn lingers(&self, linger: &Linger) {
        let until = clock::now() + linger.time;
        lock(&self.state).linger = Some((linger.heir.clone(), until));
    }

    /// The rest of that time, from now.
    pub(super) fn linger(&self) -> Option<Linger> {
        let (heir, until) = lock(&self.state).linger.clone()?;
        let left = until.since(clock::now()).as_millis();
        let time = Duration::from_millis(u64::try_from(left).unwrap_or(u64::MAX));
        (!time.is_zero()).then_some(Linger { heir, time })
    }

    /// When its hold has expired on every node.
    pub(super) fn until(&self) -> BootInstant {
        lock(&self.state).until
    }

    /// Notes that nodes may keep it for this long from now.
    pub(super) fn kept_for(&self, time: Duration) {
        let mut state = lock(&self.state);
        state.until = state.until.max(clock::now() + time);
    }

    /// Waits until a node is clean. False if it is not clean by the deadline.
    pub(super) async fn clean(&self, node: usize, deadline: Instant) -> bool {
        self.reached(deadline, |state| !state.holds[node].is_cleaning())
            .await
    }

    /// Waits until no attempt is under way on a node.
    pub(super) async fn landed(&self, node: usize, deadline: Instant) -> bool {
        self.reached(deadline, |state| state.holds[node].has_landed())
            .await
    }

    async fn reached(
        &self,
        deadline: Instant,
        there: impl Fn(&ClaimState) -> bool + Send + Sync,
    ) -> bool {
        let wait = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                if there(&lock(&self.state)) {
                    return;
                }
                changed.await;
            }
        };
        timeout_at(deadline, wait).await.is_ok()
    }

    /// Notes that an attempt is about to be sent. `None` if it must not be sent.
    pub(super) fn begin(self: &Arc<Self>, node: usize) -> Option<SentAttempt> {
        let mut state = lock(&self.state);
        if !state.wanted {
            return None;
        }
        let begun = state.holds[node].begin()?;
        Some(SentAttempt {
            claim: Arc::clone(self),
            node,
            begun,
            until: None,
            answered: false,
        })
    }

    /// Gives it up. Returns the nodes that must be cleaned. The caller is now responsible for them.
    pub(super) fn give_up(&self) -> Vec<usize> {
        let mut state = lock(&self.state);
        state.wanted = false;
        let dirty = |hold: &mut NodeHold| !hold.is_clean() && hold.clean();
        let holds = state.holds.iter_mut().enumerate();
        holds
            .filter_map(|(node, hold)| dirty(hold).then_some(node))
            .collect()
    }

    /// Gives it up and marks every node as being cleaned. Tells for each node whether the caller is
    /// now responsible. If not, another task already is.
    pub(super) fn give_up_everywhere(&self) -> Vec<bool> {
        let mut state = lock(&self.state);
        state.wanted = false;
        let holds = state.holds.iter_mut();
        holds.map(NodeHold::clean).collect()
    }

    /// When to send a node the next release if that is to be the last one. `None`: now.
    pub(super) fn due(&self, node: usize) -> Option<Instant> {
        lock(&self.state).holds[node].due()
    }

    /// Whether nothing is left on a node although another release was due.
    pub(super) fn is_settled(&self, node: usize) -> bool {
        self.change(node, NodeHold::is_settled)
    }

    /// A release to a node is about to be sent, by the task responsible for the node. Returns the
    /// time.
    pub(super) fn releasing(&self, node: usize) -> Instant {
        lock(&self.state).holds[node].releasing();
        Instant::now()
    }

    /// The release sent at `sent` was answered. Returns whether another one must follow, because an
    /// attempt may have arrived after it.
    pub(super) fn released(&self, node: usize, outcome: ReleaseOutcome, sent: Instant) -> bool {
        self.change(node, |hold| hold.released(outcome, sent))
    }

    /// A release failed.
    pub(super) fn not_released(&self, node: usize, abstention: &Abstention) {
        lock(&self.state).holds[node].not_released(abstention);
    }

    /// The hold has expired on the node.
    pub(super) fn lapsed(&self, node: usize) {
        self.change(node, NodeHold::forgotten);
    }

    fn answered(&self, sent: &SentAttempt, answer: Option<&Result<AttemptOutcome, Abstention>>) {
        self.change(sent.node, |hold| {
            hold.answered(sent.begun, answer, sent.until);
        });
    }

    fn change<T>(&self, node: usize, change: impl FnOnce(&mut NodeHold) -> T) -> T {
        let result = change(&mut lock(&self.state).holds[node]);
        self.changed.notify_waiters();
        result
    }
}

/// An attempt under way on one node. If it is dropped without an answer, it may still arrive.
#[derive(Debug)]
pub(super) struct SentAttempt {
    claim: Arc<Claim>,
    node: usize,
    begun: AttemptBegun,
    /// When it has certainly run or been refused. `None`: not sent yet.
    until: Option<Instant>,
    answered: bool,
}

impl SentAttempt {
    /// It is being sent now, and will have run or been refused by `until`.
    pub(super) fn leaves(&mut self, until: Instant) {
        self.until = Some(until);
    }

    pub(super) fn answer(mut self, answer: &Result<AttemptOutcome, Abstention>) {
        self.answered = true;
        self.claim.answered(&self, Some(answer));
    }
}

impl Drop for SentAttempt {
    fn drop(&mut self) {
        if !self.answered {
            self.claim.answered(self, None);
        }
    }
}

/// The claims of this process.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    claims: Mutex<Claims>,
}

#[derive(Debug, Default)]
struct Claims {
    all: HashMap<(LockTarget, OwnerId), Arc<Claim>>,
    sweep_at: usize,
}

impl Ledger {
    /// The claim of an owner that wants the lock, from now until at least `time` from now.
    pub(super) fn want(
        &self,
        target: &LockTarget,
        owner: &OwnerId,
        permits: u32,
        (nodes, time): (usize, Duration),
    ) -> Arc<Claim> {
        let mut claims = lock(&self.claims);
        let claim = claims.entry(target, owner, nodes);
        // Under the lock of the ledger, so that `tidy` cannot forget it in between.
        let mut state = lock(&claim.state);
        (state.wanted, state.permits, state.linger) = (true, permits, None);
        state.until = state.until.max(clock::now() + time);
        drop(state);
        claim
    }

    /// The claim of an owner known from something other than an attempt: an adopted lease, or the
    /// release of a lock that another process took. Every node may hold it.
    pub(super) fn adopt(
        &self,
        target: &LockTarget,
        owner: &OwnerId,
        (nodes, time): (usize, Duration),
    ) -> Arc<Claim> {
        let mut claims = lock(&self.claims);
        let known = claims.all.contains_key(&(target.clone(), owner.clone()));
        let claim = claims.entry(target, owner, nodes);
        if !known {
            let mut state = lock(&claim.state);
            state.wanted = true;
            state.until = clock::now() + time;
            state.holds.fill(NodeHold::unknown());
        }
        claim
    }

    /// Forgets a finished claim.
    pub(super) fn tidy(&self, claim: &Arc<Claim>) {
        let mut claims = lock(&self.claims);
        let state = lock(&claim.state);
        // Remember spoilt nodes as long as the owner may return.
        let useless = |hold: &NodeHold| hold.is_clean() && !hold.is_spoilt();
        let over = !state.wanted && state.holds.iter().all(useless);
        drop(state);
        let key = (claim.target.clone(), claim.owner.clone());
        // The same owner may have a newer claim by now.
        let same = |known: &Arc<Claim>| Arc::ptr_eq(known, claim);
        if over && claims.all.get(&key).is_some_and(same) {
            claims.all.remove(&key);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.claims).all.len()
    }
}

impl Claims {
    fn entry(&mut self, target: &LockTarget, owner: &OwnerId, nodes: usize) -> Arc<Claim> {
        // Leases that were neither released nor renewed here, such as leases that another process
        // adopted.
        if self.all.len() >= self.sweep_at {
            let now = clock::now();
            self.all.retain(|_, claim| lock(&claim.state).until > now);
            self.sweep_at = (self.all.len() * 2).max(1024);
        }
        let key = (target.clone(), owner.clone());
        let fresh = || Arc::new(Claim::new(target.clone(), owner.clone(), nodes));
        Arc::clone(self.all.entry(key).or_insert_with(fresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locktopus_contract::{LockKind, LockName, MutexProfile};

    const TIME: Duration = Duration::from_secs(1);
    const RELEASED: ReleaseOutcome = ReleaseOutcome::Released;
    const NOT_HELD: ReleaseOutcome = ReleaseOutcome::NotHeld;

    fn silent() -> Result<AttemptOutcome, Abstention> {
        Err(Abstention::void("no answer"))
    }

    fn claim(ledger: &Ledger) -> Arc<Claim> {
        let kind = LockKind::Mutex(Arc::new(MutexProfile::default()));
        let target = LockTarget::new(LockName::new("n").unwrap(), kind);
        let owner = OwnerId::from_bytes(*b"somebody");
        ledger.want(&target, &owner, 1, (3, TIME))
    }

    #[tokio::test]
    async fn a_node_is_cleaned_or_open_but_never_both() {
        let ledger = Ledger::default();
        let first = claim(&ledger);
        let sent = first.begin(0).unwrap();
        sent.answer(&Ok(AttemptOutcome::Granted { token: None }));
        let held = first.begin(1).unwrap();
        held.answer(&Ok(AttemptOutcome::Busy { remaining: None }));
        assert_eq!(first.give_up(), [0], "nothing is left on the others");
        assert!(first.begin(2).is_none(), "given up");

        let again = claim(&ledger);
        assert!(Arc::ptr_eq(&first, &again));
        assert!(again.begin(0).is_none(), "being cleaned");
        assert!(again.begin(1).is_some());
        assert!(!again.released(0, RELEASED, again.releasing(0)));
        assert!(again.clean(0, Instant::now()).await);
        assert!(again.begin(0).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_come_late_is_released_until_it_cannot_come() {
        let ledger = Ledger::default();
        let claim = claim(&ledger);
        let begin = |node| {
            let mut sent = claim.begin(node).unwrap();
            sent.leaves(Instant::now() + TIME);
            sent
        };
        begin(0).answer(&silent());
        drop(begin(1));
        let under_way = begin(2);
        assert_eq!(claim.give_up(), [0, 1, 2]);
        let release = |node| claim.released(node, NOT_HELD, claim.releasing(node));
        for node in [0, 1] {
            assert!(release(node) && release(node), "it may still arrive");
            assert_eq!(claim.due(node), Some(Instant::now() + TIME));
        }
        assert!(release(2) && release(2), "still under way");
        assert_eq!(claim.due(2), None);
        let sent = claim.releasing(2);
        under_way.answer(&Ok(AttemptOutcome::Granted { token: None }));
        assert!(claim.released(2, NOT_HELD, sent), "overtaken");
        assert!(!release(2));
        tokio::time::advance(TIME).await;
        assert!(!release(0) && !release(1));
        ledger.tidy(&claim);
        assert_eq!(ledger.len(), 0);
    }

    #[tokio::test]
    async fn a_release_without_an_answer_closes_the_node_to_its_owner() {
        let ledger = Ledger::default();
        let first = claim(&ledger);
        let mut sent = first.begin(0).unwrap();
        sent.leaves(Instant::now());
        sent.answer(&silent());
        assert_eq!(first.give_up(), [0]);
        first.not_released(0, &Abstention::void("no answer"));
        first.not_released(1, &Abstention::not_asked("not sent"));
        assert!(!first.released(0, NOT_HELD, first.releasing(0)));
        ledger.tidy(&first);
        assert_eq!(ledger.len(), 1, "remembered");
        let again = claim(&ledger);
        assert!(again.begin(0).is_none() && again.begin(1).is_some());
    }

    #[tokio::test]
    async fn a_release_that_found_what_is_under_way_settles_the_node_when_that_is_answered() {
        let ledger = Ledger::default();
        let claim = claim(&ledger);
        let under_way = claim.begin(0).unwrap();
        assert_eq!(claim.give_up(), [0]);
        assert!(claim.released(0, RELEASED, claim.releasing(0)));
        assert!(!claim.is_settled(0));
        under_way.answer(&Ok(AttemptOutcome::Granted { token: None }));
        assert!(claim.is_settled(0) && claim.clean(0, Instant::now()).await);
    }

    #[tokio::test(start_paused = true)]
    async fn what_every_node_has_forgotten_is_swept_out_when_there_is_much_of_it() {
        let adopt = |ledger: &Ledger, lock: usize, time| {
            let kind = LockKind::Mutex(Arc::new(MutexProfile::default()));
            let target = LockTarget::new(LockName::new(format!("n{lock}")).unwrap(), kind);
            ledger.adopt(&target, &OwnerId::from_bytes(*b"somebody"), (3, time));
        };
        let ledger = Ledger::default();
        for lock in 0..1024 {
            adopt(&ledger, lock, if lock == 0 { 2 * TIME } else { TIME });
        }
        assert_eq!(ledger.len(), 1024);
        tokio::time::advance(TIME).await;
        adopt(&ledger, 1024, TIME);
        assert_eq!(ledger.len(), 2, "the one that lasts, and the new one");
        // If most claims last, the ledger is not swept again for each new one.
        let ledger = Ledger::default();
        for lock in 0..=1024 {
            adopt(&ledger, lock, TIME);
        }
        assert_eq!(lock(&ledger.claims).sweep_at, 2048);
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_says_what_is_to_be_given_back_and_for_how_long_it_may_be_there() {
        let ledger = Ledger::default();
        let first = claim(&ledger);
        let owner = first.owner.clone();
        assert!(first.is_wanted() && first.permits() == 1);
        let again = ledger.want(&first.target, &owner, 3, (3, TIME));
        assert_eq!((again.permits(), again.until()), (3, clock::now() + TIME));
        first.kept_for(5 * TIME);
        first.kept_for(2 * TIME);
        assert_eq!(first.until(), clock::now() + 5 * TIME);

        assert_eq!(first.linger(), None);
        let heir = OwnerId::from_bytes(*b"an heir!");
        let time = 2 * TIME;
        first.lingers(&Linger { heir, time });
        tokio::time::advance(TIME).await;
        let left = first.linger().unwrap();
        assert_eq!((left.heir.expose(), left.time), (&b"an heir!"[..], TIME));
        tokio::time::advance(TIME).await;
        assert_eq!(first.linger(), None, "its time is over");

        let sent = first.begin(0).unwrap();
        sent.answer(&Ok(AttemptOutcome::Granted { token: None }));
        assert_eq!(first.give_up(), [0]);
        assert!(!first.is_wanted() && !first.clean(0, Instant::now()).await);
        first.lapsed(0);
        assert!(first.clean(0, Instant::now()).await);
    }
}
