//! The OTLP spans of the recipe `otel`, as a collector receives them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tokio::process::Command;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A collector that keeps what it receives.
#[derive(Debug, Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
    services: Arc<Mutex<Vec<String>>>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> std::result::Result<Response<ExportTraceServiceResponse>, Status> {
        for sent in request.into_inner().resource_spans {
            let resource = Said::of(sent.resource.unwrap_or_default().attributes);
            let service = resource.text("service.name").to_owned();
            lock(&self.services).push(service);
            let spans = sent.scope_spans.into_iter().flat_map(|scope| scope.spans);
            lock(&self.spans).extend(spans);
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The attributes of a span; each may occur only once.
struct Said(BTreeMap<String, Value>);

impl Said {
    fn of(attributes: Vec<KeyValue>) -> Self {
        let mut said = BTreeMap::new();
        for KeyValue { key, value, .. } in attributes {
            if let Some(value) = value.and_then(|value| value.value) {
                let before = said.insert(key.clone(), value);
                assert!(before.is_none(), "{key} is said twice");
            }
        }
        Self(said)
    }

    fn text(&self, key: &str) -> &str {
        match self.0.get(key) {
            Some(Value::StringValue(text)) => text,
            other => panic!("{key} is {other:?}"),
        }
    }

    fn number(&self, key: &str) -> Option<i64> {
        match self.0.get(key)? {
            Value::IntValue(number) => Some(*number),
            other => panic!("{key} is {other:?}"),
        }
    }
}

/// Runs the recipe, and returns what arrived.
async fn received() -> Result<Collector> {
    let collector = Collector::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = Server::builder().add_service(TraceServiceServer::new(collector.clone()));
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    let output = Command::new(env!("CARGO_BIN_EXE_otel"))
        .env_remove("LOCKTOPUS_URL")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"))
        .kill_on_drop(true)
        .output()
        .await?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.is_empty(), "the exporter complains: {said}");
    Ok(collector)
}

#[tokio::test]
async fn waits_and_holds_arrive_at_a_collector() -> Result {
    let collector = received().await?;
    let services = lock(&collector.services).clone();
    assert!(!services.is_empty() && services.iter().all(|name| name == "shop"));
    let spans = lock(&collector.spans).clone();
    let named = |name: &str| -> Vec<_> {
        let named = spans.iter().filter(|span| span.name == name);
        named
            .map(|span| (span, Said::of(span.attributes.clone())))
            .collect()
    };
    let (waits, holds) = (named("lock.wait"), named("lock.hold"));
    assert_eq!((waits.len(), holds.len()), (4, 4), "{spans:#?}");
    for (span, said) in waits.iter().chain(&holds) {
        assert_eq!(said.text("lock.kind"), "lock");
        assert_eq!(said.text("lock.backend"), "memory");
        assert!(said.text("lock.name").starts_with("invoice:4"));
        assert!(said.number("lock.token") > Some(0));
        assert!(span.end_time_unix_nano > span.start_time_unix_nano);
        let mut parents = spans
            .iter()
            .filter(|one| one.span_id == span.parent_span_id);
        assert!(parents.any(|parent| parent.name.ends_with("request")));
    }
    for (hold, said) in &holds {
        // Its wait, found by the link and identified by the token.
        let mut waited = waits.iter().filter(|(wait, _)| {
            let mut links = hold.links.iter();
            links.any(|link| link.span_id == wait.span_id)
        });
        let (_, waited) = waited.next().ok_or("it follows from no wait")?;
        assert_eq!(waited.number("lock.token"), said.number("lock.token"));
        assert_eq!(waited.text("lock.outcome"), "granted");
    }
    let stood = |field: &str| waits.iter().any(|(_, said)| said.number(field) == Some(0));
    assert!(stood("lock.ahead_here"), "nobody waited in its process");
    assert!(stood("lock.ahead"), "nobody waited for another process");
    let ends = holds.iter().map(|(_, said)| said.text("lock.end"));
    let mut ends: Vec<_> = ends.collect();
    ends.sort_unstable();
    assert_eq!(ends, ["max_hold", "released", "released", "released"]);
    Ok(())
}
