//! Elects one leader at a time. Its token goes with its writes, so an earlier leader is rejected.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use locktopus::{Fence, FenceGate, LeaderElection, Lease, LockError, Locktopus};

/// The store that leaders write to. A store that outlives its process keeps the newest token beside
/// its data: `fenced_postgres`.
#[derive(Default)]
struct Ledger {
    gate: FenceGate,
    first: OnceLock<Fence>,
}

impl Ledger {
    fn write(&self, who: u32, fence: &Fence) {
        let write = || println!("instance {who} wrote under token {}", fence.token());
        if let Err(stale) = self.gate.with(fence, write) {
            println!("instance {who} was refused: {stale}");
        }
    }
}

/// Dropped at its current await point when the term is over, but not the tasks that it spawned.
async fn lead(lease: Lease, ledger: Arc<Ledger>, who: u32) -> Result<(), LockError> {
    let fence = lease.fence().expect("not a quorum, so it has a token");
    for _ in 0..3 {
        lease.ensure_valid()?; // right before each side effect
        ledger.write(who, &fence);
        if ledger.first.set(fence.clone()).is_ok() {
            std::future::pending::<()>().await; // the very first leader hangs
        }
    }
    Ok(())
}

async fn campaign(locks: Locktopus, ledger: Arc<Ledger>, who: u32) -> Result<(), LockError> {
    // If a leader crashes, another follows after its lease; if it hangs, after its term.
    let election = LeaderElection::new(&locks, "scheduler");
    let election = election.max_term(Duration::from_millis(200));
    let work = |lease| lead(lease, Arc::clone(&ledger), who);
    election.run(work).await?
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("LOCKTOPUS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = locktopus::connect(&url).await?;
    let ledger = Arc::new(Ledger::default());
    // Two instances. In production each is a process of its own.
    let one = campaign(locks.clone(), Arc::clone(&ledger), 1);
    tokio::try_join!(one, campaign(locks.clone(), Arc::clone(&ledger), 2))?;
    // The first leader continues where it hung, without checking its lease.
    ledger.write(0, ledger.first.get().ok_or("nobody led")?);
    let _ = locks.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
