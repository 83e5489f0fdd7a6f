//! The backend under test: makes the calls of a sequence and compares it with the reference.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::FutureExt as _;
use locktopus::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, CounterAction, CounterRequest,
    DynBackend, ExtendOutcome, ExtendRequest, FencingToken, LockKind, LockName, LockState,
    LockTarget, Mode, OwnerId, PlaceHint, ReleaseOutcome, ReleaseRequest, Wake, WakeStream,
};
use locktopus_conformance::Flavour;
use tokio::time::{Instant, timeout};

use super::calls::{Call, Half};
use super::reference::{Answer, Reference, Said};

/// Longest wait for a pushed grant; virtual if the clock is paused.
const SOON: Duration = Duration::from_secs(20);
/// How much of an hour's lease may be over before a check reads it, if time is real.
const TOLERANCE: Duration = Duration::from_secs(300);

/// A sequence's own lock, and the parties that want it, spread over the clients.
pub struct Subject {
    clients: Vec<DynBackend>,
    name: LockName,
    flavour: Flavour,
    /// The clock is the reference's, so the rest of each lease is known to the millisecond.
    exact: bool,
    parties: Vec<Party>,
    /// The id of the last operation on the number.
    operation: OwnerId,
    last_action: CounterAction,
    /// The greatest token that was given or fenced.
    newest: u64,
}

/// The counterpart of a slot of the reference.
struct Party {
    owner: OwnerId,
    stream: Option<WakeStream>,
    /// It was never granted anything and never had a place.
    fresh: bool,
    /// The first token of its grant.
    token: u64,
    /// The last token given to anyone before it had to wait.
    last_token: u64,
}

fn agree<T: PartialEq + Debug>(what: &str, shown: &T, expected: &T) -> Result<(), String> {
    if shown == expected {
        return Ok(());
    }
    Err(format!("{what}: {shown:?}, and not {expected:?}"))
}

impl Subject {
    /// `name` is that of a lock that was never used.
    pub async fn new(
        clients: Vec<DynBackend>,
        name: &str,
        reference: &Reference,
        exact: bool,
    ) -> Self {
        let flavour = reference.flavour;
        let mut subject = Self {
            clients,
            name: LockName::new(name).unwrap(),
            flavour,
            exact,
            parties: Vec::new(),
            operation: OwnerId::generate(),
            last_action: CounterAction::Read,
            newest: 0,
        };
        for who in 0..reference.slots.len() {
            let owner = flavour.owner();
            let mut stream = None;
            if Flavour::IN_LINE.contains(&flavour) {
                let (target, client) = (subject.target(Half::Whole), subject.client(who));
                let joined = client.subscribe(&target, deadline(client)).await.unwrap();
                joined.claim(&owner);
                stream = Some(joined);
            }
            subject.parties.push(Party {
                owner,
                stream,
                fresh: true,
                token: 0,
                last_token: 0,
            });
        }
        subject
    }

    fn client(&self, who: usize) -> &DynBackend {
        &self.clients[who % self.clients.len()]
    }

    fn target(&self, half: Half) -> LockTarget {
        let kind = match half {
            Half::Whole => self.flavour.kind(),
            Half::Read => LockKind::Read,
        };
        LockTarget::new(self.name.clone(), kind)
    }

    /// Makes a call. `reference` is already past it.
    pub async fn call(
        &mut self,
        reference: &Reference,
        call: &Call,
        said: &Said,
    ) -> Result<(), String> {
        let client = match *call {
            Call::Attempt { who, .. } | Call::Extend { who, .. } | Call::Release { who, .. } => {
                self.client(who)
            }
            // Any client, whether or not it made the call before.
            _ => self.client(reference.now as usize + reference.holds.len()),
        };
        let client = client.clone();
        let until = deadline(&client);
        let failed = |error: BackendError| error.to_string();
        match *call {
            Call::Attempt { who, half, waits } => {
                let attempt = self.attempt(reference, who, half, waits);
                match (client.attempt(&attempt).await, &said.answer) {
                    (Err(error), Answer::TooFew)
                        if error.kind() == BackendErrorKind::TooFewPermits => {}
                    (outcome, answer) => {
                        let outcome = outcome.map_err(failed)?;
                        self.attempted(reference, &attempt, who, &outcome, answer)?;
                    }
                }
            }
            Call::Extend { who, half, lease } => {
                let owner = self.parties[who].owner.clone();
                let mut request =
                    ExtendRequest::new(self.target(half), owner, Duration::from_millis(lease));
                request.permits = reference.slots[who].permits;
                let outcome = client.extend(&[request], until).await.remove(0);
                let outcome = match outcome.map_err(failed)? {
                    ExtendOutcome::Extended => Answer::Extended,
                    ExtendOutcome::Missing => Answer::Missing,
                    ExtendOutcome::TakenOver => Answer::TakenOver,
                };
                agree("answered", &outcome, &said.answer)?;
            }
            Call::Release { who, half, hint } => {
                let request = self.release(reference, who, half, hint);
                let outcome = match client.release(&request).await.map_err(failed)? {
                    ReleaseOutcome::Released => Answer::Released,
                    ReleaseOutcome::NotHeld => Answer::NotHeld,
                };
                agree("answered", &outcome, &said.answer)?;
            }
            Call::Evict => {
                let eviction = client
                    .evict(&self.target(Half::Whole), until)
                    .await
                    .map_err(failed)?;
                self.evicted(&eviction.evicted, eviction.fence, &said.answer)?;
            }
            Call::Count(action) => {
                (self.operation, self.last_action) = match action {
                    CounterAction::Read => (self.operation.clone(), self.last_action),
                    _ => (OwnerId::generate(), action),
                };
                self.count(&client, action, &said.answer).await?;
            }
            Call::CountAgain => self.count(&client, self.last_action, &said.answer).await?,
            Call::Look if self.flavour == Flavour::Latch => {
                let number = self.read(&client).await?;
                agree("the count", &number, &reference.number)?;
            }
            Call::Look => {
                let state = client
                    .inspect(&self.target(Half::Whole), until)
                    .await
                    .map_err(failed)?;
                self.shown(reference, &state)?;
            }
            Call::Pass(millis) => tokio::time::advance(Duration::from_millis(millis)).await,
        }
        for &who in &said.handed {
            self.handed(reference, who).await?;
        }
        self.nobody_else()
    }

    fn attempt(
        &self,
        reference: &Reference,
        who: usize,
        half: Half,
        waits: bool,
    ) -> AcquireAttempt {
        let (slot, party) = (reference.slots[who], &self.parties[who]);
        let (lease, keep) = (
            Duration::from_millis(slot.lease),
            Duration::from_millis(slot.keep),
        );
        let until = deadline(self.client(who));
        let mut attempt = AcquireAttempt::new(self.target(half), party.owner.clone(), lease, until);
        attempt.permits = slot.permits;
        attempt.tokens = slot.tokens;
        attempt.place = waits.then_some(keep);
        attempt.first = party.fresh;
        attempt
    }

    fn release(&self, reference: &Reference, who: usize, half: Half, hint: bool) -> ReleaseRequest {
        let (slot, party) = (reference.slots[who], &self.parties[who]);
        let until = deadline(self.client(who));
        let mut request = ReleaseRequest::new(self.target(half), party.owner.clone(), until);
        request.permits = slot.permits;
        request.place_hint = hint.then_some(PlaceHint {
            place: Duration::from_millis(slot.keep),
            lease: Duration::from_millis(slot.lease),
            tokens: slot.tokens,
        });
        request
    }

    fn attempted(
        &mut self,
        reference: &Reference,
        attempt: &AcquireAttempt,
        who: usize,
        outcome: &AttemptOutcome,
        expected: &Answer,
    ) -> Result<(), String> {
        let first = attempt.first;
        match (outcome, expected) {
            (AttemptOutcome::Granted { token }, Answer::Granted { again }) => {
                self.granted(reference, who, attempt.target.kind(), *token, *again)
            }
            (AttemptOutcome::Busy { remaining }, Answer::Held) => {
                self.blocks(reference, *remaining, false)
            }
            (
                AttemptOutcome::Queued {
                    remaining,
                    ahead,
                    last_token,
                },
                Answer::Queued { ahead: expected },
            ) => {
                if first {
                    agree("whether anybody is ahead", &(*ahead > 0), &(*expected > 0))?;
                } else {
                    agree("ahead", ahead, expected)?;
                }
                self.parties[who].last_token = *last_token;
                self.parties[who].fresh = false;
                self.blocks(reference, *remaining, first || *expected > 0)
            }
            _ => Err(format!("answered {outcome:?}, and not {expected:?}")),
        }
    }

    fn granted(
        &mut self,
        reference: &Reference,
        who: usize,
        kind: &LockKind,
        token: Option<FencingToken>,
        again: bool,
    ) -> Result<(), String> {
        agree(
            "whether there is a token",
            &token.is_some(),
            &kind.has_tokens(),
        )?;
        let party = &mut self.parties[who];
        party.fresh = false;
        let Some(token) = token.map(FencingToken::get) else {
            return Ok(());
        };
        if again {
            return agree("the token of the same grant", &token, &party.token);
        }
        if token <= self.newest {
            return Err(format!("token {token} after {}", self.newest));
        }
        party.token = token;
        self.newest = token + u64::from(reference.slots[who].tokens) - 1;
        Ok(())
    }

    /// Checks the reported rest of the blocking lease. `perhaps`: the answer may omit it. It may
    /// also omit it if others wait, because they may be what blocks.
    fn blocks(
        &self,
        reference: &Reference,
        remaining: Option<Duration>,
        perhaps: bool,
    ) -> Result<(), String> {
        let ends = reference.holds.iter().map(|hold| hold.ends);
        let (Some(first), Some(last)) = (ends.clone().min(), ends.max()) else {
            return agree(
                "what is left of a lease although there is none",
                &remaining,
                &None,
            );
        };
        let Some(remaining) = remaining else {
            return if perhaps || !reference.queue.is_empty() {
                Ok(())
            } else {
                Err("a lease without an end is in the way".to_owned())
            };
        };
        let about = |ends| self.about("the lease in the way", reference, remaining, ends);
        if self.flavour == Flavour::RateLimiter {
            // The missing permits may return with any of them.
            let mut ends = reference.holds.iter().map(|hold| hold.ends);
            return ends.find_map(|end| about(end).ok()).ok_or_else(|| {
                format!("{remaining:?} are said to be left, when nothing comes back")
            });
        }
        about(first).or_else(|_| about(last))
    }

    fn about(
        &self,
        what: &str,
        reference: &Reference,
        shown: Duration,
        ends: u64,
    ) -> Result<(), String> {
        let expected = Duration::from_millis(ends - reference.now);
        let fits = if self.exact {
            shown == expected
        } else {
            shown <= expected + Duration::from_secs(1) && shown + TOLERANCE >= expected
        };
        if fits {
            Ok(())
        } else {
            Err(format!("{what} has {shown:?} left, and not {expected:?}"))
        }
    }

    fn evicted(
        &mut self,
        owners: &[OwnerId],
        fence: Option<FencingToken>,
        expected: &Answer,
    ) -> Result<(), String> {
        let Answer::Evicted(expected) = expected else {
            return Err(format!("evicted, and not {expected:?}"));
        };
        for (who, party) in self.parties.iter().enumerate() {
            let ended = owners.iter().any(|owner| party.is(owner));
            agree(
                &format!("whether slot {who} was evicted"),
                &ended,
                &expected.contains(&who),
            )?;
        }
        agree(
            "whether there is a fence",
            &fence.is_some(),
            &self.flavour.has_tokens(),
        )?;
        if let Some(fence) = fence.map(FencingToken::get) {
            if fence < self.newest {
                return Err(format!(
                    "tokens are fenced to {fence}, and {} was given",
                    self.newest
                ));
            }
            self.newest = fence;
        }
        Ok(())
    }

    async fn count(
        &self,
        client: &DynBackend,
        action: CounterAction,
        expected: &Answer,
    ) -> Result<(), String> {
        let request = CounterRequest {
            target: self.target(Half::Whole),
            operation: self.operation.clone(),
            action,
            deadline: deadline(client),
        };
        let outcome = client
            .counter(&request)
            .await
            .map_err(|error| error.to_string())?;
        agree("answered", &Answer::Counted(outcome), expected)
    }

    async fn read(&self, client: &DynBackend) -> Result<Option<i64>, String> {
        let request = CounterRequest {
            target: self.target(Half::Whole),
            operation: OwnerId::generate(),
            action: CounterAction::Read,
            deadline: deadline(client),
        };
        let outcome = client
            .counter(&request)
            .await
            .map_err(|error| error.to_string())?;
        Ok(outcome.value)
    }

    fn shown(&self, reference: &Reference, state: &LockState) -> Result<(), String> {
        agree("how many are free", &state.available, &reference.number)?;
        for holder in &state.holders {
            if !self.parties.iter().any(|party| party.is(&holder.owner)) {
                return Err(format!("a stranger holds it: {holder:?}"));
            }
        }
        for (who, party) in self.parties.iter().enumerate() {
            for half in [Half::Whole, Half::Read] {
                let mode = self.mode(half);
                let shown = state
                    .holders
                    .iter()
                    .filter(|holder| holder.mode == mode && party.is(&holder.owner));
                let hold = reference
                    .holds
                    .iter()
                    .find(|hold| hold.who == who && hold.half == half);
                let permits: u64 = shown.clone().map(|holder| holder.holds).sum();
                let expected = hold.map_or(0, |_| u64::from(reference.slots[who].permits));
                agree(
                    &format!("how often slot {who} holds it ({mode:?})"),
                    &permits,
                    &expected,
                )?;
                for (holder, hold) in shown.zip(hold) {
                    let left = holder.remaining.ok_or("a lease without an end")?;
                    self.about(&format!("slot {who}"), reference, left, hold.ends)?;
                }
                if half == Half::Whole && hold.is_some() && self.flavour.has_tokens() {
                    // It may show the tokens reserved with this one, and if the owner also reads,
                    // the other grant's.
                    let shown = state.last_token.map_or(0, FencingToken::get);
                    if shown < party.token
                        || shown > self.newest && self.flavour != Flavour::ReadWrite
                    {
                        return Err(format!(
                            "the last token is shown as {shown}, and not {}",
                            self.newest
                        ));
                    }
                }
            }
        }
        let waiters = state
            .waiters
            .iter()
            .map(|waiter| (waiter.owner.clone(), waiter.mode, waiter.permits));
        let expected = reference.queue.iter().map(|place| {
            let mode = self.mode(place.half);
            (
                self.parties[place.who].owner.clone(),
                mode,
                reference.slots[place.who].permits,
            )
        });
        let (waiters, expected) = (waiters.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        agree("who waits", &waiters, &expected)
    }

    fn mode(&self, half: Half) -> Mode {
        match half {
            Half::Whole => self.flavour.kind().mode(),
            Half::Read => Mode::Read,
        }
    }

    /// After a hand-off the waiter is notified, or told to check, and then has the lock.
    async fn handed(&mut self, reference: &Reference, who: usize) -> Result<(), String> {
        let hold = reference.holds.iter().find(|hold| hold.who == who);
        let Some(half) = hold.map(|hold| hold.half) else {
            return Err(format!("the reference handed slot {who} nothing"));
        };
        let kind = self.target(half).kind().clone();
        match self.pushed(who).await? {
            Wake::Granted { token } => {
                let token = Some(token).filter(|_| kind.has_tokens());
                self.granted(reference, who, &kind, token, false)
            }
            hint => {
                let attempt = self.attempt(reference, who, half, true);
                let outcome = self.client(who).attempt(&attempt).await;
                let outcome = outcome.map_err(|error| error.to_string())?;
                let AttemptOutcome::Granted { token } = outcome else {
                    return Err(format!(
                        "slot {who} was told {hint:?}, and then {outcome:?}"
                    ));
                };
                self.granted(reference, who, &kind, token, false)
            }
        }
    }

    /// The next hint, except grants that another message overtook: those are older than what the
    /// waiter knows.
    async fn pushed(&mut self, who: usize) -> Result<Wake, String> {
        let Party {
            stream, last_token, ..
        } = &mut self.parties[who];
        let Some(stream) = stream else {
            return Err(format!("slot {who} does not listen"));
        };
        loop {
            match timeout(SOON, stream.next()).await {
                Ok(Wake::Granted { token }) if token.get() <= *last_token && !self.exact => {}
                Ok(hint) => return Ok(hint),
                Err(_) => {
                    return Err(format!(
                        "slot {who} was next, and was told nothing for {SOON:?}"
                    ));
                }
            }
        }
    }

    /// No other waiter was notified of a grant that the reference does not know.
    fn nobody_else(&mut self) -> Result<(), String> {
        for (who, party) in self.parties.iter_mut().enumerate() {
            let Some(stream) = &mut party.stream else {
                continue;
            };
            // If time is real, an overtaken message may still be on its way.
            let pending = if self.exact {
                stream.next().now_or_never()
            } else {
                None
            };
            if let Some(Wake::Granted { token }) = pending {
                return Err(format!("slot {who} was told that it was granted {token:?}"));
            }
        }
        Ok(())
    }

    /// Ends everything that is left.
    pub async fn ends(mut self) {
        self.operation = OwnerId::generate();
        let (target, client) = (self.target(Half::Whole), &self.clients[0]);
        for party in &self.parties {
            for half in [Half::Whole, Half::Read] {
                if half == Half::Whole || self.flavour == Flavour::ReadWrite {
                    let request = ReleaseRequest::new(
                        self.target(half),
                        party.owner.clone(),
                        deadline(client),
                    );
                    let _ = client.release(&request).await;
                }
            }
        }
        if self.flavour.is_counted() || self.flavour == Flavour::Latch {
            let _ = self
                .count(client, CounterAction::Delete, &Answer::Shown)
                .await;
        } else {
            let _ = client.evict(&target, deadline(client)).await;
        }
    }
}

impl Party {
    /// Whether the owner shown is this one. Each of several permits may show under its own id,
    /// which differs in the last two bytes.
    fn is(&self, shown: &OwnerId) -> bool {
        let (shown, own) = (shown.expose(), self.owner.expose());
        shown == own || shown.len() == 16 && own.len() == 16 && shown[..14] == own[..14]
    }
}

fn deadline(client: &DynBackend) -> Instant {
    Instant::now() + client.info().call_timeout
}
