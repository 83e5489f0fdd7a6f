//! What happens to the processes that hold locks, or wait for them.

use super::super::RunError;
use super::super::stage::{RECOVERY, Stage};

/// SIGSTOP the process of a holder for a while, as a long pause of a garbage collector or of a virtual machine does.
pub(super) async fn stop_holder(stage: &mut Stage<'_>) -> Result<(), RunError> {
    let index = holder(stage).await?;
    stage.fault(&format!("process {index}"))?;
    stage.crew.processes[index].freeze();
    tokio::time::sleep(stage.cell.scenario.lasts).await;
    stage.crew.processes[index].thaw();
    stage.note("runs on", &format!("process {index}"));
    Ok(())
}

/// SIGKILL the process of a holder; another one takes its place.
pub(super) async fn kill_holder(stage: &mut Stage<'_>) -> Result<(), RunError> {
    let index = holder(stage).await?;
    stage.fault(&format!("process {index}"))?;
    stage.crew.replace(index).await?;
    stage.note("replaced", &format!("process {index}"));
    Ok(())
}

/// SIGKILL the process that waits longest for a lock that was just granted to another one.
pub(super) async fn kill_waiter(stage: &mut Stage<'_>) -> Result<(), RunError> {
    let targets = stage.targets();
    let entered = stage.grant(&targets).await?;
    let waiting = stage
        .crew
        .processes
        .iter()
        .enumerate()
        .filter_map(|(index, process)| {
            let mut wants = process
                .job
                .workers
                .iter()
                .filter(|one| one.lock == entered.lock);
            let holds = process.numbers().contains(&entered.worker);
            let last = wants
                .clone()
                .map(|one| stage.resource.last_entry(one.number))
                .max()?;
            (!holds && wants.next().is_some()).then_some((last, index))
        });
    let Some((_, index)) = waiting.min() else {
        return Err(RunError::NoGrant(RECOVERY));
    };
    stage.fault(&format!("process {index}"))?;
    stage.crew.replace(index).await?;
    stage.note("replaced", &format!("process {index}"));
    Ok(())
}

/// The process of whoever is granted a lock next.
async fn holder(stage: &Stage<'_>) -> Result<usize, RunError> {
    let targets = stage.targets();
    let entered = stage.grant(&targets).await?;
    stage
        .crew
        .of_worker(entered.worker)
        .ok_or(RunError::NoGrant(RECOVERY))
}
