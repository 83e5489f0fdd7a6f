//! RTT: the round trip of PING, through the same client in the same round.

use hdrhistogram::Histogram;
use locktopus_protocol::Route;

use super::clock::monotonic_ns;
use super::job::Job;
use crate::measure::plan::Strategy;
use crate::measure::record::Recorder;

/// Times `job.pings` round trips, one after another, on a connection of their own.
pub(super) async fn measure(job: &Job) -> Result<Option<Histogram<u64>>, String> {
    if job.pings == 0 {
        return Ok(None);
    }
    // Peers use redis-rs; their RTT is that of redis-rs.
    debug_assert!(
        job.strategy == Strategy::Locktopus || job.client == crate::measure::plan::Client::RedisRs
    );
    let client = locktopus::connect_client(&job.url)
        .await
        .map_err(|error| crate::shared::error_chain::chain(&error))?;
    let mut histogram = Recorder::new_histogram();
    // The first few warm connection and code up.
    let warm_up = (job.pings / 10).max(10);
    for round in 0..job.pings + warm_up {
        let start = monotonic_ns();
        client
            .command(Route::Any, &[b"PING"])
            .await
            .map_err(|error| format!("PING failed: {error}"))?;
        let took = monotonic_ns().saturating_sub(start);
        if round >= warm_up {
            let _ = histogram.record(took.max(1));
        }
    }
    client.close().await;
    Ok(Some(histogram))
}
