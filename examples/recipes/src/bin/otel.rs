//! Spans of waits and holds, sent to an OpenTelemetry collector by OTLP (gRPC): to port 4317 of
//! this machine, or to the address in `OTEL_EXPORTER_OTLP_ENDPOINT`.

use std::time::Duration;

use locktopus::{LockError, Locktopus, LocktopusBuilder};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::{Instrument as _, info_span, level_filters::LevelFilter};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

fn sender() -> Result<SdkTracerProvider, Box<dyn std::error::Error>> {
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .build()?;
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
    let resource = Resource::builder().with_service_name("shop").build();
    Ok(provider.with_resource(resource).build())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let provider = sender()?;
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
    // Nothing below `info`: the exporter's own client has spans there, and sending them would
    // create more.
    let spans = spans.with_filter(LevelFilter::INFO);
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(spans))?;

    let url = std::env::var("LOCKTOPUS_URL").unwrap_or_else(|_| "memory:shop".to_owned());
    let mut instances = Vec::new();
    for _ in 0..2 {
        // Spans contain lock names only on request, because names may be personal data.
        let names = |builder: LocktopusBuilder| builder.names_in_spans(true);
        instances.push(locktopus::connect_with(&url, names).await?);
    }
    // Three requests for one invoice, two of them in one process. Each has a wait, and a hold that
    // follows from it.
    let requests = [0, 0, 1].map(|instance| {
        let request = info_span!("request", instance);
        tokio::spawn(pay(instances[instance].clone()).instrument(request))
    });
    for request in requests {
        request.await??;
    }
    let slow = instances[0].lock("invoice:43");
    let slow = slow
        .max_hold(Duration::from_millis(20))
        .run(|_lease| std::future::pending::<()>());
    println!("{:?}", slow.instrument(info_span!("slow request")).await);
    provider.shutdown()?; // sends what is left
    Ok(())
}

async fn pay(locks: Locktopus) -> Result<(), LockError> {
    let guard = locks.lock("invoice:42").acquire().await?;
    tokio::time::sleep(Duration::from_millis(50)).await;
    guard.release().await
}
