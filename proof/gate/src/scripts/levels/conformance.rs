//! The conformance suite, on a whole backend with a modelled server, in virtual time.

use std::sync::Arc;

use futures_util::StreamExt as _;
use locktopus_conformance::{Flavour, Outcome, Suite, Verdict};
use locktopus_core::{DynBackend, LockTarget, SafetyMode};
use locktopus_model::{ModelClient, was_here};
use locktopus_protocol::{BackendOptions, Keys, RedisBackend};

/// Cases that need something the modelled server lacks.
pub const NOT_MODELLED: &[&str] = &["errors::a_diagnosis_names_nodes"];

/// How many cases run at a time.
const AT_ONCE: usize = 32;

/// Runs every case of these flavours, up to the first failure.
pub(super) fn run(flavours: &[Flavour], safety: SafetyMode) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let suite = suite(safety).flavours(flavours);
        let mut trials = suite.trials();
        trials.retain(|trial| {
            !NOT_MODELLED
                .iter()
                .any(|name| trial.name().starts_with(name))
        });
        let mut outcomes = futures_util::stream::iter(trials)
            .map(locktopus_conformance::Trial::run)
            .buffer_unordered(AT_ONCE);
        while let Some(Outcome { name, verdict, .. }) = outcomes.next().await {
            if let Verdict::Failed(how) = verdict {
                return Err(format!("{name}: {how}"));
            }
        }
        Ok(())
    })
}

/// The suite on a fresh modelled server. Call it on a runtime.
#[must_use]
pub fn suite(safety: SafetyMode) -> Suite {
    let first = Arc::new(ModelClient::timed());
    if safety != SafetyMode::Plain {
        let mut server = first.server();
        let words = was_here(&server.replid);
        server.command(&words).expect("the model knows HSET");
    }
    let (wiped, seen) = (Arc::clone(&first), Arc::clone(&first));
    Suite::new(move || {
        let client = Arc::new(first.another());
        let options = BackendOptions {
            safety,
            ..BackendOptions::default()
        };
        async move {
            let backend = RedisBackend::new(client, options).await;
            Arc::new(backend.expect("the modelled server answers")) as DynBackend
        }
    })
    .wipe(move |target: LockTarget| {
        let words = [
            b"DEL".to_vec(),
            Keys::of(&target).main().as_bytes().to_vec(),
        ];
        let deleted = wiped.server().command(&words);
        let deleted = deleted.ok().and_then(|reply| reply.as_int());
        async move { assert_eq!(deleted, Some(1), "{target} was not there to be deleted") }
    })
    .picture(move |name: String| {
        let picture = seen.server().picture();
        let lines = picture.into_iter().filter(|(key, _)| key.contains(&name));
        let lines: Vec<_> = lines.map(|(key, value)| format!("{key} {value}")).collect();
        async move { lines.join("\n") }
    })
}
