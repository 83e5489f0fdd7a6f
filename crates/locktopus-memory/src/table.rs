//! The state of the memory backend: who holds what, who waits, and who may be next.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::BACKEND_NAME;
use locktopus_contract::{
    AcquireAttempt, BackendError, CounterOutcome, FencingToken, LockTarget, Mode, OwnerId,
    ReleaseRequest, WakeGroup,
};

use crate::instances::InstanceRecords;
use crate::tokens::Tokens;

#[derive(Debug)]
pub(super) struct Table {
    pub(super) entries: HashMap<String, LockEntry>,
    pub(super) listeners: HashMap<String, Arc<WakeGroup>>,
    last_token: u64,
    pub(super) tokens: Tokens,
    pub(super) instances: InstanceRecords,
    sweep_at: usize,
}

/// Everything about one name.
#[derive(Debug)]
pub(super) struct LockEntry {
    pub(super) target: LockTarget,
    pub(super) holders: Vec<Holder>,
    pub(super) queue: VecDeque<QueuePlace>,
    /// The free permits of a semaphore, or the count of a latch.
    pub(super) number: Option<i64>,
    /// How long a rate limiter's permit stays taken.
    pub(super) period: Option<Duration>,
    /// How many permits were drained and not put back.
    pub(super) drained: i64,
    pub(super) operations: VecDeque<(OwnerId, CounterOutcome)>,
    /// Permits expired, and no waiter knows yet.
    came_back: bool,
}

#[derive(Debug)]
pub(super) struct Holder {
    pub(super) owner: OwnerId,
    pub(super) mode: Mode,
    pub(super) permits: u32,
    pub(super) token: u64,
    pub(super) since: Instant,
    pub(super) expires: Instant,
    /// It asked for a message when another owner wants the lock, and has had none yet.
    pub(super) recall: bool,
}

/// A place in the queue.
#[derive(Debug)]
pub(super) struct QueuePlace {
    pub(super) attempt: AcquireAttempt,
    pub(super) since: Instant,
    pub(super) until: Instant,
}

impl Default for Table {
    fn default() -> Self {
        // Tokens start at the time of day, as on a server, so a restarted process does not repeat
        // them.
        let micros = SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0, |since| since.as_micros());
        Self {
            entries: HashMap::new(),
            listeners: HashMap::new(),
            last_token: u64::try_from(micros).unwrap_or(0),
            tokens: Tokens::default(),
            instances: InstanceRecords::default(),
            sweep_at: 0,
        }
    }
}

impl Table {
    /// Whether the key of a target is in use as another kind.
    pub(super) fn is_other(&mut self, target: &LockTarget) -> bool {
        let entry = self.entries.get_mut(&key(target));
        entry.is_some_and(|entry| {
            entry.expire();
            entry.target.kind().family() != target.kind().family() && !entry.is_empty()
        })
    }

    /// The entry of a target, without expired holds and places. Refuses another kind on the same
    /// key.
    pub(super) fn entry(&mut self, target: &LockTarget) -> Result<&mut LockEntry, BackendError> {
        self.sweep();
        let key = key(target);
        let entry = self
            .entries
            .entry(key.clone())
            .or_insert_with(|| LockEntry {
                target: target.clone(),
                holders: Vec::new(),
                queue: VecDeque::new(),
                number: None,
                period: None,
                drained: 0,
                operations: VecDeque::new(),
                came_back: false,
            });
        entry.expire();
        let found = entry.target.kind().family();
        if found != target.kind().family() {
            if !entry.is_empty() {
                return Err(BackendError::other_kind(BACKEND_NAME, target, found));
            }
            entry.target = target.clone();
        }
        Ok(entry)
    }

    /// Makes the attempt's owner a holder and returns its first token.
    pub(super) fn grant(&mut self, attempt: &AcquireAttempt) -> Result<u64, BackendError> {
        let floor = attempt.floor.map_or(0, FencingToken::get);
        let token = (self.last_token + 1).max(floor);
        self.last_token = token + u64::from(attempt.tokens.max(1)) - 1;
        if let Some(keep) = attempt.token_retention {
            let (key, last) = (key(&attempt.target), self.last_token);
            self.tokens.remember(key, last, keep, attempt.lease);
        }
        let entry = self.entry(&attempt.target)?;
        if let Some(free) = &mut entry.number {
            *free -= i64::from(attempt.permits);
        }
        let now = Instant::now();
        entry.holders.push(Holder {
            owner: attempt.owner.clone(),
            mode: attempt.target.kind().mode(),
            permits: attempt.permits,
            token,
            since: now,
            expires: now + entry.period.unwrap_or(attempt.lease),
            recall: false,
        });
        Ok(token)
    }

    /// Tells the holders that asked for it that another owner wants the lock.
    pub(super) fn ask_back(&mut self, target: &LockTarget) -> Result<(), BackendError> {
        let Some(group) = self.listeners.get(&key(target)).map(Arc::clone) else {
            return Ok(());
        };
        let holders = self.entry(target)?.holders.iter_mut();
        for holder in holders.filter(|holder| holder.recall) {
            holder.recall = !group.want(holder.owner.expose());
        }
        Ok(())
    }

    /// Raises the token of a holder whose attempt asks for a higher one.
    pub(super) fn raise(&mut self, attempt: &AcquireAttempt) -> Result<(), BackendError> {
        let Some(floor) = attempt.floor.map(FencingToken::get) else {
            return Ok(());
        };
        let last = self.last_token;
        let entry = self.entry(&attempt.target)?;
        if let Some(holder) = entry.holding(&attempt.owner, attempt.target.kind().mode())
            && holder.token < floor
        {
            holder.token = floor;
            self.last_token = last.max(floor + u64::from(attempt.tokens.max(1)) - 1);
        }
        Ok(())
    }

    /// Uses up a token without a grant, which fences all earlier tokens.
    pub(super) fn skip_token(&mut self) -> Option<FencingToken> {
        self.last_token += 1;
        FencingToken::new(self.last_token)
    }

    pub(super) fn last_token(&self) -> u64 {
        self.last_token
    }

    /// Something became free. Hands it on, and if no waiter in the queue took it, wakes one outside
    /// the queue.
    pub(super) fn freed(&mut self, target: &LockTarget) -> Result<(), BackendError> {
        if !self.hand_on(target, None)?
            && let Some(group) = self.listeners.get(&key(target))
        {
            group.wake_one();
        }
        Ok(())
    }

    /// Tells waiters about permits that expired since the last call. Only inspection skips this,
    /// because it must not change anything.
    pub(super) fn tell(&mut self, target: &LockTarget) -> Result<(), BackendError> {
        let entry = self.entry(target)?;
        if std::mem::take(&mut entry.came_back) {
            self.freed(target)?;
        }
        Ok(())
    }

    /// Hands the lock to the first waiters in the queue that can have it, up to `before`. True if
    /// one of them got it.
    pub(super) fn hand_on(
        &mut self,
        target: &LockTarget,
        before: Option<&OwnerId>,
    ) -> Result<bool, BackendError> {
        let group = self.listeners.get(&key(target)).map(Arc::clone);
        let mut handed = false;
        loop {
            let entry = self.entry(target)?;
            // A waiter for more permits than the total gets an error at its next check.
            let mut places = entry.queue.iter().enumerate();
            let Some((index, place)) = places.find(|(_, place)| entry.has_enough(&place.attempt))
            else {
                break;
            };
            if before == Some(&place.attempt.owner) {
                break;
            }
            if !entry.admits(&place.attempt) {
                // There are no releases, so this waiter must check when the next permits return.
                if entry.period.is_some()
                    && (handed || before.is_none())
                    && let Some(group) = &group
                {
                    group.nudge(place.attempt.owner.expose());
                }
                break;
            }
            let Some(QueuePlace { attempt, .. }) = entry.queue.remove(index) else {
                break;
            };
            let token = self.grant(&attempt)?;
            handed = true;
            if let (Some(group), Some(token)) = (&group, FencingToken::new(token)) {
                group.grant(attempt.owner.expose(), token);
            }
        }
        Ok(handed)
    }

    /// Removes expired entries each time the table has doubled, so that names used once do not cost
    /// memory for ever.
    fn sweep(&mut self) {
        if self.entries.len() + self.listeners.len() >= self.sweep_at {
            self.entries.retain(|_, entry| {
                entry.expire();
                !entry.is_empty()
            });
            self.listeners
                .retain(|_, group| !group.is_empty() || Arc::strong_count(group) > 1);
            self.sweep_at = ((self.entries.len() + self.listeners.len()) * 2).max(1024);
        }
    }
}

impl LockEntry {
    fn is_empty(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty() && self.number.is_none()
    }

    fn expire(&mut self) {
        let now = Instant::now();
        let mut back = 0;
        self.holders.retain(|holder| {
            let live = holder.expires > now;
            if !live {
                back += i64::from(holder.permits);
            }
            live
        });
        if let Some(free) = self.number.as_mut() {
            *free += back;
            self.came_back |= back > 0;
        }
        self.queue.retain(|place| place.until > now);
    }

    pub(super) fn holding(&mut self, owner: &OwnerId, mode: Mode) -> Option<&mut Holder> {
        self.holders
            .iter_mut()
            .find(|holder| holder.owner == *owner && holder.mode == mode)
    }

    /// Whether the present holders leave room for an attempt, ignoring other waiters.
    pub(super) fn admits(&self, attempt: &AcquireAttempt) -> bool {
        match attempt.target.kind().mode() {
            Mode::Exclusive => self.holders.is_empty(),
            // A writer may also read.
            Mode::Read => self
                .holders
                .iter()
                .all(|holder| holder.mode == Mode::Read || holder.owner == attempt.owner),
            Mode::Permits => self
                .number
                .is_some_and(|free| free >= i64::from(attempt.permits)),
        }
    }

    /// How many waiters are ahead of an owner: all of them if it has no place. A writer that also
    /// wants to read waits behind no one.
    pub(super) fn ahead(&self, owner: &OwnerId) -> usize {
        if self.holders.iter().any(|holder| holder.owner == *owner) {
            return 0;
        }
        let place = self
            .queue
            .iter()
            .position(|place| place.attempt.owner == *owner);
        place.unwrap_or(self.queue.len())
    }

    /// Whether all waiters ahead of an owner want more permits than the total.
    pub(super) fn is_next(&self, owner: &OwnerId) -> bool {
        let mut ahead = self.queue.iter().take(self.ahead(owner));
        ahead.all(|place| !self.has_enough(&place.attempt))
    }

    /// Gives up a place. False if there was none.
    pub(super) fn leave(&mut self, owner: &OwnerId) -> bool {
        let before = self.queue.len();
        self.queue.retain(|place| place.attempt.owner != *owner);
        self.queue.len() < before
    }

    /// Turns the owner's hold into the heir's, if the release names an heir. True if the heir has
    /// it now.
    pub(super) fn lingers(&mut self, request: &ReleaseRequest) -> bool {
        let (Some(linger), mode) = (&request.linger, request.target.kind().mode()) else {
            return false;
        };
        if let Some(holder) = self.holding(&request.owner, mode) {
            (holder.owner, holder.recall) = (linger.heir.clone(), false);
            holder.expires = Instant::now() + linger.time;
        }
        self.holding(&linger.heir, mode).is_some()
    }

    /// Whether any waiter could have some of it.
    pub(super) fn has_room(&self) -> bool {
        match self.number {
            Some(free) => free > 0,
            None => self.holders.iter().all(|holder| holder.mode == Mode::Read),
        }
    }

    /// Takes a place at the end of the queue, or prolongs the existing place.
    pub(super) fn enter(&mut self, attempt: &AcquireAttempt, keep: Duration) {
        let since = Instant::now();
        let until = since + keep;
        let present = self
            .queue
            .iter_mut()
            .find(|place| place.attempt.owner == attempt.owner);
        match present {
            Some(place) => place.until = until,
            None => self.queue.push_back(QueuePlace {
                attempt: attempt.clone(),
                since,
                until,
            }),
        }
    }

    /// What is left of the lease that ends first. For a rate limiter, the time until this many
    /// permits have returned.
    pub(super) fn remaining(&self, permits: u32) -> Option<Duration> {
        let ends = self.holders.iter().map(|it| (it.expires, it.permits));
        let until = if self.period.is_none() {
            ends.min()?.0
        } else {
            let mut missing = i64::from(permits) - self.number.unwrap_or(0);
            let mut ends: Vec<_> = ends.collect();
            ends.sort_unstable();
            let enough = ends.iter().find(|(_, back)| {
                missing -= i64::from(*back);
                missing <= 0
            });
            enough.or_else(|| ends.last())?.0
        };
        Some(until.saturating_duration_since(Instant::now()))
    }
}

pub(super) fn key(target: &LockTarget) -> String {
    target.key().into_owned()
}
