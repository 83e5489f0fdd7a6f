//! Maintains the record of a labelled instance at the backend. No lock depends on it.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::clock::timer_in;
use locktopus_contract::{
    Announcement, BackendError, BackendErrorKind, DynBackend, InstanceId, InstanceRecord,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::engine::jitter::jitter;

/// How long a record is kept. Four announcements may be lost before it expires.
pub(crate) const RECORD_TTL: Duration = Duration::from_secs(120);
/// The longest pause between two announcements.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(25);
/// The first pause after a failure; it doubles. Also the shortest pause if the record may be lost.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// One labelled instance.
#[derive(Debug)]
pub(crate) struct Announcer {
    pub(crate) backend: DynBackend,
    pub(crate) namespace: String,
    pub(crate) instance: InstanceId,
    pub(crate) record: InstanceRecord,
    /// How long the record stays after the end.
    pub(crate) left: Duration,
    /// Notified when the servers may have lost the record.
    pub(crate) doubted: Arc<Notify>,
    pub(crate) call_timeout: Duration,
}

impl Announcer {
    /// Announces until the instance is shut down or gone. Then it removes the record, or leaves it
    /// for as long as the label says.
    pub(crate) async fn run(
        self: Arc<Self>,
        closing: CancellationToken,
        closed: CancellationToken,
    ) {
        tokio::select! {
            biased;
            () = closing.cancelled() => {}
            () = closed.cancelled() => {}
            // The backend does not store records.
            () = self.beat(&self.record) => return,
        }
        let last = if self.left.is_zero() {
            self.say(None, RECORD_TTL).await
        } else {
            self.say(Some(self.record.clone()), self.left).await
        };
        if let Err(error) = last {
            tracing::debug!(%error, "the record of this instance stays until its time is over");
        }
    }

    /// Returns only if continuing is useless.
    async fn beat(&self, record: &InstanceRecord) {
        let mut pause = FIRST_PAUSE;
        let mut failing = false;
        loop {
            let begun = Instant::now();
            match self.say(Some(record.clone()), RECORD_TTL).await {
                Ok(()) => {
                    if failing {
                        tracing::info!(
                            label = record.label(),
                            "this instance is shown by its label"
                        );
                    }
                    (pause, failing) = (ANNOUNCE_INTERVAL, false);
                }
                Err(error) => {
                    if !failing {
                        tracing::warn!(
                            label = record.label(), %error,
                            "this instance may be shown without its label; its locks are not affected"
                        );
                    }
                    let ends = [BackendErrorKind::Unsupported, BackendErrorKind::Closed];
                    if ends.contains(&error.kind()) {
                        return;
                    }
                    pause = if failing {
                        pause.saturating_mul(2).min(ANNOUNCE_INTERVAL)
                    } else {
                        FIRST_PAUSE
                    };
                    failing = true;
                }
            }
            // So that instances started together do not announce at the same moment.
            let next = sleep_until(Instant::now() + jitter(pause * 4 / 5, pause));
            let again = async {
                self.doubted.notified().await;
                sleep_until(begun + FIRST_PAUSE).await;
            };
            tokio::select! {
                () = next => {}
                () = again => {}
            }
        }
    }

    async fn say(
        &self,
        record: Option<InstanceRecord>,
        keep: Duration,
    ) -> Result<(), BackendError> {
        let announcement = Announcement {
            namespace: self.namespace.clone(),
            instance: self.instance,
            record,
            keep,
            deadline: timer_in(self.call_timeout),
        };
        super::calls::announce(&self.backend, &announcement).await
    }
}
