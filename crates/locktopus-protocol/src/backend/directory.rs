//! Eviction, and lists of locks.
//!
//! A list takes `SCAN` one page at a time, one primary after the other, and one script that
//! classifies the keys found. A key counts as a lock if its content looks like one. Plain strings
//! of other libraries look like any other data and are left out. A lock of another library may have
//! a name that Locktopus refuses: it is on the page, and `LockList` counts it.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use locktopus_contract::{
    BackendError, BackendErrorKind, Directory, Eviction, Executed, FoundLock, LockKind, LockPage,
    LockTarget, ScanCursor,
};
use tokio::time::Instant;

use super::RedisBackend;
use super::context::Context;
use crate::client::slot_map::first_slots;
use crate::client::{Reply, Route};
use crate::execution::call::{Call, Effect};
use crate::kinds;
use crate::kinds::keys::{further, kind_key};
use crate::layout::slot::{SLOTS, key_slot};
use crate::scripts::CLASSIFY;
use crate::wire::other_kind;

/// How many keys a server examines for one page. It serves no other client meanwhile.
const LOOKED_AT: &str = "500";
/// How many empty pages to skip before returning an empty one.
const EMPTY_PAGES: usize = 16;
/// How many slots have their keys classified at once. This takes few round trips even if each key
/// of a page has its own slot, and does not delay other commands for long.
const SLOTS_AT_ONCE: usize = 128;
/// The prefixes of side keys. A key that merely resembles one may be another library's lock.
const SIDE_KEYS: [&str; 5] = [
    "locktopus_",
    "redisson_lock_token:",
    "redisson_lock_queue:",
    "redisson_lock_timeout:",
    "redisson_unlock_latch:",
];

/// The position of a listing: a primary, identified by its first slot, and that server's cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    slot: u16,
    cursor: u64,
}

impl Place {
    fn parse(context: &Context, cursor: Option<ScanCursor>) -> Result<Self, BackendError> {
        let Some(ScanCursor(text)) = cursor else {
            return Ok(Self { slot: 0, cursor: 0 });
        };
        let parsed = text.split_once(':').and_then(|(slot, cursor)| {
            let slot = slot.parse().ok().filter(|slot| *slot < SLOTS)?;
            let cursor = cursor.parse().ok()?;
            Some(Self { slot, cursor })
        });
        parsed.ok_or_else(|| {
            let message = format!("{text:?} is not a cursor that this backend gave");
            let executor = &context.executor;
            executor.error(BackendErrorKind::Refused, Executed::No, message)
        })
    }
}

#[async_trait]
impl Directory for RedisBackend {
    /// A page is empty with a cursor if half of the time passes without a lock; the other half is
    /// left for the answers then under way.
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        let context = self.contexts.here()?;
        context.executor.check_open()?;
        let begun = Instant::now();
        let enough = begun + deadline.saturating_duration_since(begun) / 2;
        let pattern = format!("{}*", literal(prefix));
        let mut place = Place::parse(&context, cursor)?;
        for round in 1.. {
            let (next, names) = scan(&context, place, &pattern, deadline).await?;
            let following = match next {
                0 => next_primary(&context, place.slot, deadline).await?,
                cursor => Some(Place { cursor, ..place }),
            };
            let locks = classify(&context, names, deadline).await?;
            let Some(following) = following else {
                return Ok(LockPage::new(locks, None));
            };
            if !locks.is_empty() || round >= EMPTY_PAGES || Instant::now() >= enough {
                let next = ScanCursor(format!("{}:{}", following.slot, following.cursor));
                return Ok(LockPage::new(locks, Some(next)));
            }
            place = following;
        }
        Ok(LockPage::default())
    }

    async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        let context = self.contexts.here()?;
        let keys = context.keys(target);
        let script = &context.scripts(target.kind())?.evict;
        let retention = context.retention(None, Duration::ZERO).to_string();
        let tokens: &[u8] = if target.kind().has_tokens() {
            b"1"
        } else {
            b"0"
        };
        let mut args = vec![
            context.publish_for(&keys),
            keys.channel.as_deref().unwrap_or_default(),
            retention.as_bytes(),
            tokens,
        ];
        if let Some(notify) = keys.notify_args() {
            args.resize(7, b"");
            args.extend(notify);
        }
        let (names, slot) = (keys.scripts(), keys.slot());
        let call = Call::new(Effect::Release, script, &names, &args, slot, deadline);
        let told = context.run(call).await;
        let told = told.map_err(|error| other_kind::tell(error, |_| target))?;
        context.decoder(script).evicted(&told.reply)
    }
}

/// A prefix as a pattern that matches only itself. Without active wildcards, matching takes linear
/// time.
fn literal(prefix: &str) -> String {
    let mut pattern = String::with_capacity(prefix.len());
    for c in prefix.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

async fn scan(
    context: &Context,
    place: Place,
    pattern: &str,
    deadline: Instant,
) -> Result<(u64, Vec<String>), BackendError> {
    let cursor = place.cursor.to_string();
    let args: [&[u8]; 6] = [
        b"SCAN",
        cursor.as_bytes(),
        b"MATCH",
        pattern.as_bytes(),
        b"COUNT",
        LOOKED_AT.as_bytes(),
    ];
    let reply = context
        .executor
        .ask(Route::Slot(place.slot), &args, deadline)
        .await?;
    let nonsense = || {
        let message = "the answer to SCAN is malformed";
        let executor = &context.executor;
        executor.error(BackendErrorKind::Protocol, Executed::No, message)
    };
    let Some([next, Reply::Array(keys)]) = reply.items() else {
        return Err(nonsense());
    };
    let next = next.text().and_then(|next| next.parse().ok());
    let names = keys.iter().filter_map(|key| match key {
        Reply::Bytes(key) => lock_name(key),
        _ => None,
    });
    Ok((next.ok_or_else(nonsense)?, names.collect()))
}

/// The name of a lock that may be stored under this key.
fn lock_name(key: &Bytes) -> Option<String> {
    let name = std::str::from_utf8(key).ok()?;
    let side = SIDE_KEYS.iter().any(|prefix| name.starts_with(prefix));
    (!side && !name.is_empty()).then(|| name.to_owned())
}

/// The keys among these that look like locks.
pub(super) async fn classify(
    context: &Context,
    names: Vec<String>,
    deadline: Instant,
) -> Result<Vec<FoundLock>, BackendError> {
    let cluster = context.is_cluster();
    let mut slots: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for name in names {
        let slot = if cluster {
            key_slot(name.as_bytes())
        } else {
            0
        };
        slots.entry(slot).or_default().push(name);
    }
    let answers = stream::iter(slots)
        .map(|(slot, names)| classify_slot(context, slot, names, deadline))
        .buffered(SLOTS_AT_ONCE);
    answers.try_concat().await
}

async fn classify_slot(
    context: &Context,
    slot: u16,
    names: Vec<String>,
    deadline: Instant,
) -> Result<Vec<FoundLock>, BackendError> {
    let sides: Vec<String> = names.iter().flat_map(|name| sides(name)).collect();
    let same_slot = |key: &String| !context.is_cluster() || key_slot(key.as_bytes()) == slot;
    if !sides.iter().all(same_slot) {
        // A name whose keys do not share a slot cannot be a lock in a cluster.
        return Ok(Vec::new());
    }
    let keys: Vec<&[u8]> = sides.iter().map(String::as_bytes).collect();
    let call = Call::new(Effect::Look, &CLASSIFY, &keys, &[], slot, deadline);
    let told = context.run(call).await?;
    let decoder = context.decoder(&CLASSIFY);
    let letters = decoder.letters(&told.reply, names.len())?;
    let found = names.into_iter().zip(letters);
    let found =
        found.filter_map(|(name, letter)| Some(FoundLock::new(name, kinds::found_as(letter)?)));
    Ok(found.collect())
}

/// The key itself and the keys beside it that distinguish kinds.
fn sides(name: &str) -> impl Iterator<Item = String> {
    let kinds = [
        LockKind::Semaphore,
        LockKind::PermitSemaphore,
        LockKind::Fair,
    ];
    let sides = kinds
        .into_iter()
        .filter_map(move |kind| further(kinds::of(&kind), name));
    let own = std::iter::once(name.to_owned());
    own.chain(sides).chain([kind_key(name)])
}

/// The primary after the one whose first slot is `slot`.
async fn next_primary(
    context: &Context,
    slot: u16,
    deadline: Instant,
) -> Result<Option<Place>, BackendError> {
    if !context.is_cluster() {
        return Ok(None);
    }
    let reply = context
        .executor
        .ask(Route::Any, &[b"CLUSTER", b"SLOTS"], deadline)
        .await?;
    let next = first_slots(&reply).into_iter().find(|first| *first > slot);
    Ok(next.map(|slot| Place { slot, cursor: 0 }))
}

#[cfg(test)]
mod tests;
