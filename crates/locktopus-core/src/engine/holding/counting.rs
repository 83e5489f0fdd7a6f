//! Operations on the counter of a semaphore or a latch. Each takes effect once, however often it is
//! sent.

use std::time::Duration;

use locktopus_contract::clock::timer_in;
use locktopus_contract::{
    BackendError, CounterAction, CounterOutcome, CounterRequest, Executed, LockTarget, OwnerId,
};
use tokio::time::Instant;

use crate::engine::error::{LockError, Phase};
use crate::engine::holding::services::Services;

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How long to repeat an operation that may have run, counted from its first request. Backends
/// remember their answers for twice as long, and would repeat the operation after that.
const REPEAT_FOR: Duration = Duration::from_secs(60);

impl Services {
    /// Reads or changes the counter. While the backend is unreachable, it retries under the same
    /// operation id for as long as waiters tolerate an outage.
    pub(crate) async fn count(
        &self,
        target: LockTarget,
        action: CounterAction,
    ) -> Result<CounterOutcome, LockError> {
        let operation = OwnerId::generate();
        let mut limit = timer_in(self.settings.tolerate_outage);
        let (mut pause, mut may_have_run) = (FIRST_PAUSE, false);
        let source = loop {
            if self.closing.is_cancelled() {
                return Err(LockError::ShutDown);
            }
            let sent = Instant::now();
            let request = CounterRequest {
                target: target.clone(),
                operation: operation.clone(),
                action,
                deadline: timer_in(self.call_timeout()),
            };
            let call = self.backend.counter(&request);
            let error = match self.within(request.deadline, call).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => error,
            };
            if error.executed() == Executed::Maybe && !may_have_run {
                may_have_run = true;
                // A read may be repeated without limit.
                if action != CounterAction::Read {
                    limit = limit.min(sent + REPEAT_FOR);
                }
            }
            if !error.is_transient() || Instant::now() + pause >= limit {
                break error;
            }
            tracing::debug!(lock = %target, %error, "counting failed, will try again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        };
        let phase = match action {
            CounterAction::Read => Phase::Inspect,
            _ => Phase::Count,
        };
        Err(LockError::Backend {
            target,
            phase,
            source: if may_have_run {
                perhaps_executed(source)
            } else {
                source
            },
        })
    }
}

/// The last error may say that this request did not run, but an earlier one may have.
fn perhaps_executed(error: BackendError) -> BackendError {
    if error.executed() == Executed::Maybe {
        return error;
    }
    let message = error.message().to_owned();
    BackendError::new(error.backend(), error.kind(), Executed::Maybe, message).with_source(error)
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::engine::settings::Settings;
    use crate::test_backend::Says;
    use crate::{BackendInfo, LockKind, LockName};

    /// Counts on an unreachable backend: when it gave up, and the phase of the error.
    async fn given_up(action: CounterAction) -> (Duration, Phase) {
        let settings = Settings {
            tolerate_outage: Duration::from_secs(1),
            ..Settings::default()
        };
        let info = BackendInfo::new("test", "test", Duration::from_millis(100));
        let services = Services::start(Says::that(info), settings);
        let target = LockTarget::new(LockName::new("n").unwrap(), LockKind::Latch);
        let begun = Instant::now();
        let error = services.count(target, action).await.unwrap_err();
        let LockError::Backend { phase, .. } = error else {
            panic!("{error:?}");
        };
        (begun.elapsed(), phase)
    }

    /// The attempts come after 10, 30, 70, 150, 310 and 630 milliseconds. The next one would come
    /// after 1,130.
    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_try_that_would_come_too_late() {
        for action in [CounterAction::Read, CounterAction::CountDown] {
            assert_eq!(given_up(action).await.0, Duration::from_millis(630));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reading_a_number_is_told_from_changing_it() {
        let read = given_up(CounterAction::Read).await;
        assert!(matches!(read.1, Phase::Inspect), "{read:?}");
        let changed = given_up(CounterAction::CountDown).await;
        assert!(matches!(changed.1, Phase::Count), "{changed:?}");
    }
}
