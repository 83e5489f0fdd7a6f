//! The state that everything of one `Locktopus` shares: backend, settings and background work.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use locktopus_contract::clock::LONGEST_WAIT;
use locktopus_contract::internal::OwnerIds;
use locktopus_contract::{DynBackend, PerRuntime, SafetyMode};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::engine::acquisition::cohort::Cohorts;
use crate::engine::holding::announcing::Announcer;
use crate::engine::holding::background::{BackgroundJobs, Home};
use crate::engine::holding::limits::{AttemptLimits, Debts, ShardLimits};
use crate::engine::holding::watchdog::Watchdog;
use crate::engine::observe::Observer;
use crate::engine::settings::Settings;

/// Even a backend in the same room may be busy.
const SHORTEST_FIRST_ANSWER: Duration = Duration::from_millis(50);
/// Enough for the way across an ocean. With a longer one, a short limit is kept even if the lock
/// may be free.
const LONGEST_FIRST_ANSWER: Duration = Duration::from_millis(250);

/// What is needed to take locks, to keep them and to give them back.
pub(crate) struct Services {
    pub(crate) backend: DynBackend,
    pub(crate) settings: Settings,
    /// The tasks of this process that wait for locks.
    pub(crate) cohorts: Arc<Cohorts>,
    pub(crate) observer: Observer,
    /// Creates owner ids. It belongs to this instance alone if the instance has a label.
    pub(crate) ids: Arc<OwnerIds>,
    pub(crate) watchdog: Arc<Watchdog>,
    /// The runtimes this is used on. On each of them the watchdog serves all leases.
    pub(super) homes: PerRuntime<Home>,
    /// Background work under way.
    pub(super) jobs: BackgroundJobs,
    pub(crate) tasks: TaskTracker,
    /// Attempts under way, which may leave something for the reaper.
    pub(crate) attempts: TaskTracker,
    /// The task that maintains the record of a labelled instance.
    pub(crate) announcing: TaskTracker,
    /// Notified when the servers may have lost that record: it is written again.
    pub(crate) record_doubted: Arc<Notify>,
    /// Cancelled by `shutdown`: no new acquisitions.
    pub(crate) closing: CancellationToken,
    /// Cancelled when the grace time is over: everything ends at once.
    pub(crate) closed: CancellationToken,
    /// Bounds the releases under way in the background.
    pub(super) releases: ShardLimits,
    /// Releases owed for attempts whose futures were dropped, and for dropped guards.
    pub(super) debts: Debts,
    /// Bounds the attempts under way.
    pub(super) attempting: AttemptLimits,
}

impl Services {
    pub(crate) fn start(backend: DynBackend, settings: Settings) -> Arc<Self> {
        let services = Arc::new(Self {
            watchdog: Arc::default(),
            observer: Observer::new(backend.info().name, settings.names_in_spans),
            ids: match settings.label {
                Some(_) => Arc::new(OwnerIds::fresh()),
                None => OwnerIds::of_process(),
            },
            backend,
            settings,
            cohorts: Arc::default(),
            homes: PerRuntime::new(),
            jobs: BackgroundJobs::default(),
            tasks: TaskTracker::new(),
            attempts: TaskTracker::new(),
            announcing: TaskTracker::new(),
            record_doubted: Arc::default(),
            closing: CancellationToken::new(),
            closed: CancellationToken::new(),
            releases: ShardLimits::default(),
            debts: Debts::default(),
            attempting: AttemptLimits::default(),
        });
        // This fails outside a runtime. Then the first acquisition on one repeats it.
        let _ = services.here();
        services.announce();
        services
    }

    /// Starts to publish the label, if there is one and the backend stores labels.
    fn announce(self: &Arc<Self>) {
        let label = self.settings.label.as_ref();
        let Some(label) = label.filter(|_| self.backend.instances().is_some()) else {
            return;
        };
        let announcing = Arc::new(Announcer {
            backend: Arc::clone(&self.backend),
            namespace: self.settings.namespace.clone(),
            instance: self.ids.instance(),
            record: label.record().started_at(SystemTime::now()),
            left: label.left(),
            doubted: Arc::clone(&self.record_doubted),
            call_timeout: self.call_timeout(),
        });
        let (closing, closed) = (self.closing.clone(), self.closed.clone());
        // It must not keep the services alive: it ends when they do.
        self.in_background(Some(&self.announcing), move |_| {
            Arc::clone(&announcing).run(closing.clone(), closed.clone())
        });
    }

    pub(crate) fn safety(&self) -> SafetyMode {
        self.backend.info().safety
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        self.backend.info().call_timeout.min(LONGEST_WAIT)
    }

    /// The time that a first attempt has for its answer, however short the wait limit. Otherwise a
    /// limit shorter than the round trip could not take a free lock. Call timeouts are at least
    /// four times as long. If the backend hangs, the shortest wait takes this long, so it stays
    /// short even with long call timeouts.
    pub(crate) fn first_answer(&self) -> Duration {
        (self.call_timeout() / 4).clamp(SHORTEST_FIRST_ANSWER, LONGEST_FIRST_ANSWER)
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Services")
            .field(&self.backend.info().name)
            .finish()
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BackendInfo;
    use crate::test_backend::Says;

    fn of(info: BackendInfo) -> Arc<Services> {
        Services::start(Says::that(info), Settings::default())
    }

    fn first_answer(call_timeout: Duration) -> Duration {
        of(BackendInfo::new("test", "test", call_timeout)).first_answer()
    }

    #[tokio::test(start_paused = true)]
    async fn a_grant_is_worth_what_its_backend_says() {
        let info = BackendInfo::new("test", "test", Duration::from_secs(1));
        let plain = of(info.clone());
        assert_eq!(plain.safety(), SafetyMode::default());
        let safety = SafetyMode::Quorum;
        assert_eq!(of(BackendInfo { safety, ..info }).safety(), safety);
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_answer_has_a_quarter_of_the_time_of_a_call_within_limits() {
        let ms = Duration::from_millis;
        for (call_timeout, expected) in [(100, 50), (400, 100), (1_000, 250), (60_000, 250)] {
            assert_eq!(first_answer(ms(call_timeout)), ms(expected));
        }
    }
}
