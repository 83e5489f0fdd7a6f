//! The container engine: one client, and errors that say what to do.

use std::fmt::Display;

use futures_util::StreamExt;
use testcontainers::bollard::Docker;
use testcontainers::bollard::errors::Error;
use testcontainers::bollard::exec::StartExecResults;
use testcontainers::bollard::models::ExecConfig;
use testcontainers::core::client::docker_client_instance;
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerRequest, GenericImage};

use super::Container;
use crate::topology::error::TopologyError;

/// A handle to the engine; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Engine(Docker);

/// Turns any error of an engine call into ours.
pub(crate) fn failed<E: Display>(doing: impl Into<String>) -> impl FnOnce(E) -> TopologyError {
    let doing = doing.into();
    move |error| TopologyError::Engine {
        doing,
        message: error.to_string(),
    }
}

impl Engine {
    /// Connects to the engine and makes sure that it answers.
    pub(crate) async fn connect() -> Result<Self, TopologyError> {
        let docker = docker_client_instance().await.map_err(failed("be found"))?;
        docker.ping().await.map_err(failed("answer"))?;
        Ok(Self(docker))
    }

    pub(crate) const fn docker(&self) -> &Docker {
        &self.0
    }

    pub(crate) async fn has_image(&self, image: &str) -> Result<bool, TopologyError> {
        match self.0.inspect_image(image).await {
            Ok(_) => Ok(true),
            Err(Error::DockerResponseServerError {
                status_code: 404, ..
            }) => Ok(false),
            Err(error) => Err(failed("inspect the image")(error)),
        }
    }

    /// Checked first, because otherwise the engine would pull a missing image from a registry.
    pub(crate) async fn require_image(&self, image: &str) -> Result<(), TopologyError> {
        if self.has_image(image).await? {
            return Ok(());
        }
        Err(TopologyError::ImageMissing {
            image: image.to_owned(),
        })
    }

    /// Starts a container. Once started, this finishes even if the caller is cancelled, and then
    /// removes the container: between creation and start it has no owner yet.
    pub(crate) async fn start(
        &self,
        doing: &str,
        request: ContainerRequest<GenericImage>,
    ) -> Result<Container, TopologyError> {
        match tokio::spawn(async move { request.start().await }).await {
            Ok(outcome) => outcome.map_err(failed(doing)),
            Err(error) => Err(failed(doing)(error)),
        }
    }

    /// Runs a command inside a container. If it fails, its output is the error.
    pub(crate) async fn run_inside(
        &self,
        container: &str,
        command: Vec<String>,
    ) -> Result<(), TopologyError> {
        let doing = format!("run {}", command.first().map_or("nothing", String::as_str));
        let config = ExecConfig {
            cmd: Some(command),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..ExecConfig::default()
        };
        let failed = |error| failed(doing.as_str())(error);
        let exec = self
            .0
            .create_exec(container, config)
            .await
            .map_err(failed)?;
        let mut written = String::new();
        let started = self.0.start_exec(&exec.id, None).await.map_err(failed)?;
        if let StartExecResults::Attached { mut output, .. } = started {
            while let Some(part) = output.next().await {
                written += &part.map_err(failed)?.to_string();
            }
        }
        let ended = self.0.inspect_exec(&exec.id).await.map_err(failed)?;
        match ended.exit_code {
            Some(0) => Ok(()),
            _ => Err(TopologyError::Engine {
                doing,
                message: written.trim().to_owned(),
            }),
        }
    }
}
