//! Actions of operators are logged.

use crate::common;

use std::sync::{Arc, Mutex};

use common::{listen, until};
use locktopus_core::Locktopus;
use locktopus_memory::MemoryBackend;

/// Collects the warnings in the log.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!("{field}={value:?} ");
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn force_is_logged_with_its_reason() {
    let warnings = Warnings::default();
    let _log = listen(warnings.clone());
    let here = Locktopus::builder(MemoryBackend::new()).build().unwrap();
    let guard = here.lock("a").acquire().await.unwrap();
    let reason = "stuck\nforged line";
    here.lock("a").force_release(reason).await.unwrap();
    let said = warnings.0.lock().unwrap().clone();
    let said = said.iter().find(|line| line.contains("by force")).unwrap();
    assert!(
        said.contains("lock \"a\"") && said.contains("victims=1"),
        "{said}"
    );
    assert!(said.contains("stuck") && !said.contains('\n'), "{said}");
    let secret = String::from_utf8_lossy(guard.owner_id().expose()).into_owned();
    assert!(!said.contains(&secret));
    drop(guard);
    until("given back", || here.background_tasks() == 0).await;
}
