//! The faults themselves, each with what undoes it.

mod connections;
mod nodes;
mod primary;
mod slots;
mod workers;

use super::super::plan::Verb;
use super::RunError;
use super::stage::Stage;

/// Does the plan's fault once, and waits until locks are granted again.
pub(super) async fn once(stage: &mut Stage<'_>) -> Result<(), RunError> {
    stage.pause().await;
    match stage.cell.scenario.fault {
        Verb::Nothing => return Ok(()),
        Verb::KillPrimary => primary::kill(stage).await?,
        Verb::PromoteLaggard => primary::promote_laggard(stage).await?,
        Verb::FreezePrimary => primary::freeze(stage).await?,
        Verb::IsolatePrimary => primary::isolate_from_peers(stage).await?,
        Verb::IsolateClients => primary::isolate_from_clients(stage).await?,
        Verb::PlannedFailover => primary::hand_over(stage).await?,
        Verb::Restart => nodes::restart(stage, 1).await?,
        Verb::RestartNode => nodes::restart(stage, 1).await?,
        Verb::RestartMajority => {
            let majority = stage.place.nodes().len() / 2 + 1;
            nodes::restart(stage, majority).await?;
        }
        Verb::Freeze => nodes::freeze(stage).await?,
        Verb::Evict => nodes::evict(stage).await?,
        Verb::MoveSlot => slots::move_one(stage).await?,
        Verb::FlushScripts => connections::everywhere(stage, &["SCRIPT", "FLUSH"]).await?,
        Verb::KillConnections => {
            connections::everywhere(stage, &["CLIENT", "KILL", "TYPE", "normal"]).await?;
        }
        Verb::KillSubscriptions => {
            connections::everywhere(stage, &["CLIENT", "KILL", "TYPE", "pubsub"]).await?;
        }
        Verb::MisleadSubscriptions => connections::mislead(stage).await?,
        Verb::StopHolder => workers::stop_holder(stage).await?,
        Verb::KillHolder => workers::kill_holder(stage).await?,
        Verb::KillWaiter => workers::kill_waiter(stage).await?,
        Verb::StepClock => nodes::step_clock(stage).await?,
    }
    stage.done += 1;
    stage.place.wait_ready().await?;
    let targets = stage.targets();
    stage.grant(&targets).await.map(drop)
}
