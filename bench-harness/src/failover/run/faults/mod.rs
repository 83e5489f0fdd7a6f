//! The faults, each with what undoes it.

mod connections;
mod divided;
mod nemesis;
mod nodes;
mod primary;
mod slots;
mod workers;

use connections::Taken;

use super::RunError;
use super::fault_context::FaultContext;
use crate::failover::plan::Verb;

/// Injects the plan's fault once, and waits until locks are granted again.
pub(super) async fn once(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    context.pause().await;
    match context.cell.scenario.fault {
        Verb::Nothing => return Ok(()),
        Verb::KillPrimary => primary::kill(context).await?,
        Verb::PromoteLaggard => primary::promote_laggard(context).await?,
        Verb::FreezePrimary => primary::freeze(context).await?,
        Verb::IsolatePrimary => primary::isolate_from_peers(context).await?,
        Verb::IsolateClients => primary::isolate_from_clients(context).await?,
        Verb::PlannedFailover => primary::hand_over(context).await?,
        Verb::TwoPrimaries => divided::two_primaries(context).await?,
        Verb::Restart => nodes::restart(context, 1).await?,
        Verb::RestartNode => nodes::restart(context, 1).await?,
        Verb::RestartMajority => {
            let majority = context.place.nodes().len() / 2 + 1;
            nodes::restart(context, majority).await?;
        }
        Verb::Freeze => nodes::freeze(context).await?,
        Verb::Evict => nodes::evict(context).await?,
        Verb::MoveSlot => slots::move_one(context).await?,
        Verb::FlushScripts => connections::everywhere(context, Taken::Scripts).await?,
        Verb::KillConnections => connections::everywhere(context, Taken::Connections).await?,
        Verb::KillSubscriptions => connections::everywhere(context, Taken::Subscriptions).await?,
        Verb::MisleadSubscriptions => connections::mislead(context).await?,
        Verb::StopHolder => workers::stop_holder(context).await?,
        Verb::KillHolder => workers::kill_holder(context).await?,
        Verb::KillWaiter => workers::kill_waiter(context).await?,
        Verb::StepClock => nodes::step_clock(context).await?,
        Verb::FreezeReplica => nodes::freeze_replica(context).await?,
        Verb::Nemesis => nemesis::turn(context).await?,
    }
    context.done += 1;
    context.place.wait_ready().await?;
    let targets = context.targets();
    context.grant(&targets).await.map(drop)
}
