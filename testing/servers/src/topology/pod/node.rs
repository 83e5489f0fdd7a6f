//! One server container and the verbs on it.

use std::sync::Arc;
use std::time::Duration;

use testcontainers::bollard::models::ContainerState;
use testcontainers::bollard::query_parameters::KillContainerOptionsBuilder;

use super::Container;
use super::engine::{Engine, failed};
use super::partition::{Partition, Target};
use crate::topology::error::TopologyError;
use crate::topology::plan::NodePlan;
use crate::topology::poll;
use crate::topology::provider::Isolation;

/// How long the engine may take to notice that a process ended.
const END_WITHIN: Duration = Duration::from_secs(20);

/// A server in a container, running or not.
#[derive(Debug)]
pub(crate) struct PodNode {
    name: String,
    target: Target,
    container: Container,
    engine: Engine,
    partition: Arc<Partition>,
}

impl PodNode {
    pub(crate) fn new(
        plan: &NodePlan,
        uid: u32,
        container: Container,
        engine: Engine,
        partition: Arc<Partition>,
    ) -> Self {
        let target = Target {
            uid,
            ports: vec![plan.port, plan.admin_port],
        };
        Self {
            name: plan.name.clone(),
            target,
            container,
            engine,
            partition,
        }
    }

    pub(crate) fn id(&self) -> &str {
        self.container.id()
    }

    pub(crate) fn into_container(self) -> Container {
        self.container
    }

    pub(crate) async fn freeze(&self) -> Result<(), TopologyError> {
        self.require_running().await?;
        self.container.pause().await.map_err(self.failed("freeze"))
    }

    pub(crate) async fn thaw(&self) -> Result<(), TopologyError> {
        let state = self.require_running().await?;
        if state.paused != Some(true) {
            return Ok(());
        }
        self.container.unpause().await.map_err(self.failed("thaw"))
    }

    /// Kills the server at once. A signal from inside would spare the first process.
    pub(crate) async fn crash(&self) -> Result<(), TopologyError> {
        self.require_running().await?;
        let how = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
        let kill = self.engine.docker().kill_container(self.id(), Some(how));
        kill.await.map_err(self.failed("crash"))?;
        poll::until(
            || format!("end of {}", self.name),
            END_WITHIN,
            async || match self.ending().await {
                Some(_) => Ok(()),
                None => Err("the container is still running".to_owned()),
            },
        )
        .await
    }

    pub(crate) async fn stop(&self, grace: Duration) -> Result<(), TopologyError> {
        // A frozen process would not see the request.
        self.thaw().await?;
        // Zero would end it by force at once.
        let seconds = i32::try_from(grace.as_secs().max(1)).unwrap_or(i32::MAX);
        let stop = self.container.stop_with_timeout(Some(seconds));
        stop.await.map_err(self.failed("stop"))
    }

    pub(crate) async fn start(&self) -> Result<(), TopologyError> {
        if self.ending().await.is_none() {
            return Err(TopologyError::WrongState {
                node: self.name.clone(),
                state: "already running",
                hint: "stop or crash it first",
            });
        }
        self.container.start().await.map_err(self.failed("start"))
    }

    /// How the server ended, unless it is running.
    pub(crate) async fn ending(&self) -> Option<String> {
        match self.state().await {
            Ok(state) if state.running == Some(true) => None,
            Ok(state) => Some(match state.exit_code {
                Some(code @ 129..) => format!("signal {}", code - 128),
                Some(code) => format!("exit code {code}"),
                None => "an unknown status".to_owned(),
            }),
            Err(error) => Some(error.to_string()),
        }
    }

    /// The last lines of the server's output.
    pub(crate) async fn last_output(&self) -> String {
        let both = (
            self.container.stdout_to_vec().await,
            self.container.stderr_to_vec().await,
        );
        match both {
            (Ok(mut output), Ok(errors)) => {
                output.extend(errors);
                crate::topology::log::tail(&String::from_utf8_lossy(&output))
            }
            (Err(error), _) | (_, Err(error)) => format!("(cannot read the output: {error})"),
        }
    }

    pub(crate) async fn isolate(&self, from: Isolation) -> Result<(), TopologyError> {
        self.partition.isolate(&self.target, from).await
    }

    pub(crate) async fn heal(&self) -> Result<(), TopologyError> {
        self.partition.heal(&self.target).await
    }

    async fn state(&self) -> Result<ContainerState, TopologyError> {
        let inspected = self
            .engine
            .docker()
            .inspect_container(self.id(), None)
            .await;
        let inspected = inspected.map_err(self.failed("inspect"))?;
        Ok(inspected.state.unwrap_or_default())
    }

    async fn require_running(&self) -> Result<ContainerState, TopologyError> {
        let state = self.state().await?;
        if state.running == Some(true) {
            return Ok(state);
        }
        Err(TopologyError::WrongState {
            node: self.name.clone(),
            state: "not running",
            hint: "start it first",
        })
    }

    fn failed<E: std::fmt::Display>(&self, verb: &str) -> impl FnOnce(E) -> TopologyError {
        failed(format!("{verb} {}", self.name))
    }
}
