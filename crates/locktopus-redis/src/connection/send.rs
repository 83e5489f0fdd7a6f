//! Writes commands to a connection, each exactly once, and reads the answers.

use locktopus_protocol::{ClientError, Pipelined, Reply};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisError, Value};
use std::sync::Arc;

use crate::connection::dial::Driver;
use crate::connection::error::{rejected, unanswered};
use crate::connection::health::Health;
use crate::connection::reply::reply_of;

/// An established connection and its health. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    connection: MultiplexedConnection,
    /// Runs until the last clone is dropped.
    _driver: Arc<Driver>,
    health: Arc<Health>,
}

impl Live {
    pub(crate) fn new(
        (connection, driver): (MultiplexedConnection, Driver),
        health: Arc<Health>,
    ) -> Self {
        Self {
            connection,
            _driver: Arc::new(driver),
            health,
        }
    }

    pub(crate) fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Sends one command.
    pub(crate) async fn send(&mut self, args: &[&[u8]]) -> Result<Reply, ClientError> {
        let command = packed(args);
        match self.connection.send_packed_command(&command).await {
            Ok(value) => reply_of(value),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Sends one command to a node that is importing its slot.
    pub(crate) async fn send_asking(&mut self, args: &[&[u8]]) -> Result<Reply, ClientError> {
        let mut pipeline = Pipeline::with_capacity(2);
        pipeline.cmd("ASKING").add_command(packed(args));
        let mut answers = self.send_all(&pipeline).await?.into_iter();
        match (answers.next(), answers.next()) {
            // The command was refused too: the slot is not on this node yet.
            (Some(Value::ServerError(refusal)), _) => Err(rejected(&refusal)),
            (Some(_), Some(answer)) => reply_of(answer),
            _ => Err(ClientError::MaybeExecuted(
                "the server's answer is missing".to_owned(),
            )),
        }
    }

    /// Sends several commands in one write. Returns the answer to each.
    pub(crate) async fn send_each(
        &mut self,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        let mut pipeline = Pipeline::with_capacity(commands.len());
        for args in commands {
            pipeline.add_command(packed(args));
        }
        let replies: Vec<_> = self.send_all(&pipeline).await?;
        if replies.len() != commands.len() {
            let message = "the server's answers are not as many as the commands";
            return Err(ClientError::MaybeExecuted(message.to_owned()));
        }
        Ok(Pipelined {
            node: self.health.server().to_string(),
            replies: replies.into_iter().map(reply_of).collect(),
        })
    }

    /// Sends several commands in one write. Refusals are among the values.
    pub(crate) async fn send_all(
        &mut self,
        pipeline: &Pipeline,
    ) -> Result<Vec<Value>, ClientError> {
        match self
            .connection
            .send_packed_commands(pipeline, 0, pipeline.len())
            .await
        {
            Ok(values) => Ok(values),
            // An error for all of them answers none: some may have run.
            Err(error) => Err(match self.failed(&error) {
                refused @ ClientError::Rejected { .. } => {
                    ClientError::MaybeExecuted(refused.to_string())
                }
                other => other,
            }),
        }
    }

    /// Whether the server answers at all. Any answer counts.
    pub(crate) async fn answers(&mut self) -> bool {
        self.connection
            .send_packed_command(&redis::cmd("PING"))
            .await
            .is_ok()
    }

    fn failed(&self, error: &RedisError) -> ClientError {
        if error.is_unrecoverable_error() {
            self.health.kill("a command failed on the connection");
        }
        unanswered(error, self.health.server())
    }
}

pub(crate) fn packed(args: &[&[u8]]) -> Cmd {
    let bytes = args.iter().map(|arg| arg.len()).sum();
    let mut command = Cmd::with_capacity(args.len(), bytes);
    for arg in args {
        command.arg(*arg);
    }
    command
}
