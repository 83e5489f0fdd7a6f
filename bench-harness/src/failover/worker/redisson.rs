//! Redisson itself, in a JVM beside this process, controlled thread by thread.
//!
//! Its users cannot ask how long they may believe in a lock, and hear of no loss. So the holder of
//! a lock that the watchdog renews believes in it until it releases it, and a holder that asked for
//! a lease believes for that long.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use locktopus::LockKind;
use locktopus_history::{Clock, FailReason, Mode, ReleaseOutcome};
use locktopus_servers::peers::redisson::{Jar, JavaThread, Redisson, RedissonError, Reply};

use super::job::Job;
use super::subject::{Failure, Held, Subject, Wish};

/// A renewed lock counts as valid for longer than any cell lasts.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);
/// The part of a lease that the answer may have taken, in Redisson's favour. Nothing tells when the
/// successful attempt was sent, and Redisson waits a second for replicas before it answers.
const SLACK: Duration = Duration::from_secs(1);

struct Java {
    session: Redisson,
    /// Idle threads. Redisson identifies owners by thread, so a thread holds one lock at a time.
    idle: Arc<Mutex<Vec<JavaThread>>>,
    clock: Clock,
    patience: Duration,
}

pub(super) async fn connect(job: &Job, clock: Clock) -> Result<Arc<dyn Subject>, String> {
    let [url] = job.urls.as_slice() else {
        return Err("Redisson is connected to one place".to_owned());
    };
    // The watchdog's lease is a setting of the client, so the first renewed group's counts.
    let mut renewed = job.groups.iter().filter(|group| group.renewed);
    let url = match renewed.next() {
        Some(group) => format!("{url}&renewed_lease={}ms", group.lease.as_millis()),
        None => url.clone(),
    };
    let connected = async {
        let jar = Jar::find_or_build().await?;
        Redisson::start_silent(&jar, &url).await
    };
    let session = connected
        .await
        .map_err(|error: RedissonError| crate::shared::error_chain::chain(&error))?;
    Ok(Arc::new(Java {
        session,
        idle: Arc::default(),
        clock,
        patience: job.patience,
    }))
}

#[async_trait]
impl Subject for Java {
    async fn acquire(&self, wish: Wish<'_>) -> Result<Box<dyn Held>, Failure> {
        let object = match wish.group.kind {
            LockKind::Reentrant | LockKind::Mutex(_) => "lock",
            LockKind::Fair => "fair",
            LockKind::Write if wish.reads => "read",
            LockKind::Write => "write",
            _ => return Err(failed(FailReason::Error, "no lease")),
        };
        let idle = locked(&self.idle).pop();
        let mut thread = Asked::of(idle.unwrap_or_else(|| self.session.thread()));
        let patience = self.patience.as_millis().to_string();
        let lease = wish.group.lease;
        let fixed = lease.as_millis().to_string();
        let mut command = vec![object, "try", wish.lock, &patience];
        if !wish.group.renewed {
            command.push(&fixed);
        }
        let reply = thread.ask(&command).await;
        let thread = thread.answered();
        match reply {
            Ok(Reply::Done) => {}
            Ok(Reply::No) => {
                locked(&self.idle).push(thread);
                return Err(failed(FailReason::Timeout, "wait timeout"));
            }
            Ok(Reply::Threw { class, message }) => {
                locked(&self.idle).push(thread);
                return Err(failed(FailReason::Maybe, &kind_of(&class, &message)));
            }
            Ok(Reply::Value(other)) => return Err(failed(FailReason::Maybe, &other)),
            Err(error) => return Err(failed(FailReason::Maybe, &error.to_string())),
        }
        let valid_until = match wish.group.renewed {
            true => self.clock.after(FOR_EVER),
            // For a short lease only a part of it, or nothing would be left.
            false => self.clock.after(lease - SLACK.min(lease / 5)),
        };
        Ok(Box::new(HeldLock {
            object,
            name: wish.lock.to_owned(),
            mode: if wish.reads {
                Mode::Shared
            } else {
                Mode::Exclusive
            },
            thread,
            idle: Arc::clone(&self.idle),
            valid_until,
            clock: self.clock,
        }))
    }

    async fn close(&self) -> u64 {
        0
    }
}

/// Maps an exception to the reasons that a plan expects of a fault; others keep their class name.
fn kind_of(class: &str, message: &str) -> String {
    let kind = match class {
        _ if message.contains("synced") => "not replicated",
        "RedisTimeoutException" | "RedisResponseTimeoutException" => "no answer",
        "RedisException"
        | "RedisConnectionException"
        | "RedisNodeNotFoundException"
        | "RedisLoadingException"
        | "RedisClusterDownException"
        | "RedisTryAgainException"
        | "RedisReadonlyException"
        | "WriteRedisConnectionException" => "unavailable",
        other => other,
    };
    kind.to_owned()
}

fn failed(reason: FailReason, kind: &str) -> Failure {
    Failure {
        reason,
        kind: kind.to_owned(),
    }
}

/// A request to a thread. If the future is dropped, the thread gives up, and releases what it may
/// have acquired, because no holder would use it.
struct Asked {
    thread: Option<JavaThread>,
    release: Vec<String>,
}

impl Asked {
    fn of(thread: JavaThread) -> Self {
        Self {
            thread: Some(thread),
            release: Vec::new(),
        }
    }

    async fn ask(&mut self, command: &[&str]) -> Result<Reply, RedissonError> {
        self.release = [command[0], "unlock", command[2]]
            .map(str::to_owned)
            .to_vec();
        match &mut self.thread {
            Some(thread) => thread.ask(command).await,
            None => Err(RedissonError::Gone),
        }
    }

    fn answered(mut self) -> JavaThread {
        self.thread.take().expect("it is asked once")
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Some(mut thread) = self.thread.take() else {
            return;
        };
        let release = std::mem::take(&mut self.release);
        tokio::spawn(async move {
            let _ = thread.interrupt().await;
            if let Ok(Reply::Done) = thread.reply().await {
                let words: Vec<&str> = release.iter().map(String::as_str).collect();
                let _ = thread.ask(&words).await;
            }
        });
    }
}

struct HeldLock {
    object: &'static str,
    name: String,
    mode: Mode,
    thread: JavaThread,
    idle: Arc<Mutex<Vec<JavaThread>>>,
    valid_until: u64,
    clock: Clock,
}

#[async_trait]
impl Held for HeldLock {
    fn mode(&self) -> Mode {
        self.mode
    }

    fn valid_until(&self) -> u64 {
        self.valid_until
    }

    fn ended(&self) -> Option<String> {
        (self.clock.now_ns() >= self.valid_until).then(|| "expired".to_owned())
    }

    async fn lost(&self) -> String {
        super::sleep_until(self.clock, self.valid_until).await;
        "expired".to_owned()
    }

    async fn release(mut self: Box<Self>) -> ReleaseOutcome {
        let outcome = match self.thread.ask(&[self.object, "unlock", &self.name]).await {
            Ok(Reply::Done) => ReleaseOutcome::Ok,
            // Another owner has it, or none.
            Ok(Reply::Threw { class, .. }) if class == "IllegalMonitorStateException" => {
                ReleaseOutcome::Lost
            }
            Ok(_) => ReleaseOutcome::Error,
            Err(_) => return ReleaseOutcome::Error,
        };
        locked(&self.idle).push(self.thread);
        outcome
    }
}

fn locked(idle: &Mutex<Vec<JavaThread>>) -> std::sync::MutexGuard<'_, Vec<JavaThread>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_a_reason_that_a_plan_may_expect() {
        let synced = kind_of(
            "RedisException",
            "None of slaves were synced within 1 seconds",
        );
        assert_eq!(synced, "not replicated");
        assert_eq!(kind_of("RedisTimeoutException", "waited"), "no answer");
        assert_eq!(kind_of("RedisConnectionException", ""), "unavailable");
        assert_eq!(
            kind_of("NullPointerException", "null"),
            "NullPointerException"
        );
    }
}
