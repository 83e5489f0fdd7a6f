//! Faults of the processes that hold locks or wait for them.

use crate::failover::run::RunError;
use crate::failover::run::fault_context::FaultContext;

/// SIGSTOP the process of a holder for a while, like a long pause of a garbage collector or a
/// virtual machine.
pub(super) async fn stop_holder(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let index = holder(context).await?;
    context.fault(&format!("process {index}"))?;
    context.pool.processes[index].freeze()?;
    tokio::time::sleep(context.cell.scenario.lasts).await;
    context.pool.processes[index].thaw();
    context.note("runs on");
    Ok(())
}

/// SIGKILL the process of a holder; another process replaces it.
pub(super) async fn kill_holder(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let index = holder(context).await?;
    context.fault(&format!("process {index}"))?;
    context.pool.replace(index).await?;
    context.note("replaced");
    Ok(())
}

/// SIGKILL the process that has waited longest for a lock that another one was just granted.
pub(super) async fn kill_waiter(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let targets = context.targets();
    let entered = context.grant(&targets).await?;
    let waiting = context
        .pool
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
                .map(|one| context.resource.last_entry(one.number))
                .max()?;
            (!holds && wants.next().is_some()).then_some((last, index))
        });
    let Some((_, index)) = waiting.min() else {
        return Err(RunError::NoWaiter(entered.lock));
    };
    context.fault(&format!("process {index}"))?;
    context.pool.replace(index).await?;
    context.note("replaced");
    Ok(())
}

/// The process that is granted a lock next.
async fn holder(context: &FaultContext<'_>) -> Result<usize, RunError> {
    let targets = context.targets();
    let entered = context.grant(&targets).await?;
    context
        .pool
        .of_worker(entered.worker)
        .ok_or(RunError::NoSuchWorker(entered.worker))
}
