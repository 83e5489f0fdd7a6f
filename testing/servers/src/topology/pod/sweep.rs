//! Removes the containers of dead harnesses.

use std::collections::HashMap;

use testcontainers::bollard::models::ContainerSummary;
use testcontainers::bollard::query_parameters::{
    ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
};

use super::engine::Engine;
use super::requests::{MACHINE_LABEL, OWNER_LABEL, RUN_LABEL, machine};
use crate::topology::plain::Owner;

/// Removes leftovers. Never fails: the next sweep tries again, and the following start reports an
/// engine that does not answer.
pub(crate) async fn sweep() {
    let Ok(engine) = Engine::connect().await else {
        return;
    };
    // Only containers of this machine: the owners of others cannot be checked.
    let labels = vec![
        OWNER_LABEL.to_owned(),
        format!("{MACHINE_LABEL}={}", machine()),
    ];
    let containers = listed(&engine, labels).await;
    for container in containers.iter().filter(|found| is_leftover(found)) {
        remove(&engine, container).await;
    }
}

/// Removes every container of one deployment whose start failed: a container that was created but
/// not started has no handle.
pub(crate) async fn remove_run(engine: &Engine, run: &str) {
    for container in listed(engine, vec![format!("{RUN_LABEL}={run}")]).await {
        remove(engine, &container).await;
    }
}

async fn listed(engine: &Engine, labels: Vec<String>) -> Vec<ContainerSummary> {
    let filters = HashMap::from([("label".to_owned(), labels)]);
    let wanted = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let listed = engine.docker().list_containers(Some(wanted)).await;
    listed.unwrap_or_default()
}

async fn remove(engine: &Engine, container: &ContainerSummary) {
    let how = RemoveContainerOptionsBuilder::new()
        .force(true)
        .v(true)
        .build();
    let id = container.id.as_deref().unwrap_or_default();
    let _ = engine.docker().remove_container(id, Some(how)).await;
}

fn is_leftover(container: &ContainerSummary) -> bool {
    container
        .labels
        .as_ref()
        .and_then(|labels| labels.get(OWNER_LABEL))
        .and_then(|owner| owner.parse::<Owner>().ok())
        .is_some_and(|owner| owner.is_dead())
}
