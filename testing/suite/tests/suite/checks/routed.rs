//! A proxy that spreads the keys over two servers: a command goes to the server of its first key.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use locktopus::client::{
    Channel, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient, Reply, Route,
};
use locktopus::{
    AcquireAttempt, AttemptOutcome, Diagnostics as _, LockBackend as _, LockKind, LockName,
    LockTarget, Severity,
};
use locktopus_protocol::{BackendOptions, RedisBackend};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use crate::common::LONG;

/// More than are sent at once.
const CROWD: usize = 40;

#[derive(Debug)]
struct ByFirstKey([Arc<dyn RedisClient>; 2]);

impl ByFirstKey {
    fn of(&self, key: &[u8]) -> &dyn RedisClient {
        let sum: usize = key.iter().map(|byte| usize::from(*byte)).sum();
        &*self.0[sum % 2]
    }
}

#[async_trait]
impl RedisClient for ByFirstKey {
    fn name(&self) -> &'static str {
        "by first key"
    }
    fn deployment(&self) -> Deployment {
        Deployment::Standalone
    }
    async fn command(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        let scripts = [b"EVALSHA".as_slice(), b"EVAL"];
        let key = args.get(3).filter(|_| scripts.contains(&args[0]));
        let server = self.of(key.unwrap_or(&b"".as_slice()));
        server.command(route, args).await
    }
    async fn pipeline(&self, to: Route, all: &[&[&[u8]]]) -> Result<Pipelined, ClientError> {
        self.0[0].pipeline(to, all).await
    }
    async fn command_on_primaries(&self, args: &[&[u8]]) -> Result<Vec<NodeReply>, ClientError> {
        self.0[0].command_on_primaries(args).await
    }
    async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        self.0[0].subscribe(channels).await
    }
    async fn unsubscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        self.0[0].unsubscribe(channels).await
    }
    fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>> {
        self.0[0].take_events()
    }
    fn timed_out(&self, _: Route) {}
    fn generation(&self) -> u64 {
        0
    }
    async fn close(&self) {}
}

/// It is found, and then calls go alone: each lock is at the server of its own name.
pub(crate) async fn calls_go_alone(servers: [Arc<dyn RedisClient>; 2]) {
    let proxy = Arc::new(ByFirstKey(servers));
    let client: Arc<dyn RedisClient> = Arc::clone(&proxy) as _;
    let backend = RedisBackend::new(client, BackendOptions::default());
    let backend = backend.await.unwrap();
    let found = backend.diagnose(Instant::now() + LONG).await.unwrap();
    let routing = found.findings.iter().find(|it| it.check == "routing");
    assert_eq!(routing.unwrap().severity, Severity::Danger, "{routing:?}");
    let names: Vec<String> = (0..CROWD).map(|at| format!("routed-{at}")).collect();
    let attempts = names.iter().map(|name| {
        let target = LockTarget::new(LockName::new(&**name).unwrap(), LockKind::Reentrant);
        let (owner, lease) = (target.kind().new_owner(), Duration::from_secs(30));
        let attempt = AcquireAttempt::new(target, owner, lease, Instant::now() + LONG);
        let backend = &backend;
        async move { backend.attempt(&attempt).await.unwrap() }
    });
    for outcome in join_all(attempts).await {
        assert!(
            matches!(outcome, AttemptOutcome::Granted { .. }),
            "{outcome:?}"
        );
    }
    for name in &names {
        let exists: [&[u8]; 2] = [b"EXISTS", name.as_bytes()];
        let there = proxy.of(name.as_bytes()).command(Route::Any, &exists).await;
        assert_eq!(there, Ok(Reply::Int(1)), "{name}");
    }
}
