//! The rslock crate, used as its documentation says.

use std::sync::Arc;

use async_trait::async_trait;
use rslock::{Lock, LockManager};

use super::{Held, Kind, LEASE, Subject};

pub(crate) async fn connect(url: &str) -> Result<Arc<dyn Subject>, String> {
    let url = url.split('?').next().unwrap_or(url);
    Ok(Arc::new(Rslock {
        manager: LockManager::new(vec![url.to_owned()]),
    }))
}

struct Rslock {
    manager: LockManager,
}

#[async_trait]
impl Subject for Rslock {
    async fn acquire(&self, _kind: Kind, lock: &str) -> Result<Box<dyn Held>, &'static str> {
        // `acquire` retries until it has the lock, with its own pauses.
        match self.manager.acquire_no_guard(lock.as_bytes(), LEASE).await {
            Ok(lock) => Ok(Box::new(HeldLock {
                manager: self.manager.clone(),
                lock,
            })),
            Err(_) => Err("rslock"),
        }
    }
}

struct HeldLock {
    manager: LockManager,
    lock: Lock,
}

#[async_trait]
impl Held for HeldLock {
    async fn release(self: Box<Self>) -> Result<(), &'static str> {
        self.manager.unlock(&self.lock).await;
        Ok(())
    }
}
