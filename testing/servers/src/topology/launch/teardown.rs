//! The orderly end of a deployment.

use super::Launched;
use crate::topology::error::TopologyError;

/// Ends everything and waits for it, off the executor's threads for blocking parts.
pub(crate) async fn stop(launched: Launched) -> Result<(), TopologyError> {
    #[cfg(feature = "pod")]
    if launched.pod.is_some() {
        return super::pod_teardown::stop(launched).await;
    }
    let path = launched.run.path().to_owned();
    tokio::task::spawn_blocking(move || drop(launched))
        .await
        .map_err(|error| TopologyError::io("tear down", path)(std::io::Error::other(error)))
}
