//! Errors and logs after a wrong password.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use locktopus_servers::topology::{Knobs, TopologyKind};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::common::{
    CLIENTS, ONE_SENTINEL, SHARDS, chain, connect, plain_url_for, servers_with, unique,
};

/// Easy to find, and unlikely by chance.
const RIGHT: &str = "Right0Horse1Battery2Staple3";
const WRONG: &str = "Wrong0Horse1Battery2Staple3";

/// Records every log event at every level.
#[derive(Debug, Clone, Default)]
struct Everything {
    lines: Arc<Mutex<String>>,
}

impl Everything {
    fn note(&self, metadata: &Metadata<'_>, fields: impl FnOnce(&mut dyn Visit)) {
        let mut line = Line(format!("{} {}:", metadata.target(), metadata.name()));
        fields(&mut line);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_str(&line.0);
        lines.push('\n');
    }

    fn take(&self) -> String {
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Everything {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.note(span.metadata(), |line| span.record(line));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(lines, "{}", line.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.note(event.metadata(), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// For client libraries that use the `log` crate.
impl log::Log for Everything {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(lines, "{} {}", record.target(), record.args());
    }

    fn flush(&self) {}
}

pub(crate) async fn never_shown() {
    let log = Everything::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    log::set_boxed_logger(Box::new(log.clone())).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    for kind in [TopologyKind::Standalone, ONE_SENTINEL, SHARDS] {
        let knobs = Knobs {
            users: vec![format!("app on >{RIGHT} ~* &* +@all")],
            ..Knobs::default()
        };
        let place = servers_with(kind, knobs).await;
        for client in CLIENTS {
            let url = |password: &str| {
                let plain = plain_url_for(&place, client);
                plain.replace("://", &format!("://app:{password}@"))
            };
            let error = locktopus::connect(&url(WRONG)).await.map(drop).unwrap_err();
            let said = chain(&error);
            assert!(
                said.contains("WRONGPASS") || said.contains("assword"),
                "{said}"
            );
            hides(&format!("{said} {error:?} {error}"));

            let locks = connect(&url(RIGHT)).await;
            let owner = {
                let request = locks.lock(unique("secret"));
                let guard = request.clone().acquire().await.unwrap();
                let held = request.try_acquire().await.unwrap();
                hides(&format!("{locks:?} {guard:?} {:?} {held:?}", guard.lease()));
                let owner = String::from_utf8(guard.owner_id().expose().to_vec()).unwrap();
                guard.release().await.unwrap();
                owner
            };
            // Makes clients connect and log in again.
            for node in place.nodes() {
                node.command(&["CLIENT", "KILL", "TYPE", "normal"])
                    .await
                    .unwrap();
            }
            let again = locks.lock(unique("secret")).acquire().await.unwrap();
            again.release().await.unwrap();
            crate::common::close(locks).await;

            let logged = log.take();
            hides(&logged);
            assert!(!logged.contains(&owner), "an owner id was logged");
            println!(
                "ok    {kind} {client}: {} bytes of log, {said}",
                logged.len()
            );
        }
    }
    crate::security::odd::log_in(|| log.take()).await;
    crate::security::odd::are_not_repeated(|| log.take()).await;
}

fn hides(text: &str) {
    for secret in [RIGHT, WRONG] {
        if let Some(at) = text.find(secret) {
            let from = at.saturating_sub(200);
            panic!("a password is shown: ...{}", &text[from..at + secret.len()]);
        }
    }
}
