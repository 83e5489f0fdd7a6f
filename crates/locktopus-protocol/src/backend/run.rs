//! How each safety mode runs a script: when the effect counts, and what else is sent.

use locktopus_contract::BackendError;

use super::context::Context;
use super::safety::Safety;
use crate::execution::call::{Call, Effect};
use crate::execution::replication::Confirmed;

impl Context {
    /// Runs a script. `call` has the keys and arguments of the plain mode.
    ///
    /// Boxed parts belong to modes that most calls do not use, so that most calls stay small.
    pub(super) async fn run(
        &self,
        effect: Effect,
        call: Call<'_>,
    ) -> Result<Confirmed, BackendError> {
        let executor = &self.executor;
        let reply = match (&self.safety, effect) {
            (Safety::Replicated(replication), Effect::Grant | Effect::Extend) => {
                return Box::pin(executor.run_replicated(replication, &call)).await;
            }
            (Safety::Replicated(_), Effect::Release) => Box::pin(executor.run_in_line(&call)).await,
            (Safety::Quarantine(quarantine), Effect::Grant | Effect::Release) => {
                Box::pin(executor.run_quarantined(quarantine, &call)).await
            }
            (Safety::Plain, Effect::Grant | Effect::Release) => match &self.gather {
                Some(gather) => executor.run_together(gather, &call).await,
                None => executor.run(&call).await,
            },
            (_, Effect::Look) | (Safety::Plain | Safety::Quarantine(_), Effect::Extend) => {
                executor.run(&call).await
            }
        };
        reply.map(Confirmed::from)
    }
}
