//! One watchdog for all leases of a `Locktopus`: it renews them and says when they are lost. It
//! runs on every runtime that the `Locktopus` is used on, over one index, so leases are looked
//! after as long as one of them runs.
//!
//! Leases are indexed by their next due time: a renewal, a retry, or the end of validity. Leases that are due
//! together are renewed together, one batch for each shard. Each batch is a task of its own, so a node that does not
//! answer delays no other node's leases. While a batch is under way, its leases are due at their deadlines, so a loss is
//! reported on time whatever the network does.
//!
//! | part | what it does |
//! |---|---|
//! | this file | the loop that waits for what is due, and `renew`, which extends one batch and judges the answers |
//! | `watched_leases` | the leases that are watched, and what is to be done for each of them next |
//! | `timer_index` | finds what is due: entries by the millisecond in which they are due |
//! | `timing` | when a lease is renewed, and for how long |
//! | `due` | what has fallen due at one look |

mod due;
mod timer_index;
mod timing;
mod watched_leases;

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{BackendError, ExtendOutcome, lock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::due::{Due, Next, Watched};
use self::timing::{renewal, renewal_lease};
use self::watched_leases::{Failures, Sooner, WatchedLeases};
use crate::engine::error::LostCause;
use crate::engine::holding::give_back::Owed;
use crate::engine::holding::lease::LeaseState;
use crate::engine::holding::services::Services;
use crate::engine::observe::Extensions;

/// A renewal is due after this part of the lease, as in Redisson.
const RENEWALS_PER_LEASE: u32 = 3;
/// Renewal times are rounded down to this part of their period, so that neighbours share a batch.
const BATCHES_PER_PERIOD: u32 = 32;
/// Largest batch. A script over 100 keys takes 0.14 ms of the server's time, over 1,000 it stalls everybody.
const BATCH: usize = 100;
/// How often the watchdog looks whether the machine was asleep, while there are leases.
const TICK: Duration = Duration::from_secs(1);
/// Most leases handled at one look, so that other tasks of the runtime get to run: several batches.
const LOOK: usize = 10 * BATCH;
/// First pause before a failed renewal is tried again.
const FIRST_RETRY: Duration = Duration::from_millis(20);

/// Something that the watchdog is to check at a certain time, so that it needs no timer and no task of its own: the local
/// queues of tasks that wait.
pub(crate) trait ScheduledCheck: std::fmt::Debug + Send + Sync {
    /// The time has come.
    fn check(self: Arc<Self>, services: &Arc<Services>, now: BootInstant);
}

/// The leases of one `Locktopus`.
#[derive(Debug)]
pub(crate) struct Watchdog {
    watched: Mutex<WatchedLeases>,
    /// Notified when an entry is due before the next planned look.
    sooner: Notify,
}

impl Default for Watchdog {
    fn default() -> Self {
        Self {
            watched: Mutex::new(WatchedLeases::new(clock::now())),
            sooner: Notify::new(),
        }
    }
}

/// Leases that the backend does not hold for their owners any more. Dropping it tells the holders.
pub(crate) struct Losses(pub(crate) Vec<(Arc<LeaseState>, LostCause)>);

impl Losses {
    /// Tells the holders, with the reason if an operator broke the lock. They wait a moment for that
    /// reason and no longer; if this future is dropped, they hear of the loss without it.
    pub(crate) async fn tell(mut self, services: &Services) {
        services.explain_losses(&mut self.0).await;
    }
}

impl Drop for Losses {
    fn drop(&mut self) {
        for (lost, cause) in self.0.drain(..) {
            tracing::warn!(lock = %lost.target, %cause, "lock lost");
            lost.end(cause);
        }
    }
}

/// The position of a lease among those that are watched, needed to remove it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket(usize);

impl Ticket {
    /// Of a lease that is not watched.
    pub(crate) const NONE: Self = Self(usize::MAX);
}

impl Watchdog {
    /// Starts watching a lease that was granted just now. After `close` nobody would report its loss, so it ends at once
    /// and there is no ticket.
    pub(crate) fn watch(&self, lease: &Arc<LeaseState>) -> Option<Ticket> {
        let mut watched = lock(&self.watched);
        if watched.closed {
            drop(watched);
            lease.end(LostCause::ShutDown);
            return None;
        }
        let (slot, sooner) = watched.insert(lease, lease.granted_at);
        drop(watched);
        self.look_sooner(sooner);
        Some(Ticket(slot))
    }

    fn look_sooner(&self, Sooner(sooner): Sooner) {
        if sooner {
            self.sooner.notify_waiters();
        }
    }

    /// Stops watching for good, and returns what was being watched.
    pub(crate) fn close(&self) -> Vec<Arc<LeaseState>> {
        lock(&self.watched).close()
    }

    /// Stops watching a lease. Does nothing if it was lost and taken out meanwhile.
    pub(crate) fn forget(&self, ticket: Ticket, lease: &LeaseState) {
        let mut watched = lock(&self.watched);
        if watched.get(ticket.0, lease).is_some() {
            watched.remove(ticket.0);
        }
    }

    /// Puts a lease where it belongs after its deadline moved.
    pub(crate) fn extended(&self, ticket: Ticket, lease: &LeaseState) {
        let now = clock::now();
        let mut watched = lock(&self.watched);
        let renew_at = lease
            .renewed
            .then(|| renewal(watched.origin(), now, lease.lease()));
        if let Some(entry) = watched.get(ticket.0, lease) {
            entry.renew_at = renew_at;
            let sooner = watched.put_right(ticket.0, lease.valid_until());
            drop(watched);
            self.look_sooner(sooner);
        }
    }

    /// The leases being watched.
    pub(crate) fn leases(&self) -> Vec<(Ticket, Arc<LeaseState>)> {
        let watched = lock(&self.watched);
        let leases = watched.leases();
        leases
            .map(|(slot, lease)| (Ticket(slot), Arc::clone(lease)))
            .collect()
    }

    /// Looks at a lease's deadline again: its maximum hold time has changed.
    pub(crate) fn retime(&self, ticket: Ticket, lease: &LeaseState) {
        let mut watched = lock(&self.watched);
        if watched.get(ticket.0, lease).is_some() {
            let sooner = watched.put_right(ticket.0, lease.valid_until());
            drop(watched);
            self.look_sooner(sooner);
        }
    }

    /// Comes for a look at this instant.
    pub(crate) fn schedule_check(&self, of: Weak<dyn ScheduledCheck>, at: BootInstant) {
        let mut watched = lock(&self.watched);
        if !watched.closed {
            let sooner = watched.insert_check(of, at);
            drop(watched);
            self.look_sooner(sooner);
        }
    }

    /// How many leases are being watched.
    pub(crate) fn len(&self) -> usize {
        lock(&self.watched).len()
    }

    /// Runs once on each runtime that uses the `Locktopus`. The first to look does what is due.
    pub(crate) async fn run(self: Arc<Self>, services: Weak<Services>, closed: CancellationToken) {
        loop {
            // From before the look: it hears of what is put in from now on.
            let sooner = self.sooner.notified();
            let due = lock(&self.watched).look();
            let next = due.next;
            if !due.is_empty() && !self.attend(due, &services) {
                return;
            }
            let pause = async {
                match next {
                    Next::AtOnce => tokio::task::yield_now().await,
                    Next::At(at) => tokio::time::sleep_until(at).await,
                    Next::Never => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = closed.cancelled() => return,
                () = sooner => {}
                () = pause => {}
            }
        }
    }

    /// Does what is due. False: there is nobody left to do it for.
    fn attend(self: &Arc<Self>, due: Due, services: &Weak<Services>) -> bool {
        // Outside the lock: ending a lease runs whatever waits for its loss.
        let mut ended = due.held_too_long;
        for over in due.over {
            over.announce();
            let lease = over.lease;
            tracing::warn!(lock = %lease.target, cause = lease.lost().map(tracing::field::display), "lock lost");
            ended.push(lease);
        }
        let Some(services) = services.upgrade() else {
            return false;
        };
        // Its guard may be there for long, and outlive a shutdown, which gives back what is watched. One that is passed on has seen
        // to that by itself.
        for lease in ended {
            if lease.is_held_too_long() && lease.begin_release() {
                drop(Owed::new(Arc::clone(&services), lease));
            }
        }
        for of in due.checks {
            if let Some(of) = of.upgrade() {
                of.check(&services, due.now);
            }
        }
        let mut renew: Vec<_> = due
            .renew
            .into_iter()
            .map(|watched| {
                let lease = renewal_lease(&watched.lease, due.now, &services);
                let shard = services.backend.shard(&watched.lease.target);
                ((shard, lease), watched)
            })
            .collect();
        renew.sort_by_key(|(together, _)| *together);
        let mut renew = renew.into_iter().peekable();
        while let Some((together, first)) = renew.next() {
            let mut batch = vec![first];
            while batch.len() < BATCH
                && let Some((_, next)) = renew.next_if(|(other, _)| *other == together)
            {
                batch.push(next);
            }
            let (watchdog, services_) = (Arc::clone(self), Arc::clone(&services));
            let (_, lease) = together;
            services
                .tasks
                .spawn(async move { watchdog.renew(&services_, batch, lease).await });
        }
        true
    }

    async fn renew(&self, services: &Services, mut batch: Vec<Watched>, lease: Duration) {
        let sent = clock::now();
        batch.retain(|watched| watched.lease.is_active());
        if batch.is_empty() {
            return;
        }
        // A third of the lease is left for a second try, and a third to spare.
        let mut until = sent + services.call_timeout().min(lease / RENEWALS_PER_LEASE);
        let mut requests = Vec::with_capacity(batch.len());
        let usual = services.backend.info().token_retention;
        for Watched { lease: state, .. } in &batch {
            let (request, valid_until) = state.extension(lease, usual, sent);
            until = until.min(valid_until);
            requests.push(request);
        }
        // Even when the deadline is near, the answer gets a moment to arrive: a lease saved late is saved.
        let deadline = until.max(sent + Duration::from_millis(5)).timer();
        let answers = services.extend(&requests, deadline).await;
        let valid_until = services.settings.margin.valid_until(sent, lease);
        for ((watched, request), answer) in batch.iter().zip(&requests).zip(&answers) {
            if matches!(answer, Ok(ExtendOutcome::Extended)) {
                watched.lease.token_kept(sent, request.keep_token);
            }
        }
        let mut extensions = Extensions::default();
        let lost = self.renewed(&batch, answers, valid_until, &mut extensions);
        services.observer.extended(&extensions);
        Losses(lost).tell(services).await;
    }

    /// Notes the answers to a renewal. Gives the leases that turn out to be lost.
    fn renewed(
        &self,
        batch: &[Watched],
        answers: Vec<Result<ExtendOutcome, BackendError>>,
        valid_until: BootInstant,
        extensions: &mut Extensions,
    ) -> Vec<(Arc<LeaseState>, LostCause)> {
        let (now, mut lost, mut look_sooner) = (clock::now(), Vec::new(), false);
        // Usually all of a batch have the same lease.
        let mut usual = None;
        let mut leases = lock(&self.watched);
        let origin = leases.origin();
        for (watched, answer) in batch.iter().zip(answers) {
            let (slot, state) = (watched.slot, &watched.lease);
            // It may have been released, and its place taken, while the renewal was under way.
            let Some(entry) = leases.get(slot, state) else {
                continue;
            };
            entry.in_flight = None;
            let deadline = match answer {
                Ok(ExtendOutcome::Extended) => {
                    let failures = entry.failures.take();
                    let due = failures.map(|failures| failures.since).or(entry.renew_at);
                    extensions.note(&state.target, now.since(due.unwrap_or(now)));
                    let (lease, deadline) = state.confirmed(valid_until);
                    let renew_at = match usual {
                        Some((usual, renew_at)) if usual == lease => renew_at,
                        _ => renewal(origin, now, lease),
                    };
                    usual = Some((lease, renew_at));
                    entry.renew_at = Some(renew_at);
                    deadline
                }
                Ok(outcome) => {
                    leases.remove(slot);
                    // A hold that is being released is expected to be gone.
                    if state.is_active() {
                        let cause = match outcome {
                            ExtendOutcome::TakenOver => LostCause::TakenOver,
                            ExtendOutcome::Extended | ExtendOutcome::Missing => LostCause::Missing,
                        };
                        lost.push((Arc::clone(state), cause));
                    }
                    continue;
                }
                Err(error) => {
                    tracing::debug!(lock = %state.target, %error, "renewal failed, will try again");
                    let due = entry.renew_at.unwrap_or(now);
                    let failures = entry.failures.get_or_insert_with(|| Failures::since(due));
                    let pause = FIRST_RETRY * 2_u32.pow(failures.count.min(4));
                    failures.count += 1;
                    failures.detail = error.to_string();
                    entry.renew_at = Some(now + pause.min(state.lease() / 8));
                    state.valid_until()
                }
            };
            let Sooner(sooner) = leases.put_right(slot, deadline);
            look_sooner |= sooner;
        }
        drop(leases);
        self.look_sooner(Sooner(look_sooner));
        lost
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::engine::settings::Settings;
    use crate::test_backend::{TestBackend, away, grant, sleep_machine};
    use crate::{CohortSettings, LockError, LockGuard, Locktopus};

    const LIMIT: Duration = Duration::from_secs(1);

    type Acquiring = Pin<Box<dyn Future<Output = Result<LockGuard, LockError>> + Send>>;

    /// A holder whose time is over, which nobody has noticed, and one that waits in the same process.
    async fn over() -> (LockGuard, Acquiring) {
        let cohort = CohortSettings {
            turns: 64,
            budget: LIMIT * 60,
        };
        let builder = Locktopus::builder(TestBackend::new()).cohort(cohort);
        let locks = builder.build().unwrap();
        let holder = locks.lock("a").max_hold(LIMIT).acquire().await.unwrap();
        let mut next: Acquiring = Box::pin(locks.lock("a").acquire());
        assert!(next.as_mut().now_or_never().is_none());
        // The watchdog does not run meanwhile.
        sleep_machine(LIMIT * 2);
        (holder, next)
    }

    async fn is_held_for_good(next: LockGuard) {
        for _ in 0..100 {
            next.ensure_valid().unwrap();
            tokio::time::sleep(LIMIT).await;
        }
        next.release().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_found_over_and_passed_on_before_it_is_told_is_not_the_next_ones_loss() {
        let (holder, next) = over().await;
        let services = Arc::clone(holder.services());
        let watchdog = &services.watchdog;
        let due = lock(&watchdog.watched).look();
        assert_eq!(due.over.len(), 1);
        drop(holder);
        let next = next.await.unwrap();
        assert!(watchdog.attend(due, &Arc::downgrade(&services)));
        is_held_for_good(next).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_passed_on_before_it_is_found_over_goes_on() {
        let (holder, next) = over().await;
        let services = Arc::clone(holder.services());
        let watchdog = &services.watchdog;
        drop(holder);
        let due = lock(&watchdog.watched).look();
        assert!(watchdog.attend(due, &Arc::downgrade(&services)));
        is_held_for_good(next.await.unwrap()).await;
    }

    /// Somebody looked at the deadline, found that it had passed, and is about to say so.
    #[tokio::test(start_paused = true)]
    async fn what_was_over_for_one_is_not_over_for_the_next() {
        let (holder, next) = over().await;
        let state = Arc::clone(holder.state());
        drop(holder);
        let next = next.await.unwrap();
        state.expire();
        is_held_for_good(next).await;
    }

    /// A watchdog that watches leases of these lengths, all granted now, and the renewal of all of them.
    fn watching(leases: &[Duration]) -> (Watchdog, Vec<Watched>) {
        let watchdog = Watchdog::default();
        let watch = |lease: &Duration| {
            let lease = LeaseState::of(grant(*lease));
            let Ticket(slot) = watchdog.watch(&lease).unwrap();
            Watched { slot, lease }
        };
        let batch = leases.iter().map(watch).collect();
        (watchdog, batch)
    }

    /// After how long the lease is to be renewed next.
    fn renewed_in(watchdog: &Watchdog, watched: &Watched) -> Duration {
        let mut leases = lock(&watchdog.watched);
        let entry = leases.get(watched.slot, &watched.lease).unwrap();
        entry.renew_at.unwrap().since(clock::now())
    }

    impl Watchdog {
        /// All of a batch are answered like this.
        fn answered(&self, batch: &[Watched], answer: fn() -> Result<ExtendOutcome, BackendError>) {
            let answers = batch.iter().map(|_| answer()).collect();
            let until = clock::now() + LIMIT * 24;
            let lost = self.renewed(batch, answers, until, &mut Extensions::default());
            assert!(lost.is_empty());
        }
    }

    /// Those whose hold may not last much longer ask for the same lease, whatever they have.
    #[tokio::test(start_paused = true)]
    async fn each_lease_of_a_batch_is_renewed_after_a_third_of_its_own() {
        let leases = [24, 12, 12, 24, 6].map(|seconds| LIMIT * seconds);
        let (watchdog, batch) = watching(&leases);
        tokio::time::advance(LIMIT).await;
        watchdog.answered(&batch, || Ok(ExtendOutcome::Extended));
        let renewed: Vec<_> = batch.iter().map(|w| renewed_in(&watchdog, w)).collect();
        assert_eq!(renewed, leases.map(|lease| lease / 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_fails_is_tried_again_less_and_less_often() {
        let (watchdog, batch) = watching(&[LIMIT * 24, Duration::from_millis(800)]);
        let fail = || {
            watchdog.answered(&batch, || Err(away()));
            [0, 1].map(|at| renewed_in(&watchdog, &batch[at]).as_millis())
        };
        // Not less often than eight times in a lease.
        let pauses = [[20, 20], [40, 40], [80, 80], [160, 100], [320, 100]];
        for pauses in pauses.iter().chain(&pauses[4..]) {
            assert_eq!(fail(), *pauses);
        }
        // After one that did not fail it begins anew.
        watchdog.answered(&batch, || Ok(ExtendOutcome::Extended));
        assert_eq!(fail(), pauses[0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_extended_by_its_holder_is_renewed_after_a_third_of_that() {
        let (watchdog, batch) = watching(&[LIMIT * 24]);
        let Watched { slot, lease } = &batch[0];
        lease.extended(LIMIT * 12, clock::now() + LIMIT * 12);
        assert_eq!(renewed_in(&watchdog, &batch[0]), LIMIT * 8);
        watchdog.extended(Ticket(*slot), lease);
        assert_eq!(renewed_in(&watchdog, &batch[0]), LIMIT * 4);
    }

    /// Whoever has a lease that is lost for another reason gives it back when it comes to know.
    #[tokio::test(start_paused = true)]
    async fn only_what_was_held_too_long_is_given_back_for_its_holder() {
        let backend = Arc::new(TestBackend::new());
        let services = Services::start(backend, Settings::default());
        let watchdog = &services.watchdog;
        let (lost, mut too_long) = (grant(LIMIT), grant(LIMIT * 2));
        too_long.hold_until = Some(clock::now() + LIMIT);
        let leases = [lost, too_long].map(LeaseState::of);
        for lease in &leases {
            assert!(watchdog.watch(lease).is_some());
        }
        // The watchdog does not run meanwhile.
        sleep_machine(LIMIT);
        let due = lock(&watchdog.watched).look();
        assert_eq!(due.over.len(), 2);
        assert!(watchdog.attend(due, &Arc::downgrade(&services)));
        let releasing = leases.each_ref().map(|lease| lease.is_releasing());
        assert_eq!(releasing, [false, true]);
    }
}
