//! An axum handler under an idempotency key: a request that is sent again while the first is worked on gets 409.

use std::time::Duration;

use axum::error_handling::HandleErrorLayer;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Extension, Router};
use locktopus::{Lease, Locktopus};
use locktopus_tower::{LockLayer, LockedError};
use tower::ServiceBuilder;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("LOCKTOPUS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = locktopus::connect(&url).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("curl -X POST -H 'idempotency-key: 42' http://127.0.0.1:3000/pay");
    let served = axum::serve(listener, app(locks.clone()));
    served
        .with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) })
        .await?;
    let _ = locks.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

fn app(locks: Locktopus) -> Router {
    let one_at_a_time = LockLayer::new(move |request: &Request| {
        let key = request.headers().get("idempotency-key")?;
        Some(locks.lock(format!("pay:{}", key.to_str().ok()?)))
    })
    .attach_lease(|request, lease| drop(request.extensions_mut().insert(lease)));
    let layers = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(told_apart))
        .layer(one_at_a_time);
    Router::new().route("/pay", post(pay).route_layer(layers))
}

/// 409: the same request is worked on. 423: it lost its lock, and was stopped. 503: the locks are away; nothing was begun.
async fn told_apart(error: LockedError<std::convert::Infallible>) -> (StatusCode, String) {
    let status = StatusCode::from_u16(error.status());
    (
        status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        error.to_string(),
    )
}

/// Looks first whether the key was paid for already: a lock keeps two from working at once, not from working twice.
async fn pay(lease: Option<Extension<Lease>>) -> String {
    tokio::time::sleep(Duration::from_millis(300)).await; // the payment
    let token = lease.and_then(|Extension(lease)| lease.token());
    format!("paid under token {token:?}\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::Body;
    use locktopus::MemoryBackend;
    use locktopus_layers::{Call, Chaos, Fault};
    use tower::ServiceExt as _;

    use super::*;

    async fn sends(app: Router, key: &str) -> StatusCode {
        let request = Request::post("/pay").header("idempotency-key", key);
        let request = request.body(Body::empty()).unwrap();
        app.oneshot(request).await.unwrap().status()
    }

    #[tokio::test(start_paused = true)]
    async fn each_failure_has_a_status_of_its_own() {
        let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
        let locks = Locktopus::builder(chaos.clone());
        // Renewed every 40 ms, so that a loss is heard of while the payment is made.
        let locks = locks.renewed_lease(Duration::from_millis(120));
        let app = app(locks.build().unwrap());
        let first = tokio::spawn(sends(app.clone(), "1"));
        tokio::task::yield_now().await;
        assert_eq!(sends(app.clone(), "1").await, StatusCode::CONFLICT);
        assert_eq!(sends(app.clone(), "2").await, StatusCode::OK);
        assert_eq!(first.await.unwrap(), StatusCode::OK);
        assert_eq!(sends(app.clone(), "1").await, StatusCode::OK);

        let lost = tokio::spawn(sends(app.clone(), "3"));
        tokio::task::yield_now().await;
        assert_eq!(chaos.lose("pay:3").await.unwrap(), 1);
        assert_eq!(lost.await.unwrap(), StatusCode::LOCKED);

        chaos.fail(Call::Attempt, Fault::Refuse);
        assert_eq!(sends(app, "4").await, StatusCode::SERVICE_UNAVAILABLE);
    }
}
