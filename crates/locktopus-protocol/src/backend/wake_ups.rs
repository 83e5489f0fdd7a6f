//! Wakes waiters by messages on the channels of locks.

use async_trait::async_trait;
use locktopus_contract::{BackendError, LockTarget, WakeStream, WakeUps};
use tokio::time::Instant;

use super::RedisBackend;
use super::context::Context;
use crate::hub::LockChannels;
use crate::kinds::{self, RedisKind};

#[async_trait]
impl WakeUps for RedisBackend {
    fn listen(&self, target: &LockTarget) -> Option<WakeStream> {
        let context = self.contexts.here().ok()?;
        // Every first attempt calls this. If nothing in the process waits, the names are not built.
        if context.hub.is_idle() {
            return None;
        }
        context.hub.listening(&context.topic(target)?)
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        let context = self.contexts.here()?;
        context.executor.check_open()?;
        let topic = context.topic(target).ok_or_else(|| {
            let message = "a single-key mutex has no channel to listen on";
            context.executor.unsupported(message)
        })?;
        let joined = context.hub.join(topic, deadline).await;
        joined.map_err(|error| context.executor.read_error(error))
    }
}

impl Context {
    /// The channels to listen to for a target.
    pub(super) fn topic(&self, target: &LockTarget) -> Option<LockChannels> {
        let keys = self.keys(target);
        let announced = keys.channel.clone()?;
        Some(LockChannels {
            inbox: self.inbox(&keys).map(Into::into),
            native: keys.native.clone(),
            wakes_all: kinds::of(target.kind()).is_some_and(RedisKind::opens),
            plain: keys.is_plain(),
            announced,
        })
    }
}
