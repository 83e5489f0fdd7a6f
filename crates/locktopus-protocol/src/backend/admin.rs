//! Inspection and eviction.

use std::time::Duration;

use locktopus_contract::{BackendError, Eviction, LockState, LockTarget};
use tokio::time::Instant;

use super::context::Context;
use crate::execution::call::{Call, Effect, OnSplit};
use crate::wire::other_kind;

impl Context {
    pub(super) async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let keys = self.keys(target);
        let script = &self.scripts(target.kind())?.inspect;
        let call = Call {
            script,
            keys: &keys.scripts(),
            args: &[],
            slot: keys.slot(),
            deadline,
            on_split: OnSplit::Wait,
        };
        let told = self.run(Effect::Look, call).await;
        let told = told.map_err(|error| other_kind::tell(error, |_| target))?;
        self.decoder(script).state(&told.reply)
    }

    pub(super) async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        let keys = self.keys(target);
        let script = &self.scripts(target.kind())?.evict;
        let retention = self.retention(None, Duration::ZERO).to_string();
        let tokens: &[u8] = if target.kind().has_tokens() {
            b"1"
        } else {
            b"0"
        };
        let mut args = vec![
            self.publish_for(&keys),
            keys.channel.as_deref().unwrap_or_default(),
            retention.as_bytes(),
            tokens,
        ];
        if let Some(notify) = keys.notify_args() {
            args.resize(7, b"");
            args.extend(notify);
        }
        let call = Call {
            script,
            keys: &keys.scripts(),
            args: &args,
            slot: keys.slot(),
            deadline,
            on_split: OnSplit::Wait,
        };
        let told = self.run(Effect::Release, call).await;
        let told = told.map_err(|error| other_kind::tell(error, |_| target))?;
        self.decoder(script).evicted(&told.reply)
    }
}
