//! Faults, flavours and competitors.

use std::sync::Arc;
use std::time::Duration;

use locktopus_conformance::cancel::{Faults, World};
use locktopus_core::{
    LockGuard, LockKind, LockName, LockRequest, LockTarget, Locktopus, MutexProfile,
};
use tokio::task::JoinHandle;

pub(crate) const FLAVOURS: [&str; 3] = ["lock", "mutex", "single-key mutex"];

/// Builds the faults of a profile.
type Make = fn() -> Faults;

/// Names of faults, and the faults.
pub(crate) const PROFILES: [(&str, Make); 6] = [
    ("await points", || Faults::yields(2)),
    ("answers lost", || Faults::yields(1).lost(400).seed(3)),
    ("calls refused", || Faults::yields(1).refused(400).seed(5)),
    ("calls duplicated", || {
        Faults::yields(1).duplicated(500).seed(7)
    }),
    ("late arrivals", || {
        Faults::yields(1)
            .detached(Duration::from_millis(20))
            .seed(11)
    }),
    ("late arrivals, answers lost", || {
        Faults::yields(1)
            .detached(Duration::from_millis(20))
            .lost(300)
            .seed(13)
    }),
];

pub(crate) fn request(locks: &Locktopus, flavour: &str) -> LockRequest {
    match flavour {
        "lock" => locks.lock("job"),
        "mutex" => locks.mutex("job"),
        _ => locks.mutex_as("job", MutexProfile::single_key()),
    }
}

pub(crate) fn target(flavour: &str) -> LockTarget {
    let kind = match flavour {
        "lock" => LockKind::Reentrant,
        "mutex" => LockKind::Mutex(Arc::default()),
        _ => LockKind::Mutex(Arc::new(MutexProfile::single_key())),
    };
    LockTarget::new(LockName::new("job").unwrap(), kind)
}

/// A guard of the locks under test; faults begin after it is acquired.
pub(crate) async fn held(world: &World, flavour: &str) -> LockGuard {
    loop {
        if let Ok(guard) = request(&world.locks, flavour).acquire().await {
            return guard;
        }
    }
}

/// Another owner that already holds the lock and releases it after a while.
pub(crate) async fn competitor(world: &World, flavour: &str, hold: Duration) -> JoinHandle<()> {
    let guard = request(&world.other, flavour).acquire().await.unwrap();
    tokio::spawn(async move {
        tokio::time::sleep(hold).await;
        guard.release().await.unwrap();
    })
}
