//! A transfer between two accounts: both locks or none, and no deadlock in any order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktopus::{LockError, Locktopus};

type Accounts = Arc<Mutex<HashMap<&'static str, i64>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("LOCKTOPUS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = locktopus::connect(&url).await?;
    let accounts = Accounts::new(Mutex::new(HashMap::from([("alice", 100), ("bob", 100)])));
    // Opposite orders: with two single locks these would wait for each other.
    let there = tokio::spawn(transfer(locks.clone(), accounts.clone(), "alice", "bob"));
    let back = tokio::spawn(transfer(locks.clone(), accounts.clone(), "bob", "alice"));
    there.await??;
    back.await??;
    println!("{:?}", accounts.lock().map_err(|_| "a transfer panicked")?);
    let _ = locks.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

async fn transfer(
    locks: Locktopus,
    accounts: Accounts,
    from: &'static str,
    to: &'static str,
) -> Result<(), LockError> {
    for _ in 0..20 {
        let names = [from, to].map(|account| format!("account:{account}"));
        let both = locks.multi(names).wait_at_most(Duration::from_secs(5));
        let guard = both.acquire().await?;
        guard.ensure_valid()?; // right before the side effect
        if let Ok(mut accounts) = accounts.lock() {
            *accounts.entry(from).or_default() -= 1;
            *accounts.entry(to).or_default() += 1;
        }
        let _ = guard.release().await;
    }
    Ok(())
}
