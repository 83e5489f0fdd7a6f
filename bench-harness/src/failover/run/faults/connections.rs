//! What happens to connections and scripts.

use super::super::RunError;
use super::super::stage::Stage;

/// Sends a command to every server.
pub(super) async fn everywhere(stage: &mut Stage<'_>, command: &[&str]) -> Result<(), RunError> {
    let targets = stage.targets();
    stage.moment(&targets).await?;
    stage.fault("all")?;
    for node in stage.place.nodes() {
        node.command(command).await?;
    }
    Ok(())
}
