//! Takes turns with a service in Python through redis-py's `Lock` of the same name; the other half
//! is `neighbours/counter.py`.

use std::time::Duration;

use locktopus::MutexProfile;
use locktopus::redis::redis::{AsyncTypedCommands as _, Client};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("LOCKTOPUS_URL").map_err(|_| "LOCKTOPUS_URL is not set")?;
    let locks = locktopus::connect(&url).await?;
    let client = Client::open(url)?;
    let mut store = client.get_multiplexed_async_connection().await?;
    // `MutexProfile` has the layouts of other libraries too. All that share a lock must agree.
    let orders = locks.mutex_as("orders", MutexProfile::redis_py());
    for _ in 0..50 {
        let guard = orders.clone().acquire().await?;
        let seen = store.get_int("orders:counter").await?.unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(1)).await; // the work
        guard.ensure_valid()?;
        store.set("orders:counter", seen + 1).await?;
        store.rpush("orders:turns", "rust").await?;
        guard.release().await?;
        tokio::time::sleep(Duration::from_millis(1)).await; // other work
    }
    let _ = locks.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
