//! How scripts are run in each safety mode: when the effect of one counts.

use locktopus_core::BackendError;
use tokio::time::Instant;

use super::context::Context;
use super::safety::Safety;
use crate::client::Reply;
use crate::execution::replication::Confirmed;
use crate::scripts::Script;

/// How scripts that grant are run. `keys` and `args` are those of the plain script.
impl Context {
    /// Runs a script whose effect counts once the mode is satisfied.
    pub(super) async fn run_confirmed(
        &self,
        script: &Script,
        slot: u16,
        keys: &[&[u8]],
        args: &[&[u8]],
        deadline: Instant,
    ) -> Result<Confirmed, BackendError> {
        let executor = &self.executor;
        match &self.safety {
            Safety::Replicated(replication) => {
                // Boxed: commands of the other modes need no room for it.
                let run = executor.run_replicated(replication, script, slot, keys, args, deadline);
                Box::pin(run).await
            }
            Safety::Plain | Safety::Quarantine(_) => {
                let reply = self.run_release(script, slot, keys, args, deadline);
                reply.await.map(Confirmed::from)
            }
        }
    }

    /// Runs a script that extends. It grants nothing, so quarantine does not apply.
    pub(super) async fn run_extension(
        &self,
        script: &Script,
        slot: u16,
        keys: &[&[u8]],
        args: &[&[u8]],
        deadline: Instant,
    ) -> Result<Confirmed, BackendError> {
        match &self.safety {
            Safety::Quarantine(_) => {
                let reply = self.executor.run(script, slot, keys, args, deadline);
                reply.await.map(Confirmed::from)
            }
            Safety::Plain | Safety::Replicated(_) => {
                self.run_confirmed(script, slot, keys, args, deadline).await
            }
        }
    }

    /// Runs a script that ends holds and may hand off. It must not overtake a running attempt of the same owner.
    pub(super) async fn run_release(
        &self,
        script: &Script,
        slot: u16,
        keys: &[&[u8]],
        args: &[&[u8]],
        deadline: Instant,
    ) -> Result<Reply, BackendError> {
        let executor = &self.executor;
        match &self.safety {
            Safety::Replicated(_) => {
                let run = executor.run_in_line(script, slot, keys, args, deadline);
                Box::pin(run).await
            }
            Safety::Plain => executor.run(script, slot, keys, args, deadline).await,
            Safety::Quarantine(quarantine) => {
                let terms = quarantine.terms(executor, slot, deadline).await;
                let keys = [keys, &[terms.record.as_bytes()]].concat();
                let more: [&[u8]; 2] = [terms.longest.as_bytes(), terms.seen.as_bytes()];
                let args = [args, &more].concat();
                Box::pin(executor.run(script, slot, &keys, &args, deadline)).await
            }
        }
    }
}
