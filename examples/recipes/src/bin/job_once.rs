//! A job that runs on one instance of a fleet. The others see that it runs, and skip it.

use std::time::Duration;

use locktopus::Locktopus;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("LOCKTOPUS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = locktopus::connect(&url).await?;
    // Three instances whose timers fire together. In life each is a process of its own.
    let instances = (1..=3).map(|instance| tokio::spawn(nightly(locks.clone(), instance)));
    for instance in instances.collect::<Vec<_>>() {
        instance.await??;
    }
    let _ = locks.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

async fn nightly(locks: Locktopus, instance: u32) -> Result<(), locktopus::LockError> {
    let report = locks.lock("report:2026-11-22");
    // Dropped at its current await point if the lock is lost, so that no other instance works beside it.
    let done = report.try_run(|lease| async move {
        println!("instance {instance} works under token {:?}", lease.token());
        tokio::time::sleep(Duration::from_millis(200)).await;
    });
    match done.await? {
        Some(()) => println!("instance {instance} is done"),
        None => println!("instance {instance} skips: another one is at it"),
    }
    Ok(())
}
