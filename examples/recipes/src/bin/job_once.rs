//! A job that a scheduler starts on every instance of a fleet. One instance does it, and the others
//! skip it, even one whose clock is late and that finds the job done.

use std::time::Duration;

use locktopus::Locktopus;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("LOCKTOPUS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = locktopus::connect(&url).await?;
    // Three instances. In production each is a process of its own.
    let instances = (1..=3).map(|instance| tokio::spawn(nightly(locks.clone(), instance)));
    for instance in instances.collect::<Vec<_>>() {
        instance.await??;
    }
    let _ = locks.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

async fn nightly(locks: Locktopus, instance: u32) -> Result<(), locktopus::LockError> {
    // Two timers fire together, and the third is late.
    tokio::time::sleep(Duration::from_millis(250) * (instance / 3)).await;
    // The lock outlasts the job, for as long as clocks may differ.
    let report = locks
        .lock("report:2026-11-22")
        .hold_at_least(Duration::from_secs(60));
    // If the lock is lost, the job is dropped at its current await point, so no other instance
    // works beside it.
    let done = report.try_run(|_lease| async move {
        println!("instance {instance} works");
        tokio::time::sleep(Duration::from_millis(200)).await;
    });
    match done.await? {
        Some(()) => println!("instance {instance} is done"),
        None => println!("instance {instance} skips: another one does it or did it"),
    }
    Ok(())
}
