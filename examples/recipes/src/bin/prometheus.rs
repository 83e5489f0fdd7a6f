//! Metrics of some workers that share locks, for Prometheus to scrape. Runs until Ctrl-C, or for
//! the number of seconds in its argument. `prometheus/` has alert rules and a dashboard.

use std::net::SocketAddr;
use std::time::Duration;

use locktopus::Locktopus;
use metrics_exporter_prometheus::PrometheusBuilder;

/// From a hand-off inside a process up to a lease. Summaries, the default, do not add up.
const BUCKETS: [f64; 12] = [
    0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0,
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::var("METRICS_LISTEN").unwrap_or_else(|_| "127.0.0.1:9187".to_owned());
    let listen: SocketAddr = listen.parse()?;
    // Before the first lock request.
    PrometheusBuilder::new()
        .with_http_listener(listen)
        .set_buckets(&BUCKETS)?
        .install()?;
    println!("curl http://{listen}/metrics");

    let url = std::env::var("LOCKTOPUS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = locktopus::connect(&url).await?;
    for worker in 0..8 {
        tokio::spawn(work(locks.clone(), worker));
    }
    let seconds = std::env::args().nth(1).map(|seconds| seconds.parse());
    match seconds.transpose()? {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        None => tokio::signal::ctrl_c().await?,
    }
    let _ = locks.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

async fn work(locks: Locktopus, worker: u64) -> Result<(), locktopus::LockError> {
    for round in 0.. {
        let lease = Duration::from_millis(60);
        let lock = locks.lock(format!("shelf:{}", round % 2));
        // Now and then a worker forgets that its lease ends, and loses the lock.
        let (lock, hold) = match (worker + round) % 50 {
            0 => (lock.fixed_lease(lease), lease * 2),
            _ => (lock.renewed_lease(lease), Duration::from_millis(5 * worker)),
        };
        if let Ok(guard) = lock
            .wait_at_most(Duration::from_millis(200))
            .acquire()
            .await
        {
            tokio::time::sleep(hold).await;
            let _ = guard.release().await;
        }
    }
    Ok(())
}
