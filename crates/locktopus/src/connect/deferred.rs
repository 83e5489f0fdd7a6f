//! A server that may be down when the program starts. It is connected to when first needed, and
//! tried again until that works.
//!
//! A quorum must be able to start while a minority of its nodes is down. Until a node is connected,
//! every request to it fails as not executed. Connecting takes longer than an answer, so an attempt
//! continues even if the request that needed it gives up.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use locktopus_core::internal::with_causes;
use locktopus_core::{
    AcquireAttempt, Announcement, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo,
    CancellationToken, Diagnosis, Diagnostics, Directory, Eviction, Executed, ExtendOutcome,
    ExtendRequest, InstanceQuery, InstanceRecord, Instances, LockBackend, LockPage, LockState,
    LockTarget, NameError, NodeIdentity, NodeProbe, ReleaseOutcome, ReleaseRequest, SafetyMode,
    ScanCursor, Sighting, WakeStream, WakeUps,
};
use locktopus_protocol::RedisBackend;
use locktopus_protocol::backoff::Redial;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{Instant, timeout_at};

use super::node_address::node_address;
use super::servers;
use crate::connect_error::{ConnectError, why_unreachable};
use crate::url::{BackendUrl, Endpoint};

#[derive(Debug)]
pub(super) struct Deferred {
    info: BackendInfo,
    shared: Arc<Shared>,
}

/// State shared by the backend and its attempts to connect, which may outlive their callers.
#[derive(Debug)]
struct Shared {
    url: BackendUrl,
    connected: OnceLock<Connected>,
    /// Held while a connection is being made.
    connecting: Arc<Mutex<DialState>>,
    closed: CancellationToken,
}

/// When the next attempt may begin, and why the last one failed.
#[derive(Debug)]
struct DialState {
    redial: Redial,
    why: String,
}

#[derive(Debug)]
struct Connected {
    backend: RedisBackend,
    probe: Arc<dyn NodeProbe>,
}

impl Deferred {
    /// A backend with this label for the server that the URL names. Sends nothing.
    ///
    /// # Errors
    ///
    /// Unless the URL names one standalone server.
    pub(super) fn new(url: BackendUrl, label: &str) -> Result<Self, ConnectError> {
        let standalone = matches!(
            &url.endpoint,
            Endpoint::Servers {
                topology: crate::url::Topology::Standalone { .. },
                ..
            }
        );
        if !standalone {
            return Err(ConnectError::NotANode {
                url: url.to_string(),
            });
        }
        if url.options.safety != SafetyMode::Plain {
            return Err(ConnectError::NodeWithMode {
                url: url.to_string(),
                mode: url.options.safety.as_str(),
            });
        }
        let info = BackendInfo {
            longest_linger: std::time::Duration::MAX,
            token_retention: url.options.token_retention,
            ..BackendInfo::new("redis", label, url.options.timeout)
        };
        Ok(Self {
            info,
            shared: Arc::new(Shared {
                url,
                connected: OnceLock::new(),
                connecting: Arc::new(Mutex::new(DialState {
                    redial: Redial::new("node"),
                    why: String::new(),
                })),
                closed: CancellationToken::new(),
            }),
        })
    }

    async fn inner(&self, deadline: Instant) -> Result<&Connected, BackendError> {
        if let Some(connected) = self.shared.connected.get() {
            return Ok(connected);
        }
        let connecting = timeout_at(deadline, self.connect()).await;
        connecting.unwrap_or_else(|_| Err(self.down("not connected yet")))
    }

    async fn connect(&self) -> Result<&Connected, BackendError> {
        let attempts = Arc::clone(&self.shared.connecting).lock_owned().await;
        if let Some(connected) = self.shared.connected.get() {
            return Ok(connected);
        }
        if attempts.redial.wait(Instant::now()).is_some() {
            return Err(self.down(&attempts.why));
        }
        let attempt = tokio::spawn(connect(Arc::clone(&self.shared), attempts));
        let attempt = attempt.await.unwrap_or_else(|_| Err("stopped".to_owned()));
        attempt.map_err(|why| self.down(&why))?;
        self.shared
            .connected
            .get()
            .ok_or_else(|| self.down("closed"))
    }

    fn down(&self, why: &str) -> BackendError {
        let kind = BackendErrorKind::Unavailable;
        BackendError::new(self.info.name, kind, Executed::No, why)
    }

    /// `None` without a connection: then names are checked as on a standalone server.
    fn backend(&self) -> Option<&RedisBackend> {
        let connected = self.shared.connected.get();
        connected.map(|connected| &connected.backend)
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        self.shared.closed.cancel();
    }
}

/// Makes one attempt. It outlives its caller, but not the backend.
async fn connect(
    shared: Arc<Shared>,
    mut attempts: OwnedMutexGuard<DialState>,
) -> Result<(), String> {
    let outcome = shared.closed.run_until_cancelled(open(&shared.url)).await;
    match outcome.unwrap_or_else(|| Err("closed".to_owned())) {
        Ok(connected) => {
            shared.connected.get_or_init(|| connected);
            Ok(())
        }
        Err(why) => {
            attempts.redial.failed(Instant::now());
            attempts.why.clone_from(&why);
            Err(why)
        }
    }
}

async fn open(url: &BackendUrl) -> Result<Connected, String> {
    let Endpoint::Servers {
        tls,
        authority,
        topology,
    } = &url.endpoint
    else {
        return Err("no server".to_owned());
    };
    let backend = servers::open_backend(url, *tls, authority, topology).await;
    let backend = backend.map_err(|error| reason(&error))?;
    let probe = backend.probe().map_err(|error| error.to_string())?;
    Ok(Connected { backend, probe })
}

/// The reason why a node is not connected. The errors of the quorum add its URL.
fn reason(error: &ConnectError) -> String {
    match error {
        ConnectError::Unreachable { source, .. } => why_unreachable(&**source),
        ConnectError::Backend { source, .. } => with_causes(source),
        other => other.to_string(),
    }
}

#[async_trait]
impl LockBackend for Deferred {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        self.backend()
            .map_or(Ok(()), |backend| backend.check(target))
    }

    fn shard(&self, target: &LockTarget) -> u32 {
        self.backend().map_or(0, |backend| backend.shard(target))
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let inner = self.inner(attempt.deadline).await?;
        inner.backend.attempt(attempt).await
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let inner = self.inner(request.deadline).await?;
        inner.backend.release(request).await
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        match self.inner(deadline).await {
            Ok(inner) => inner.backend.extend(batch, deadline).await,
            Err(error) => batch
                .iter()
                .map(|_| Err(self.down(error.message())))
                .collect(),
        }
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let inner = self.inner(deadline).await?;
        inner.backend.inspect(target, deadline).await
    }

    async fn close(&self) {
        self.shared.closed.cancel();
        if let Some(backend) = self.backend() {
            backend.close().await;
        }
    }

    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        Some(self)
    }

    fn directory(&self) -> Option<&dyn Directory> {
        Some(self)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }

    fn diagnosis(&self) -> Option<&dyn Diagnostics> {
        Some(self)
    }
}

#[async_trait]
impl WakeUps for Deferred {
    fn listen(&self, target: &LockTarget) -> Option<WakeStream> {
        self.backend()?.listen(target)
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        let inner = self.inner(deadline).await?;
        inner.backend.subscribe(target, deadline).await
    }
}

#[async_trait]
impl Directory for Deferred {
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        let inner = self.inner(deadline).await?;
        inner.backend.scan(prefix, cursor, deadline).await
    }

    async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        let inner = self.inner(deadline).await?;
        inner.backend.evict(target, deadline).await
    }
}

#[async_trait]
impl Instances for Deferred {
    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        let inner = self.inner(announcement.deadline).await?;
        inner.backend.announce(announcement).await
    }

    async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        let inner = self.inner(query.deadline).await?;
        inner.backend.records(query).await
    }
}

#[async_trait]
impl Diagnostics for Deferred {
    async fn diagnose(&self, deadline: Instant) -> Result<Diagnosis, BackendError> {
        let inner = self.inner(deadline).await?;
        inner.backend.diagnose(deadline).await
    }
}

#[async_trait]
impl NodeProbe for Deferred {
    /// 0 until there is a connection.
    fn generation(&self) -> u64 {
        let connected = self.shared.connected.get();
        connected.map_or(0, |connected| connected.probe.generation())
    }

    async fn identity(&self, deadline: Instant) -> Result<NodeIdentity, BackendError> {
        let inner = self.inner(deadline).await?;
        inner.probe.identity(deadline).await
    }

    async fn sighting(
        &self,
        label: &str,
        deadline: Instant,
    ) -> Result<Option<Sighting>, BackendError> {
        let inner = self.inner(deadline).await?;
        inner.probe.sighting(&node_address(label), deadline).await
    }

    async fn note_sighting(
        &self,
        label: &str,
        sighting: &Sighting,
        deadline: Instant,
    ) -> Result<(), BackendError> {
        let inner = self.inner(deadline).await?;
        inner
            .probe
            .note_sighting(&node_address(label), sighting, deadline)
            .await
    }
}

#[cfg(all(test, any(feature = "redis", feature = "fred")))]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tokio::net::TcpListener;

    use super::*;

    /// A node that is down is dialled rarely, however many callers there are, and all of them learn
    /// at once why it is down.
    #[tokio::test]
    async fn a_node_that_is_away_is_dialled_by_the_rule_for_all() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", server.local_addr().unwrap());
        let knocks = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&knocks);
        // Like a proxy whose server is down.
        let door = tokio::spawn(async move {
            while server.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        let node = Deferred::new(url.parse().unwrap(), &url).unwrap();
        let (begun, limit) = (Instant::now(), Duration::from_secs(2));
        let mut asked = 0;
        while begun.elapsed() < limit {
            let away = node.inner(begun + limit * 2).await;
            assert_eq!(away.unwrap_err().kind(), BackendErrorKind::Unavailable);
            asked += 1;
            tokio::task::yield_now().await;
        }
        door.abort();
        let knocks = knocks.load(Ordering::Relaxed);
        // The first attempt is made at once. The pauses grow by half from at least 10 ms, so a
        // dozen of them take longer than two seconds.
        assert!(
            (2..=13).contains(&knocks) && asked > 100,
            "{knocks} for {asked}"
        );
    }
}
