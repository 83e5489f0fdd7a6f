//! Names of locks.

use std::collections::BTreeSet;
use std::time::Duration;

use locktopus::{LockKind, LockName, LockTarget, Locktopus, MemoryBackend};
use locktopus_protocol::Keys;
use locktopus_protocol::slot::key_slot;

use crate::input::{Input, text};

/// All keys and channels on a server that are named after a lock.
fn everything(target: &LockTarget) -> BTreeSet<Vec<u8>> {
    let keys = Keys::of(target);
    let channels = [&keys.channel, &keys.native].into_iter().flatten();
    let names = keys.names.iter().map(|name| name.as_bytes().to_vec());
    names.chain(channels.map(|name| name.to_vec())).collect()
}

/// Two bytes for kinds, then two names with a zero between them.
///
/// An accepted name is its own key, and shares no key with any other accepted name. An encoded name
/// decodes to the original, and is accepted everywhere. A refused name is refused before anything
/// is written.
///
/// # Panics
///
/// If one of these rules is broken.
pub fn names(data: &[u8]) {
    let (mut input, kinds) = (Input::new(data), LockKind::all());
    let (kind, other_kind) = (input.one_of(&kinds).clone(), input.one_of(&kinds).clone());
    let (one, other) = (input.up_to(0), input.rest());
    encoded(one, &kind);
    let [one, other] =
        [(one, kind), (other, other_kind)].map(|(name, kind)| accepted(&text(name), kind));
    let (Some(one), Some(other)) = (one, other) else {
        return;
    };
    if one.name() != other.name() {
        let shared: Vec<_> = everything(&one)
            .intersection(&everything(&other))
            .cloned()
            .collect();
        assert!(
            shared.is_empty(),
            "{one} and {other} share {:?}",
            shared.iter().map(|key| text(key)).collect::<Vec<_>>()
        );
    }
}

/// A target whose name every backend accepts.
fn accepted(name: &str, kind: LockKind) -> Option<LockTarget> {
    let named = LockName::new(name).ok()?;
    assert_eq!(named.as_str(), name);
    let target = LockTarget::new(named, kind);
    let keys = Keys::of(&target);
    assert_eq!(keys.main(), target.key());
    if target.check_name().is_err() {
        refused(&target);
        return None;
    }
    assert_eq!(target.key(), name, "a name is kept under itself");
    if keys.check_one_slot("a cluster").is_ok() {
        let slots: BTreeSet<_> = keys
            .names
            .iter()
            .map(|key| key_slot(key.as_bytes()))
            .collect();
        assert_eq!(slots.len(), 1, "{target} is one lock in {slots:?}");
    }
    Some(target)
}

/// Every request for it returns an error, and it leaves nothing.
fn refused(target: &LockTarget) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(async {
        let backend = MemoryBackend::new();
        let locks = Locktopus::builder(backend.clone())
            .build()
            .expect("a backend without settings");
        let name = target.name().as_str();
        let error = match target.kind() {
            LockKind::Latch => locks.latch(name).initialise(3).await.err(),
            kind => locks.of_kind(name, kind.clone()).try_acquire().await.err(),
        };
        assert!(error.is_some(), "{target} is refused, and was taken");
        assert_eq!(
            backend.population(),
            (0, 0),
            "{target} is refused, and something was written"
        );
        let _ = locks.shutdown(Duration::ZERO).await;
    });
}

fn encoded(bytes: &[u8], kind: &LockKind) {
    let Ok(name) = LockName::encode(bytes) else {
        return;
    };
    let decoded = name
        .decode()
        .unwrap_or_else(|error| panic!("{name} was encoded: {error}"));
    assert_eq!(decoded, bytes);
    let target = LockTarget::new(name, kind.clone());
    assert!(
        target.check_name().is_ok(),
        "{target} was encoded to be accepted"
    );
    assert!(
        Keys::of(&target).check_one_slot("a cluster").is_ok(),
        "{target} was encoded to have one slot"
    );
}
