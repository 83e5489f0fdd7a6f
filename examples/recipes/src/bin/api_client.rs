//! A client of an API that allows a number of calls at a time, over all processes together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use locktopus::{LockError, Semaphore};

/// The limit in the API's contract.
const AT_A_TIME: u32 = 3;

/// Cheap to clone.
#[derive(Clone)]
struct Client {
    permits: Semaphore,
    calls: Arc<AtomicU32>,
}

impl Client {
    async fn call(&self, item: u32) -> Result<u32, LockError> {
        // If a process crashes, its permit comes back when its lease ends.
        let permit = self
            .permits
            .permits(1)
            .wait_at_most(Duration::from_secs(10));
        permit
            .run(|_lease| async {
                let at_a_time = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
                assert!(at_a_time <= AT_A_TIME, "{at_a_time} calls at a time");
                tokio::time::sleep(Duration::from_millis(20)).await; // the call
                self.calls.fetch_sub(1, Ordering::SeqCst);
                item * 2
            })
            .await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("LOCKTOPUS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = locktopus::connect(&url).await?;
    let permits = locks.semaphore("api:calls");
    permits.initialise(AT_A_TIME).await?; // by whoever comes first
    let calls = Arc::default();
    let client = Client { permits, calls };
    let calls: Vec<_> = (0..12)
        .map(|item| (client.clone(), item))
        .map(|(client, item)| tokio::spawn(async move { client.call(item).await }))
        .collect();
    let mut sum = 0;
    for call in calls {
        sum += call.await??;
    }
    println!("12 answers, never more than {AT_A_TIME} calls at a time; their sum is {sum}");
    let _ = locks.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
