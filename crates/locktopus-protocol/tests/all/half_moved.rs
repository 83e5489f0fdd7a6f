//! Renewals while a slot migrates and the locks in it are on two nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{
    ExtendOutcome, ExtendRequest, LockBackend as _, LockKind, LockName, LockTarget, OwnerId,
};
use locktopus_protocol::{
    BackendOptions, ClientError, Deployment, Pipelined, RedisBackend, Reply, Route,
};
use tokio::time::Instant;

use crate::stub::{self, Stub};

/// A cluster where both nodes refuse a script with several keys, because one of the keys is on the
/// other node. A script with one key goes to the node that has it.
#[derive(Debug, Default)]
struct HalfMoved {
    scripts: AtomicUsize,
}

#[async_trait]
impl Stub for HalfMoved {
    fn deployment(&self) -> Deployment {
        Deployment::Cluster
    }
    async fn command(&self, _: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        if !args[0].starts_with(b"EVAL") {
            return Ok(Reply::Array(Vec::new()));
        }
        self.scripts.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(1)).await;
        if args[2] == b"1" {
            return Ok(Reply::Int(1));
        }
        let refusal = "TRYAGAIN Multiple keys request during rehashing of slot";
        Err(ClientError::rejected(refusal))
    }
    async fn pipeline(&self, _: Route, _: &[&[&[u8]]]) -> Result<Pipelined, ClientError> {
        Err(ClientError::NotSent("no pipelines here".to_owned()))
    }
}

/// Each hold is renewed on the node that has it, even if several in one slot are due together.
#[tokio::test(start_paused = true)]
async fn locks_of_one_slot_are_renewed_while_they_are_on_two_nodes() {
    let client = Arc::<HalfMoved>::default();
    let backend = RedisBackend::new(stub::client(&client), BackendOptions::default());
    let backend = backend.await.unwrap();
    for together in [1, 2, 100] {
        let batch: Vec<_> = (0..together)
            .map(|number| {
                let name = LockName::new(format!("{{tenant}}:{number}")).unwrap();
                let target = LockTarget::new(name, LockKind::Reentrant);
                ExtendRequest::new(target, OwnerId::generate(), Duration::from_secs(30))
            })
            .collect();
        client.scripts.store(0, Ordering::SeqCst);
        let deadline = Instant::now() + Duration::from_secs(1);
        let answers = backend.extend(&batch, deadline).await;
        let scripts = client.scripts.load(Ordering::SeqCst);
        assert_eq!(answers.len(), together);
        for answer in answers {
            assert_eq!(answer.unwrap(), ExtendOutcome::Extended);
        }
        assert!(
            scripts <= together + 1,
            "{scripts} scripts for {together} locks"
        );
    }
}
