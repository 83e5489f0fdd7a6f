//! Writes to Redis protected by a fence: once a later holder has written, earlier holders' writes
//! are refused.
//!
//! For users' own data beside the locks. A hash beside each key, in the same slot, keeps the key's
//! newest fence, so that one script checks and writes.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::{BackendError, BackendErrorKind, Executed, FencingToken};
use locktopus_fence::{Fence, StaleCause};
use tokio::time::Instant;

use crate::client::{RedisClient, Reply};
use crate::execution::call::{Call, Effect};
use crate::execution::executor::{Executor, Way};
use crate::layout::slot::key_slot;
use crate::scripts;

const PREFIX: &[u8] = b"locktopus_fence:";
/// Longer times are cut to a hundred years, because servers cannot count forever.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Writes and deletes keys for lock holders, and refuses a holder that has been overtaken.
///
/// Each key `k` has its fence in a hash beside it: `locktopus_fence:{k}`, or `locktopus_fence:k` if
/// the key contains a brace (so `k` and `{k}` share one). Every writer of the key must write this
/// way. One lock protects a key: fences of other locks are refused until you delete the hash. If
/// one holder writes a key several times, the write that arrives last stays.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use locktopus_fence::Fence;
/// use locktopus_protocol::{GuardedOutcome, GuardedWriter, RedisClient};
/// # async fn example(client: Arc<dyn RedisClient>, fence: Fence) -> Result<(), locktopus_contract::BackendError> {
/// let writer = GuardedWriter::new(client);
/// match writer.set(&fence, b"invoice:42:total", b"99").await? {
///     GuardedOutcome::Written => {}
///     GuardedOutcome::Stale { newest, .. } => println!("overtaken by holder {newest}; stop"),
///     GuardedOutcome::OtherLock { lock } => println!("this key belongs to {lock}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct GuardedWriter {
    executor: Executor,
    timeout: Duration,
    keep: Option<Duration>,
}

/// The result of a guarded write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a refused write did not happen"]
#[expect(clippy::exhaustive_enums, reason = "each match needs a review")]
pub enum GuardedOutcome {
    /// The write was done.
    Written,
    /// Nothing was written: you no longer hold the lock.
    Stale {
        /// The newest token that wrote this key.
        newest: FencingToken,
        /// Why it was refused.
        cause: StaleCause,
    },
    /// Nothing was written: another lock protects the key.
    OtherLock {
        /// Kind and name of that lock, as in `lock:invoice:42`.
        lock: String,
    },
}

impl GuardedWriter {
    /// Creates a writer on this client.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client: std::sync::Arc<dyn locktopus_protocol::RedisClient> = unimplemented!();
    /// let writer = locktopus_protocol::GuardedWriter::new(client); // of `locktopus::connect_client`
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn new(client: Arc<dyn RedisClient>) -> Self {
        Self {
            executor: Executor::new(client),
            timeout: Duration::from_secs(1),
            keep: Some(Duration::from_secs(7 * 24 * 60 * 60)),
        }
    }

    /// How long to wait for an answer. Default 1 s.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(writer: locktopus_protocol::GuardedWriter) {
    /// let patient = writer.timeout(Duration::from_secs(3));
    /// # }
    /// ```
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.min(LONGEST);
        self
    }

    /// How long a fence stays after the last write, at least as long as the value. `None` keeps it
    /// forever. Default 7 days. A holder paused for longer, such as a restored machine snapshot, is
    /// not refused.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(writer: locktopus_protocol::GuardedWriter) {
    /// let writer = writer.keep_fences(Some(Duration::from_secs(30 * 24 * 60 * 60)));
    /// # }
    /// ```
    #[must_use]
    pub fn keep_fences(mut self, keep: Option<Duration>) -> Self {
        self.keep = keep.filter(|keep| *keep < LONGEST);
        self
    }

    /// Sets the key to a value that does not expire.
    ///
    /// ```no_run
    /// # async fn example(guard: locktopus_core::LockGuard, writer: locktopus_protocol::GuardedWriter)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus_protocol::GuardedOutcome;
    /// let fence = guard.fence().ok_or("a kind without tokens")?;
    /// let outcome = writer.set(&fence, b"invoice:42:total", b"99").await?;
    /// assert!(matches!(outcome, GuardedOutcome::Written));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BackendError`]. If it says that the write [may have run](Executed::Maybe), you can repeat
    /// it with the same fence; if a later holder has written meanwhile, the repetition is refused.
    /// On a cluster it also fails for a key whose braces keep the key and its fence from sharing a
    /// slot.
    ///
    /// # Cancel safety
    ///
    /// Safe for later holders. The write may or may not happen.
    pub async fn set(
        &self,
        fence: &Fence,
        key: &[u8],
        value: &[u8],
    ) -> Result<GuardedOutcome, BackendError> {
        self.write(fence, key, [b"SET", value], None).await
    }

    /// Sets the key to a value that expires after `ttl` (whole milliseconds, at least one).
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(fence: locktopus_fence::Fence, writer: locktopus_protocol::GuardedWriter)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// writer.set_expiring(&fence, b"session:7", b"open", Duration::from_secs(600)).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    ///
    /// # Cancel safety
    ///
    /// As [`set`](Self::set).
    pub async fn set_expiring(
        &self,
        fence: &Fence,
        key: &[u8],
        value: &[u8],
        ttl: Duration,
    ) -> Result<GuardedOutcome, BackendError> {
        self.write(fence, key, [b"SET", value], Some(ttl)).await
    }

    /// Deletes the key, of any type. Its fence stays, so that earlier holders cannot bring the key
    /// back.
    ///
    /// ```no_run
    /// # async fn example(fence: locktopus_fence::Fence, writer: locktopus_protocol::GuardedWriter)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// writer.delete(&fence, b"invoice:42:total").await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    ///
    /// # Cancel safety
    ///
    /// As [`set`](Self::set).
    pub async fn delete(&self, fence: &Fence, key: &[u8]) -> Result<GuardedOutcome, BackendError> {
        self.write(fence, key, [b"DEL", b""], None).await
    }

    async fn write(
        &self,
        fence: &Fence,
        key: &[u8],
        [command, value]: [&[u8]; 2],
        ttl: Option<Duration>,
    ) -> Result<GuardedOutcome, BackendError> {
        let deadline = Instant::now() + self.timeout;
        let fence_key = fence_key(key);
        let slot = key_slot(key);
        if self.executor.is_cluster() && key_slot(&fence_key) != slot {
            return Err(self.cannot_be_placed(key));
        }
        // A fence that expired before its value would protect nothing.
        let keep = self.keep.map(|keep| keep.max(ttl.unwrap_or_default()));
        let args = [
            format!("{}:{}", fence.kind(), fence.name().as_str()),
            fence.token().to_string(),
            fence
                .holder()
                .map_or_else(String::new, |holder| holder.to_string()),
            millis(keep),
        ];
        let ttl = millis(ttl);
        let [lock, token, holder, keep] = args.each_ref().map(String::as_bytes);
        let args = [lock, token, holder, keep, command, value, ttl.as_bytes()];
        let (script, keys) = (&scripts::GUARDED_WRITE, [key, fence_key.as_slice()]);
        let call = Call::new(Effect::Look, script, &keys, &args, slot, deadline);
        let reply = self.executor.run(Way::Usual, &call).await?;
        decode(&reply).ok_or_else(|| {
            let message = "the answer of guarded_write.lua is malformed";
            self.executor
                .error(BackendErrorKind::Protocol, Executed::Maybe, message)
        })
    }

    fn cannot_be_placed(&self, key: &[u8]) -> BackendError {
        let message = format!(
            "the key \"{}\" cannot have a fence in a cluster: its braces do not form a hash tag that both can share; \
             use no braces at all, or one non-empty tag as in \"{{user:7}}:cart\"",
            key.escape_ascii()
        );
        self.executor
            .error(BackendErrorKind::Refused, Executed::No, message)
    }
}

/// The name of the hash with a key's fence, in the key's slot if its braces allow it.
fn fence_key(key: &[u8]) -> Vec<u8> {
    if key.contains(&b'{') {
        [PREFIX, key].concat()
    } else {
        [PREFIX, b"{", key, b"}"].concat()
    }
}

/// Milliseconds for a script; 0 means forever.
fn millis(time: Option<Duration>) -> String {
    let millis = |time: Duration| time.min(LONGEST).as_millis().max(1);
    time.map_or(0, millis).to_string()
}

fn decode(reply: &Reply) -> Option<GuardedOutcome> {
    let [Reply::Int(status), Reply::Int(newest), Reply::Bytes(lock)] = reply.items()? else {
        return None;
    };
    let newest = u64::try_from(*newest).ok().and_then(FencingToken::new)?;
    let stale = |cause| Some(GuardedOutcome::Stale { newest, cause });
    match status {
        1 => Some(GuardedOutcome::Written),
        0 => stale(StaleCause::Overtaken),
        -1 => stale(StaleCause::SharedToken),
        -2 => Some(GuardedOutcome::OtherLock {
            lock: String::from_utf8_lossy(lock).into_owned(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_in_the_slot_of_its_key() {
        for (key, fence) in [
            (&b"cart"[..], &b"locktopus_fence:{cart}"[..]),
            (b"{user:7}:cart", b"locktopus_fence:{user:7}:cart"),
            (b"\xff\0", b"locktopus_fence:{\xff\0}"),
        ] {
            assert_eq!(fence_key(key), fence);
            assert_eq!(key_slot(key), key_slot(fence));
        }
    }

    #[test]
    fn times_are_what_servers_can_count() {
        for (time, text) in [
            (None, "0"),
            (Some(Duration::ZERO), "1"),
            (Some(Duration::from_micros(2_900)), "2"),
            (Some(Duration::MAX), "3153600000000"),
        ] {
            assert_eq!(millis(time), text);
        }
    }

    #[test]
    fn only_a_whole_answer_is_a_write() {
        let answer = |status, newest, lock: &'static str| {
            Reply::Array(vec![
                Reply::Int(status),
                Reply::Int(newest),
                Reply::Bytes(lock.into()),
            ])
        };
        let newest = FencingToken::new(5).unwrap();
        let stale = |cause| GuardedOutcome::Stale { newest, cause };
        let lock = "lock:a".to_owned();
        for (status, outcome) in [
            (1, GuardedOutcome::Written),
            (0, stale(StaleCause::Overtaken)),
            (-1, stale(StaleCause::SharedToken)),
            (-2, GuardedOutcome::OtherLock { lock }),
        ] {
            assert_eq!(decode(&answer(status, 5, "lock:a")), Some(outcome));
        }
        for bad in [
            answer(1, 0, "lock:a"),
            answer(1, -5, "lock:a"),
            answer(1, 1 << 53, "lock:a"),
            answer(2, 5, "lock:a"),
            Reply::Int(1),
            Reply::Nil,
            Reply::Array(vec![Reply::Int(1), Reply::Int(5)]),
        ] {
            assert_eq!(decode(&bad), None, "{bad:?}");
        }
    }
}
