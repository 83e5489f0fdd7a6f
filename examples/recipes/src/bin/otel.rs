//! Spans of waits and holds for OpenTelemetry. They go to standard output here; in life, to a collector (`opentelemetry-otlp`).

use std::time::Duration;

use locktopus::{Locktopus, MemoryBackend};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Instrument as _;
use tracing_subscriber::layer::SubscriberExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(opentelemetry_stdout::SpanExporter::default())
        .build();
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(spans))?;

    // Names of locks are not in spans unless they are asked for: they may be personal data.
    let builder = Locktopus::builder(MemoryBackend::new()).names_in_spans(true);
    let locks = builder.build()?;
    // Two requests for one invoice. The second span of each is the wait, the third the hold, which follows from it.
    let requests = [1, 2].map(|number| {
        let request = tracing::info_span!("request", number);
        tokio::spawn(pay(locks.clone()).instrument(request))
    });
    for request in requests {
        request.await??;
    }
    let _ = locks.shutdown(Duration::from_secs(1)).await;
    provider.shutdown()?;
    Ok(())
}

async fn pay(locks: Locktopus) -> Result<(), locktopus::LockError> {
    let guard = locks.lock("invoice:42").acquire().await?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    guard.release().await
}
