//! Owner ids are secrets: no `Debug`, no error and no log line shows one.

use crate::common;

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Fate, Scripted, listen, until};
use locktopus_core::{
    AcquireAttempt, ExtendRequest, LeaseTicket, LockKind, LockName, LockTarget, Owner,
    ReleaseRequest,
};
use tokio::time::{Instant, sleep};
use tracing::field::{Field, Visit};
use tracing::span;

/// Writes every event and span of every level into one text.
#[derive(Debug, Clone, Default)]
struct Capture(Arc<Mutex<String>>);

struct Writer<'a>(&'a mut String);

impl Visit for Writer<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl tracing::Subscriber for Capture {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        attributes.record(&mut Writer(&mut self.0.lock().unwrap()));
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut Writer(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = self.0.lock().unwrap();
        write!(text, "{} ", event.metadata().target()).unwrap();
        event.record(&mut Writer(&mut text));
        text.push('\n');
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Collects all printable text from the lives of a few locks, with trouble.
async fn life(seen: &mut String, secrets: &mut Vec<Vec<u8>>) {
    let (script, locks) = Scripted::with_locks();
    let me = Owner::new();
    script.next("attempt", [Fate::LoseReply, Fate::Refuse]);
    let guard = locks
        .lock("a")
        .owner(&me)
        .renewed_lease(Duration::from_secs(3))
        .acquire()
        .await
        .unwrap();
    script.next("extend", [Fate::Refuse, Fate::LoseReply]);
    sleep(Duration::from_secs(5)).await;
    let id = guard.owner_id().clone();
    let state = locks.lock("a").inspect().await.unwrap();
    let target = LockTarget::new(LockName::new("a").unwrap(), LockKind::Reentrant);
    let deadline = Instant::now();
    let lease = Duration::from_secs(1);
    let attempt = AcquireAttempt::new(target.clone(), id.clone(), lease, deadline);
    let release = ReleaseRequest::new(target.clone(), id.clone(), deadline);
    let extend = ExtendRequest::new(target, id.clone(), lease);
    let request = locks.lock("a").owner(&me);
    write!(
        seen,
        "{guard:?} {:?} {id:?} {state:?} {me:?} {locks:?} {script:?}",
        guard.lease()
    )
    .unwrap();
    write!(
        seen,
        "{attempt:?} {release:?} {extend:?} {request:?} {:#?} {guard:#?}",
        locks
    )
    .unwrap();
    secrets.push(id.expose().to_vec());

    script.always("release", Fate::Refuse);
    drop(guard);
    sleep(Duration::from_secs(1)).await;
    script.always("release", Fate::Deny);
    until("gives up", || locks.background_tasks() == 0).await;
    script.always("release", Fate::Pass);

    let mutex = locks.mutex("m").acquire().await.unwrap();
    secrets.push(mutex.owner_id().expose().to_vec());
    let Ok(ticket) = mutex.into_ticket() else {
        panic!("a good guard")
    };
    write!(seen, "{ticket:?}").unwrap();
    let text = ticket.expose();
    for damaged in [
        &text[..text.len() / 2],
        &format!("{text}x"),
        &text.replace('.', "-"),
    ] {
        let error = damaged.parse::<LeaseTicket>().unwrap_err();
        write!(seen, "{error} {error:?}").unwrap();
    }
    let error = locks.mutex("other").adopt(&ticket).await.unwrap_err();
    write!(seen, "{error} {error:?}").unwrap();
    script.store.clear();
    let error = locks.mutex("m").adopt(&ticket).await.unwrap_err();
    write!(seen, "{error} {error:?}").unwrap();
    secrets.push(text.into_bytes());

    let request = locks.lock("l").renewed_lease(Duration::from_secs(1));
    let lost = request.acquire().await.unwrap();
    secrets.push(lost.owner_id().expose().to_vec());
    script.store.clear();
    write!(seen, "{:?} {lost:?}", lost.lost().await).unwrap();
    let error = lost.release().await.unwrap_err();
    write!(seen, "{error} {error:?}").unwrap();
    let _ = locks.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn no_owner_id_is_ever_shown() {
    let capture = Capture::default();
    let _guard = listen(capture.clone());
    let (mut seen, mut secrets) = (String::new(), Vec::new());
    life(&mut seen, &mut secrets).await;
    let logged = capture.0.lock().unwrap().clone();
    assert!(
        logged.contains("renewal failed") && logged.contains(" cause=the backend does"),
        "nothing was captured: {logged}"
    );
    assert_eq!(secrets.len(), 4);
    for secret in secrets {
        let secret = String::from_utf8(secret).unwrap();
        // The part after the process's uuid makes it a secret.
        let private = secret
            .rsplit_once(':')
            .map_or(secret.as_str(), |(_, number)| number);
        for (place, text) in [("Debug or an error", &seen), ("the log", &logged)] {
            assert!(!text.contains(private), "{place} shows an owner id: {text}");
        }
    }
    assert!(
        seen.contains("owner#"),
        "the tag by which logs tell owners apart"
    );
}
