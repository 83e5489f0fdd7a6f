//! RTT: the round trip of PING, through the same client in the same round.

use hdrhistogram::Histogram;
use locktopus_protocol::Route;

use super::clock::monotonic_ns;
use super::job::Job;
use crate::measure::plan::Strategy;
use crate::measure::record::Recorder;

/// How long to time round trips; distant servers get fewer of them.
const LONGEST_NS: u64 = 500_000_000;
/// The minimum number of round trips.
const FEWEST: usize = 20;

/// Times up to `job.pings` round trips, one after another, on a connection of their own.
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
    let began = monotonic_ns();
    let planned = usize::try_from(job.pings).unwrap_or(usize::MAX);
    let mut took = Vec::new();
    while took.len() < planned
        && (took.len() < FEWEST || monotonic_ns().saturating_sub(began) < LONGEST_NS)
    {
        let start = monotonic_ns();
        client
            .command(Route::Any, &[b"PING"])
            .await
            .map_err(|error| format!("PING failed: {error}"))?;
        took.push(monotonic_ns().saturating_sub(start));
    }
    let mut histogram = Recorder::new_histogram();
    // The first few warm connection and code up.
    for took in took.iter().skip(took.len() / 10) {
        let _ = histogram.record((*took).max(1));
    }
    client.close().await;
    Ok(Some(histogram))
}
