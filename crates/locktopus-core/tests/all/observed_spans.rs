//! Each wait and each hold is one span that tells how it went, and shows names only on request.
#![cfg(feature = "tracing")]

use crate::common::listen;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use locktopus_core::{Locktopus, LostCause};
use locktopus_memory::MemoryBackend;
use tokio::time::sleep;
use tracing::Instrument as _;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

const SECOND: Duration = Duration::from_secs(1);

/// The fields of a span, with its name as `name`, and the names of its parent and of the span it
/// follows.
type Said = BTreeMap<&'static str, String>;

/// The spans of Locktopus that have ended.
#[derive(Debug, Clone, Default)]
struct Ended(Arc<Mutex<Vec<Said>>>);

impl Ended {
    fn take(&self) -> Vec<Said> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

struct Fields<'a>(&'a mut Said);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    /// OpenTelemetry attributes are signed: this one becomes a text.
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), format!("unsigned {value}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let before = self.0.insert(field.name(), value.to_owned());
        if before.is_some() {
            // OpenTelemetry keeps both, up to a maximum number of attributes, and drops the rest.
            self.0.insert("said twice", field.name().to_owned());
        }
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Ended {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let span = ctx.span(id).unwrap();
        let mut said = Said::from([("name", span.name().to_owned())]);
        if let Some(parent) = span.parent() {
            said.insert("parent", parent.name().to_owned());
        }
        attributes.record(&mut Fields(&mut said));
        span.extensions_mut().insert(said);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, ctx: Context<'_, S>) {
        let span = ctx.span(id).unwrap();
        let mut extensions = span.extensions_mut();
        values.record(&mut Fields(extensions.get_mut().unwrap()));
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, ctx: Context<'_, S>) {
        let followed = ctx.span(follows).unwrap().name().to_owned();
        let span = ctx.span(id).unwrap();
        let mut extensions = span.extensions_mut();
        extensions
            .get_mut::<Said>()
            .unwrap()
            .insert("follows", followed);
    }

    fn on_close(&self, id: Id, ctx: Context<'_, S>) {
        let span = ctx.span(&id).unwrap();
        if span.metadata().target() == "locktopus" {
            let said = span.extensions_mut().remove().unwrap();
            self.0.lock().unwrap().push(said);
        }
    }
}

/// Runs a test on tokio's paused clock with its own subscriber.
fn observed<F: Future<Output = ()>>(test: impl FnOnce(Ended) -> F) {
    let ended = Ended::default();
    let subscriber = tracing_subscriber::registry().with(ended.clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let _listening = listen(subscriber);
    runtime.block_on(test(ended));
}

fn said<const N: usize>(fields: [(&'static str, &str); N]) -> Said {
    let common = [("lock.kind", "lock"), ("lock.backend", "memory")];
    let all = common.into_iter().chain(fields);
    all.map(|(field, value)| (field, value.to_owned()))
        .collect()
}

#[test]
fn a_wait_and_its_hold_are_two_spans_beside_each_other() {
    observed(|ended| async move {
        let locks = Locktopus::builder(MemoryBackend::new()).build().unwrap();
        let work = async {
            let guard = locks.lock("secret").acquire().await.unwrap();
            let token = guard.token().unwrap().get().to_string();
            guard.release().await.unwrap();
            token
        };
        let token = work.instrument(tracing::info_span!("request")).await;
        let wait = said([
            ("name", "lock.wait"),
            ("parent", "request"),
            ("lock.outcome", "granted"),
            ("lock.token", &token),
        ]);
        let hold = said([
            ("name", "lock.hold"),
            ("parent", "request"),
            ("follows", "lock.wait"),
            ("lock.end", "released"),
            ("lock.token", &token),
        ]);
        assert_eq!(ended.take(), [wait, hold], "and no name");
    });
}

#[test]
fn names_are_said_when_asked_for() {
    observed(|ended| async move {
        let builder = Locktopus::builder(MemoryBackend::new()).namespace("shop:");
        let locks = builder.names_in_spans(true).build().unwrap();
        let passing = locks.lock("a").acquire().await.unwrap();
        passing.release().await.unwrap();
        let names = ended
            .take()
            .into_iter()
            .map(|mut said| said.remove("lock.name"));
        let name = Some("shop:a".to_owned());
        assert_eq!(names.collect::<Vec<_>>(), [name.clone(), name]);
    });
}

#[test]
fn a_lost_lock_says_why() {
    observed(|ended| async move {
        let store = MemoryBackend::new();
        let locks = Locktopus::builder(store.another_client()).build().unwrap();
        let guard = locks.lock("a").acquire().await.unwrap();
        ended.take();
        store.clear();
        assert_eq!(guard.lost().await, LostCause::Missing);
        let hold = ended.take().remove(0);
        assert_eq!(hold["lock.end"], "missing");
        drop(guard);
        assert!(ended.take().is_empty(), "it ended once");
    });
}

#[test]
fn a_wait_says_where_it_stands_and_that_it_was_given_up() {
    observed(|ended| async move {
        let store = MemoryBackend::new();
        let [first, second, ours] =
            [(); 3].map(|()| Locktopus::builder(store.another_client()).build().unwrap());
        let _held = first.lock("a").acquire().await.unwrap();
        let waits = tokio::spawn(second.lock("a").into_future());
        tokio::task::yield_now().await;
        ended.take();
        // Long enough for many checks, each of which reports the position.
        let error = ours.lock("a").wait_at_most(SECOND * 60).acquire().await;
        assert!(error.is_err());
        // Its place is given back in the background.
        sleep(SECOND / 10).await;
        let mut leads = Box::pin(ours.lock("a").acquire());
        assert!(leads.as_mut().now_or_never().is_none());
        let mut follows = Box::pin(ours.lock("a").acquire());
        assert!(follows.as_mut().now_or_never().is_none());
        drop(follows);
        drop(leads);
        let waited = |ahead: (&'static str, &str), outcome: &str| {
            said([("name", "lock.wait"), ahead, ("lock.outcome", outcome)])
        };
        let expected = [
            waited(("lock.ahead", "1"), "timeout"),
            waited(("lock.ahead_here", "0"), "dropped"),
            waited(("lock.ahead", "1"), "dropped"),
        ];
        assert_eq!(ended.take(), expected);
        waits.abort();
    });
}
