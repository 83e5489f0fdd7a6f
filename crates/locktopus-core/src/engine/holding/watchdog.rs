//! One watchdog for all leases of a `Locktopus`: it renews them and reports when they are lost. It
//! runs on every runtime that the `Locktopus` is used on, over one index, so leases are served as
//! long as one of them runs.
//!
//! Leases are indexed by their next due time: a renewal, a retry, or the end of validity. Leases
//! due together are renewed together, in one batch per shard. Each batch is its own task, so a node
//! that does not answer delays no other node's leases. While a batch is under way, its leases are
//! due at their deadlines, so even a network failure does not delay the report of a loss.
//!
//! | part | what it does |
//! |---|---|
//! | this file | the loop that waits for due entries; `renew` extends a batch, judges answers |
//! | `watched_leases` | the watched leases, and the next step for each |
//! | `timer_index` | finds due entries, which it keeps by the millisecond |
//! | `timing` | when a lease is renewed, and for how long |
//! | `due` | the entries found due in one check |

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

use self::due::{Due, NextCheck};
use self::timing::{renewal_length, renewal_time};
use self::watched_leases::{Failures, Sooner, WatchedLeases};
use crate::engine::error::LostCause;
use crate::engine::holding::lease::BackendLease;
use crate::engine::holding::services::Services;
use crate::engine::observe::ExtensionMeter;

/// A renewal is due after this part of the lease, as in Redisson.
const RENEWALS_PER_LEASE: u32 = 3;
/// Renewal times are rounded down to this part of their period, so that neighbours share a batch.
const BATCHES_PER_PERIOD: u32 = 32;
/// Largest batch. A script over 100 keys takes 0.14 ms of the server's time; one over 1,000 stalls
/// all its clients.
const MAX_BATCH: usize = 100;
/// How often the watchdog checks whether the machine was asleep, while there are leases.
const SLEEP_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Most leases handled in one check, several batches, so that other tasks of the runtime get to
/// run.
const MAX_DUE: usize = 10 * MAX_BATCH;
/// First pause before a failed renewal is retried.
const FIRST_RETRY: Duration = Duration::from_millis(20);

/// A check that the watchdog makes at a certain time, so that it needs no timer or task of its own:
/// for the local queues of waiting tasks.
pub(crate) trait ScheduledCheck: Send + Sync {
    /// The time has come.
    fn check(self: Arc<Self>, services: &Arc<Services>, now: BootInstant);
}

/// The leases of one `Locktopus`.
#[derive(Debug)]
pub(crate) struct Watchdog {
    watched: Mutex<WatchedLeases>,
    /// Notified when an entry is due before the next planned check.
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

/// Leases that the backend no longer holds for their owners. Dropping it notifies the holders.
pub(crate) struct Losses(pub(crate) Vec<(Arc<BackendLease>, LostCause)>);

impl Losses {
    /// Notifies the holders, with the reason if an operator broke the lock. It waits only a moment
    /// for that reason; if this future is dropped, the holders hear of the loss without it.
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

impl Watchdog {
    /// Starts watching a lease that was granted at `granted_at`. False after `close`: its loss
    /// would not be reported, so it ends at once.
    #[must_use]
    pub(crate) fn watch(&self, lease: &Arc<BackendLease>, granted_at: BootInstant) -> bool {
        let mut watched = lock(&self.watched);
        if watched.closed {
            drop(watched);
            lease.end(LostCause::ShutDown);
            return false;
        }
        let sooner = watched.insert(lease, granted_at);
        drop(watched);
        self.wake_if(sooner);
        true
    }

    fn wake_if(&self, Sooner(sooner): Sooner) {
        if sooner {
            self.sooner.notify_waiters();
        }
    }

    /// Stops watching for good, and returns the watched leases.
    pub(crate) fn close(&self) -> Vec<Arc<BackendLease>> {
        lock(&self.watched).close()
    }

    /// Stops watching a lease. Does nothing if it was lost and removed meanwhile.
    pub(crate) fn forget(&self, lease: &BackendLease) {
        lock(&self.watched).remove(lease);
    }

    /// Moves a lease to its new position after its deadline moved.
    pub(crate) fn extended(&self, lease: &BackendLease) {
        let now = clock::now();
        let mut watched = lock(&self.watched);
        let renew_at = lease
            .renewed
            .then(|| renewal_time(watched.origin(), now, lease.length()));
        if let Some(entry) = watched.get(lease) {
            entry.renew_at = renew_at;
            let sooner = watched.reschedule(lease, lease.valid_until());
            drop(watched);
            self.wake_if(sooner);
        }
    }

    /// The leases being watched.
    pub(crate) fn leases(&self) -> Vec<Arc<BackendLease>> {
        lock(&self.watched).leases().cloned().collect()
    }

    /// Checks a lease's deadline again: its maximum hold time has changed.
    pub(crate) fn retime(&self, lease: &BackendLease) {
        let sooner = lock(&self.watched).reschedule(lease, lease.valid_until());
        self.wake_if(sooner);
    }

    /// Schedules a check for this instant.
    pub(crate) fn schedule_check(&self, of: Weak<dyn ScheduledCheck>, at: BootInstant) {
        let mut watched = lock(&self.watched);
        if !watched.closed {
            let sooner = watched.insert_check(of, at);
            drop(watched);
            self.wake_if(sooner);
        }
    }

    /// The number of watched leases.
    pub(crate) fn len(&self) -> usize {
        lock(&self.watched).len()
    }

    /// Runs once on each runtime that uses the `Locktopus`. The first to check does what is due.
    pub(crate) async fn run(self: Arc<Self>, services: Weak<Services>, closed: CancellationToken) {
        loop {
            // Created before the check, so that it hears of entries added from now on.
            let sooner = self.sooner.notified();
            let due = lock(&self.watched).take_due();
            let next = due.next;
            if !due.is_empty() && !self.handle(due, &services) {
                return;
            }
            let pause = async {
                match next {
                    NextCheck::AtOnce => tokio::task::yield_now().await,
                    NextCheck::At(at) => tokio::time::sleep_until(at).await,
                    NextCheck::Never => std::future::pending().await,
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

    /// Does what is due. False if the services are gone.
    fn handle(self: &Arc<Self>, due: Due, services: &Weak<Services>) -> bool {
        // Outside the lock, because ending a lease runs tasks that wait for its loss.
        let mut ended = due.held_too_long;
        for (lease, cause) in due.over {
            tracing::warn!(lock = %lease.target, %cause, "lock lost");
            lease.end(cause);
            ended.push(lease);
        }
        let Some(services) = services.upgrade() else {
            return false;
        };
        // A guard may stay for long, and a shutdown gives back only watched leases.
        for lease in ended {
            if lease.is_held_too_long() {
                drop(lease.close(&services, LostCause::MaxHold));
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
            .map(|lease| {
                let length = renewal_length(&lease, due.now, &services);
                let shard = services.backend.shard(&lease.target);
                ((shard, length), lease)
            })
            .collect();
        renew.sort_by_key(|(together, _)| *together);
        let mut renew = renew.into_iter().peekable();
        while let Some((together, first)) = renew.next() {
            let mut batch = vec![first];
            while batch.len() < MAX_BATCH
                && let Some((_, next)) = renew.next_if(|(other, _)| *other == together)
            {
                batch.push(next);
            }
            let (watchdog, services_) = (Arc::clone(self), Arc::clone(&services));
            let (_, length) = together;
            services
                .tasks
                .spawn(async move { watchdog.renew(&services_, batch, length).await });
        }
        true
    }

    async fn renew(
        &self,
        services: &Services,
        mut batch: Vec<Arc<BackendLease>>,
        length: Duration,
    ) {
        let sent = clock::now();
        batch.retain(|lease| lease.is_active());
        if batch.is_empty() {
            return;
        }
        // A third of the lease is left for a second try, and a third as a reserve.
        let mut until = sent + services.call_timeout().min(length / RENEWALS_PER_LEASE);
        let mut requests = Vec::with_capacity(batch.len());
        let usual = services.backend.info().token_retention;
        for lease in &batch {
            let (request, valid_until) = lease.extension(length, usual, sent);
            until = until.min(valid_until);
            requests.push(request);
        }
        // Even near the deadline, the answer gets a moment to arrive: a late rescue is still one.
        let deadline = until.max(sent + Duration::from_millis(5)).timer();
        let answers = services.extend(&requests, deadline).await;
        let valid_until = services.settings.margin.valid_until(sent, length);
        for ((lease, request), answer) in batch.iter().zip(&requests).zip(&answers) {
            if matches!(answer, Ok(ExtendOutcome::Extended)) {
                lease.token_kept(sent, request.keep_token);
            }
        }
        let mut extensions = ExtensionMeter::default();
        let lost = self.renewed(&batch, answers, valid_until, &mut extensions);
        services.observer.extended(&extensions);
        Losses(lost).tell(services).await;
    }

    /// Notes the answers to a renewal. Returns the leases that turn out to be lost.
    fn renewed(
        &self,
        batch: &[Arc<BackendLease>],
        answers: Vec<Result<ExtendOutcome, BackendError>>,
        valid_until: BootInstant,
        extensions: &mut ExtensionMeter,
    ) -> Vec<(Arc<BackendLease>, LostCause)> {
        let (now, mut lost, mut any_sooner) = (clock::now(), Vec::new(), false);
        // Usually all leases of a batch have the same length.
        let mut usual = None;
        let mut leases = lock(&self.watched);
        let origin = leases.origin();
        for (lease, answer) in batch.iter().zip(answers) {
            // It may have been released, and its slot reused, while the renewal was under way.
            let Some(entry) = leases.get(lease) else {
                continue;
            };
            entry.in_flight = None;
            let deadline = match answer {
                Ok(ExtendOutcome::Extended) => {
                    let failures = entry.failures.take();
                    let due = failures.map(|failures| failures.since).or(entry.renew_at);
                    extensions.note(&lease.target, now.since(due.unwrap_or(now)));
                    let (length, deadline) = lease.confirmed(valid_until);
                    let renew_at = match usual {
                        Some((usual, renew_at)) if usual == length => renew_at,
                        _ => renewal_time(origin, now, length),
                    };
                    usual = Some((length, renew_at));
                    entry.renew_at = Some(renew_at);
                    deadline
                }
                Ok(outcome) => {
                    leases.remove(lease);
                    // A lock that is being released is expected to be gone.
                    if lease.is_active() {
                        let cause = match outcome {
                            ExtendOutcome::TakenOver => LostCause::TakenOver,
                            ExtendOutcome::Extended | ExtendOutcome::Missing => LostCause::Missing,
                        };
                        lost.push((Arc::clone(lease), cause));
                    }
                    continue;
                }
                Err(error) => {
                    tracing::debug!(lock = %lease.target, %error, "renewal failed, will try again");
                    let due = entry.renew_at.unwrap_or(now);
                    let failures = entry.failures.get_or_insert_with(|| Failures::since(due));
                    let pause = FIRST_RETRY * 2_u32.pow(failures.count.min(4));
                    failures.count += 1;
                    failures.detail = error.to_string();
                    entry.renew_at = Some(now + pause.min(lease.length() / 8));
                    lease.valid_until()
                }
            };
            let Sooner(sooner) = leases.reschedule(lease, deadline);
            any_sooner |= sooner;
        }
        drop(leases);
        self.wake_if(Sooner(any_sooner));
        lost
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::engine::settings::Settings;
    use crate::test_backend::{away, granted, sleep_machine};
    use crate::{CohortSettings, LockError, LockGuard, Locktopus};
    use locktopus_memory::MemoryBackend;

    const LIMIT: Duration = Duration::from_secs(1);

    type Acquiring = Pin<Box<dyn Future<Output = Result<LockGuard, LockError>> + Send>>;

    /// A holder whose time is over, which no task has noticed, and a waiter in the same process.
    async fn over() -> (LockGuard, Acquiring) {
        let cohort = CohortSettings {
            turns: 64,
            budget: LIMIT * 60,
        };
        let builder = Locktopus::builder(MemoryBackend::new()).cohort(cohort);
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
        let due = lock(&watchdog.watched).take_due();
        assert_eq!(due.over.len(), 1);
        drop(holder);
        let next = next.await.unwrap();
        assert!(watchdog.handle(due, &Arc::downgrade(&services)));
        is_held_for_good(next).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_passed_on_before_it_is_found_over_goes_on() {
        let (holder, next) = over().await;
        let services = Arc::clone(holder.services());
        let watchdog = &services.watchdog;
        drop(holder);
        let due = lock(&watchdog.watched).take_due();
        assert!(watchdog.handle(due, &Arc::downgrade(&services)));
        is_held_for_good(next.await.unwrap()).await;
    }

    /// A task checked the deadline, found that it had passed, and is about to report it.
    #[tokio::test(start_paused = true)]
    async fn what_was_over_for_one_is_not_over_for_the_next() {
        let (holder, next) = over().await;
        let turn = Arc::clone(holder.turn());
        drop(holder);
        let next = next.await.unwrap();
        turn.expire();
        is_held_for_good(next).await;
    }

    /// A watchdog that watches leases of these lengths, all granted now, and their renewal.
    fn watching(leases: &[Duration]) -> (Watchdog, Vec<Arc<BackendLease>>) {
        let watchdog = Watchdog::default();
        let watch = |lease: &Duration| {
            let lease = Arc::new(granted(*lease));
            assert!(watchdog.watch(&lease, clock::now()));
            lease
        };
        let batch = leases.iter().map(watch).collect();
        (watchdog, batch)
    }

    /// The time until the lease's next renewal.
    fn renewed_in(watchdog: &Watchdog, lease: &BackendLease) -> Duration {
        let mut leases = lock(&watchdog.watched);
        let entry = leases.get(lease).unwrap();
        entry.renew_at.unwrap().since(clock::now())
    }

    impl Watchdog {
        /// Gives all of a batch this answer.
        fn answered(
            &self,
            batch: &[Arc<BackendLease>],
            answer: fn() -> Result<ExtendOutcome, BackendError>,
        ) {
            let answers = batch.iter().map(|_| answer()).collect();
            let until = clock::now() + LIMIT * 24;
            let lost = self.renewed(batch, answers, until, &mut ExtensionMeter::default());
            assert!(lost.is_empty());
        }
    }

    /// Leases near their maximum hold time request the same length, even if their own differ.
    #[tokio::test(start_paused = true)]
    async fn each_lease_of_a_batch_is_renewed_after_a_third_of_its_own() {
        let leases = [24, 12, 12, 24, 6].map(|seconds| LIMIT * seconds);
        let (watchdog, batch) = watching(&leases);
        tokio::time::advance(LIMIT).await;
        watchdog.answered(&batch, || Ok(ExtendOutcome::Extended));
        let renewed: Vec<_> = batch
            .iter()
            .map(|lease| renewed_in(&watchdog, lease))
            .collect();
        assert_eq!(renewed, leases.map(|lease| lease / 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_fails_is_tried_again_less_and_less_often() {
        let (watchdog, batch) = watching(&[LIMIT * 24, Duration::from_millis(800)]);
        let fail = || {
            watchdog.answered(&batch, || Err(away()));
            [0, 1].map(|at| renewed_in(&watchdog, &batch[at]).as_millis())
        };
        // At least eight times per lease.
        let pauses = [[20, 20], [40, 40], [80, 80], [160, 100], [320, 100]];
        for pauses in pauses.iter().chain(&pauses[4..]) {
            assert_eq!(fail(), *pauses);
        }
        // After a success the pauses start over.
        watchdog.answered(&batch, || Ok(ExtendOutcome::Extended));
        assert_eq!(fail(), pauses[0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_extended_by_its_holder_is_renewed_after_a_third_of_that() {
        let (watchdog, batch) = watching(&[LIMIT * 24]);
        let lease = &batch[0];
        lease.extended(LIMIT * 12, clock::now() + LIMIT * 12);
        assert_eq!(renewed_in(&watchdog, lease), LIMIT * 8);
        watchdog.extended(lease);
        assert_eq!(renewed_in(&watchdog, lease), LIMIT * 4);
    }

    /// The holder of a lease lost for another reason gives it back when it notices.
    #[tokio::test(start_paused = true)]
    async fn only_what_was_held_too_long_is_given_back_for_its_holder() {
        let backend = Arc::new(MemoryBackend::new());
        let services = Services::start(backend, Settings::default());
        let watchdog = &services.watchdog;
        let (lost, too_long) = (granted(LIMIT), granted(LIMIT * 2));
        too_long.limit_hold(Some(clock::now() + LIMIT));
        let leases = [lost, too_long].map(Arc::new);
        for lease in &leases {
            assert!(watchdog.watch(lease, clock::now()));
        }
        // The watchdog does not run meanwhile.
        sleep_machine(LIMIT);
        let due = lock(&watchdog.watched).take_due();
        assert_eq!(due.over.len(), 2);
        assert!(watchdog.handle(due, &Arc::downgrade(&services)));
        let releasing = leases.each_ref().map(|lease| lease.is_releasing());
        assert_eq!(releasing, [false, true]);
    }
}
