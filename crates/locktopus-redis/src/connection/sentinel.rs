//! Asking the sentinels who the primary is, each time a connection is made.

use std::fmt;
use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;

use locktopus_protocol::{ClientError, HostPort, Reply};
use tokio::time::timeout;

use crate::connection::dial::Dialer;
use crate::connection::health::Health;
use crate::connection::send::Live;
use crate::connection::sync::lock;

/// The sentinels and the name under which they know the primary.
pub(crate) struct Sentinels {
    /// The one that gave a good answer last comes first, so that a dead one costs time only once.
    order: Mutex<Vec<HostPort>>,
    master_name: String,
    dialer: Dialer,
}

impl Sentinels {
    pub(crate) fn new(sentinels: &[HostPort], master_name: &str, dialer: Dialer) -> Self {
        Self {
            order: Mutex::new(sentinels.to_vec()),
            master_name: master_name.to_owned(),
            dialer,
        }
    }

    /// Connects with `dial` to the server that a sentinel names and that itself says it is the
    /// primary: a sentinel that was cut off may still name the old one.
    pub(crate) async fn connect<F>(
        &self,
        dial: impl Fn(HostPort) -> F + Send + Sync,
    ) -> Result<Live, ClientError>
    where
        F: Future<Output = Result<Live, ClientError>> + Send,
    {
        let order = lock(&self.order).clone();
        let mut problem = ClientError::NotSent("no sentinel is known".to_owned());
        for sentinel in order {
            match self.through(&sentinel, &dial).await {
                Ok(live) => {
                    self.prefer(&sentinel);
                    return Ok(live);
                }
                Err(error) => {
                    tracing::debug!(%sentinel, %error, "no primary through this sentinel");
                    problem = error;
                }
            }
        }
        Err(problem)
    }

    async fn through<F>(
        &self,
        sentinel: &HostPort,
        dial: impl Fn(HostPort) -> F + Send + Sync,
    ) -> Result<Live, ClientError>
    where
        F: Future<Output = Result<Live, ClientError>> + Send,
    {
        let server = self.ask(sentinel).await?;
        let mut live = dial(server.clone()).await?;
        match within(self.dialer.budget().answer(), live.send(&[b"ROLE"])).await {
            Ok(Reply::Array(role)) if role.first().is_some_and(|role| is(role, b"master")) => {
                Ok(live)
            }
            // The user may not be allowed to ask. A wrong server will then be noticed by its refusal
            // to write.
            Err(ClientError::Rejected { code, .. }) if code == "NOPERM" => Ok(live),
            answer => {
                live.health().retire();
                Err(ClientError::NotSent(match answer {
                    Ok(_) => format!(
                        "sentinel {sentinel} names {server} for {:?}, which is not a primary",
                        self.master_name
                    ),
                    Err(error) => format!("{server} does not say whether it is a primary: {error}"),
                }))
            }
        }
    }

    /// The address that a sentinel gives. The connection is not kept: it is needed only when
    /// something is wrong, and then a fresh one tells more.
    async fn ask(&self, sentinel: &HostPort) -> Result<HostPort, ClientError> {
        let health = Health::new(sentinel.clone(), None);
        let mut live = Live::new(self.dialer.dial(&health).await?, health);
        let question: [&[u8]; 3] = [
            b"SENTINEL",
            b"GET-MASTER-ADDR-BY-NAME",
            self.master_name.as_bytes(),
        ];
        let answer = within(self.dialer.budget().answer(), live.send(&question))
            .await
            .map_err(|error| {
                ClientError::NotSent(format!("sentinel {sentinel} does not help: {error}"))
            })?;
        address(&answer).ok_or_else(|| {
            ClientError::NotSent(format!(
                "sentinel {sentinel} knows no primary named {:?}: check the name in the sentinel's \
                 configuration",
                self.master_name
            ))
        })
    }

    fn prefer(&self, sentinel: &HostPort) {
        let mut order = lock(&self.order);
        if let Some(at) = order.iter().position(|known| known == sentinel) {
            order[..=at].rotate_right(1);
        }
    }
}

impl fmt::Debug for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sentinels")
            .field("order", &self.order)
            .field("master_name", &self.master_name)
            .finish_non_exhaustive()
    }
}

async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, ClientError>> + Send,
) -> Result<T, ClientError> {
    timeout(limit, answer).await.unwrap_or_else(|_| {
        Err(ClientError::MaybeExecuted(format!(
            "nothing heard in {limit:?}"
        )))
    })
}

fn is(reply: &Reply, word: &[u8]) -> bool {
    matches!(reply, Reply::Bytes(bytes) if bytes == word)
}

fn address(answer: &Reply) -> Option<HostPort> {
    let Reply::Array(parts) = answer else {
        return None;
    };
    let [Reply::Bytes(host), Reply::Bytes(port)] = parts.as_slice() else {
        return None;
    };
    Some(HostPort {
        host: String::from_utf8(host.to_vec()).ok()?,
        port: std::str::from_utf8(port).ok()?.parse().ok()?,
    })
}
