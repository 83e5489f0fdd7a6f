//! What happens to servers that nobody takes over from.

use std::time::Duration;

use super::super::RunError;
use super::super::load;
use super::super::stage::Stage;

/// SIGKILL so many servers, in turn, and start them again. What they had is gone unless they keep it on disk.
pub(super) async fn restart(stage: &mut Stage<'_>, count: usize) -> Result<(), RunError> {
    let nodes = stage.place.nodes();
    let first = stage.below(nodes.len());
    let chosen: Vec<_> = (0..count)
        .map(|at| &nodes[(first + at) % nodes.len()])
        .collect();
    let targets = stage.targets();
    stage.moment(&targets).await?;
    let names: Vec<_> = chosen.iter().map(|node| node.name()).collect();
    stage.fault(&names.join(" "))?;
    for node in &chosen {
        node.crash().await?;
    }
    for node in &chosen {
        node.start().await?;
    }
    stage.note("back", &names.join(" "));
    Ok(())
}

/// Requests that arrive meanwhile run when it goes on, and their answers come too late.
pub(super) async fn freeze(stage: &mut Stage<'_>) -> Result<(), RunError> {
    let (_, node) = stage.target().await?;
    let targets = stage.targets();
    stage.moment(&targets).await?;
    stage.fault(node.name())?;
    node.freeze().await?;
    tokio::time::sleep(stage.cell.scenario.lasts).await;
    node.thaw().await?;
    stage.note("thawed", node.name());
    Ok(())
}

/// As an administrator does, or a time server after a long time without one: ahead, and at the next turn back.
pub(super) async fn step_clock(stage: &mut Stage<'_>) -> Result<(), RunError> {
    let (_, node) = stage.target().await?;
    let is_right = stage.done.is_multiple_of(2);
    let ahead = if is_right {
        stage.cell.scenario.lasts
    } else {
        Duration::ZERO
    };
    let targets = stage.targets();
    stage.moment(&targets).await?;
    stage.fault(node.name())?;
    node.set_clock_ahead(ahead)?;
    stage.note(&format!("{ahead:?} ahead"), node.name());
    Ok(())
}

/// Values written at each turn: more than the server may keep.
const VALUES: u32 = 400;
const VALUE: usize = 64 * 1024;

/// Others fill the memory of a server that evicts.
pub(super) async fn evict(stage: &mut Stage<'_>) -> Result<(), RunError> {
    let (lock, node) = stage.target().await?;
    let targets = stage.targets();
    stage.moment(&targets).await?;
    stage.fault(node.name())?;
    let value = "x".repeat(VALUE);
    for number in 0..VALUES {
        let key = format!("{{{lock}}}:{}:{number}", load::NAME);
        node.command(&["SET", &key, &value, "PX", "1000"]).await?;
    }
    let evicted = node
        .info("stats", "evicted_keys")
        .await?
        .unwrap_or_default();
    stage.note("evicted", &format!("{evicted} keys so far"));
    Ok(())
}
