//! An axum handler under an idempotency key: a retry gets the first answer, or 409 until then.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use locktopus::Locktopus;
use locktopus_tower::{LockLayer, LockedError};

/// The answer to each key. In production this is a table that the paying transaction writes.
type Answers = Arc<tokio::sync::Mutex<HashMap<String, String>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("LOCKTOPUS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let app = app(locktopus::connect(&url).await?, Answers::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("curl -X POST -H 'idempotency-key: 42' http://127.0.0.1:3000/pay");
    Ok(axum::serve(listener, app).await?)
}

fn app(locks: Locktopus, answers: Answers) -> Router {
    let one_at_a_time = LockLayer::new(move |request: &Request| {
        Some(locks.lock(format!("pay:{}", key(request.headers())?)))
    });
    let layers = tower::ServiceBuilder::new()
        .layer(HandleErrorLayer::new(told_apart))
        .layer(one_at_a_time);
    let pay = post(pay).route_layer(layers);
    Router::new().route("/pay", pay).with_state(answers)
}

fn key(headers: &HeaderMap) -> Option<&str> {
    headers.get("idempotency-key")?.to_str().ok()
}

/// 409: the same request is in progress. 423: it lost its lock, and was stopped. 503: the locks are
/// unreachable; nothing was started.
async fn told_apart(error: LockedError<std::convert::Infallible>) -> (StatusCode, String) {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    (status, error.to_string())
}

/// The lock keeps retries from paying at the same time, the stored answer from paying later.
async fn pay(State(answers): State<Answers>, headers: HeaderMap) -> Result<String, StatusCode> {
    let key = key(&headers).ok_or(StatusCode::BAD_REQUEST)?;
    if let Some(first) = answers.lock().await.get(key) {
        return Ok(first.clone());
    }
    tokio::time::sleep(std::time::Duration::from_millis(300)).await; // the payment
    let mut answers = answers.lock().await;
    let answer = format!("payment {}\n", answers.len() + 1);
    Ok(answers.entry(key.to_owned()).or_insert(answer).clone())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::{Body, to_bytes};
    use locktopus::MemoryBackend;
    use locktopus_layers::{Call, Chaos, Fault};
    use tower::ServiceExt as _;

    use super::*;

    async fn answered(app: Router, key: Option<&str>) -> (StatusCode, String) {
        let mut request = Request::post("/pay");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Body::empty()).unwrap();
        let response = app.oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), 1_000).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn sends(app: Router, key: &str) -> StatusCode {
        answered(app, Some(key)).await.0
    }

    #[tokio::test(start_paused = true)]
    async fn a_repeated_key_gets_the_first_answer() {
        let locks = Locktopus::builder(MemoryBackend::new()).build().unwrap();
        let answers = Answers::default();
        // Two instances of the service, with one database.
        let [one, other] = [1, 2].map(|_| app(locks.clone(), Arc::clone(&answers)));
        let first = answered(one.clone(), Some("1")).await;
        assert_eq!(first.0, StatusCode::OK);
        for app in [one.clone(), other.clone()] {
            assert_eq!(answered(app, Some("1")).await, first);
        }
        let second = answered(other, Some("2")).await;
        assert!(second.0 == StatusCode::OK && second.1 != first.1);
        assert_eq!(answers.lock().await.len(), 2);
        // Without a key a retry looks like a new payment.
        assert_eq!(answered(one, None).await.0, StatusCode::BAD_REQUEST);
    }

    #[tokio::test(start_paused = true)]
    async fn each_failure_has_a_status_of_its_own() {
        let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
        let locks = Locktopus::builder(chaos.clone());
        // Renewed every 40 ms, so that a loss is noticed during the payment.
        let locks = locks.renewed_lease(Duration::from_millis(120));
        let app = app(locks.build().unwrap(), Answers::default());
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
