//! Errors of the command: a message and the exit code that goes with it.

mod remedy;

use std::error::Error;
use std::time::Duration;

use locktopus::internal::with_causes;
use locktopus::{
    BackendError, BackendErrorKind, ConnectError, LockError, LockKind, OptionError, OtherKind,
    TooFewPermits,
};

use crate::exit::Exit;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { exit, message }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Whether a program could not be started.
    pub(crate) fn is_no_start(&self) -> bool {
        [Exit::NoProgram, Exit::CannotStart].contains(&self.exit)
    }

    fn of(exit: Exit, error: &dyn Error) -> Self {
        let mut message = with_causes(error);
        if exit == Exit::Denied {
            message.push_str("; locktopus doctor --acl prints an ACL SETUSER line that permits it");
        }
        Self::new(exit, message)
    }
}

/// Formats a time as users write it, such as `5m` or `400d`. Times above a millisecond are rounded
/// up to whole milliseconds.
pub(crate) fn spell(time: Duration) -> String {
    locktopus::spelled(match time.as_nanos() {
        1..1_000_000 => time,
        nanos => {
            Duration::from_millis(u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX))
        }
    })
}

/// Describes a rejected option by its flag.
fn in_flags(error: &OptionError) -> String {
    let flag = match error.option {
        "fixed_lease" | "renewed_lease" | "extend" => "--lease",
        "max_hold" => "--max-hold",
        "hold_at_least" => "--at-least",
        "wait_at_most" => "--wait",
        "permits" => "--permits",
        "every" => "--every",
        "lock" => "--kind",
        other => other,
    };
    let rule = error.rule.replace(" (max_lease)", "");
    format!("{flag} {}: {rule}", error.value)
}

/// Quotes a name, if needed, so that a shell takes it for one word.
pub(crate) fn word(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_.:/@%+,".contains(c);
    if name.chars().all(plain) && !name.starts_with('-') {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}

/// Says which kind the name is in use as, and which `--kind` to give.
fn as_other_kind(other: &OtherKind) -> String {
    let (name, asked) = (other.asked.name().as_str(), other.asked.kind());
    let shown = word(name);
    if asked == &LockKind::Latch {
        return format!(
            "{name:?} is in use as {}, not as a latch; nothing was changed. Inspect it with locktopus status {shown}, or \
             choose another name",
            other.found
        );
    }
    let what = match &*other.found {
        "latch" => format!("Inspect it with locktopus latch show {shown}, or choose another name"),
        "rate_limiter" => {
            format!("Inspect it with locktopus status {shown}, or choose another name")
        }
        "lock or fair_lock" => "use --kind lock or --kind fair_lock, as its holder does".to_owned(),
        "mutex" => "use --kind mutex, and --profile if it belongs to another library".to_owned(),
        "rw_lock" => "use --kind read_lock or --kind write_lock".to_owned(),
        "semaphore" => {
            "use --kind semaphore, or `locktopus semaphore` without --with-ids".to_owned()
        }
        "permit_semaphore" => {
            "use --kind permit_semaphore, or `locktopus semaphore` with --with-ids".to_owned()
        }
        found if found.starts_with("a number") => {
            format!(
                "Find out which with locktopus status {shown}, then use --kind semaphore or --kind permit_semaphore"
            )
        }
        found if LockKind::from_word(found).is_some() => format!("use --kind {found}"),
        "a text" => "If it belongs to another library, use --kind mutex and --profile".to_owned(),
        _ => "Choose another name".to_owned(),
    };
    let share = if what.starts_with("use") {
        "To share it, "
    } else {
        ""
    };
    let has_no_kind = matches!(
        asked,
        LockKind::Semaphore | LockKind::PermitSemaphore | LockKind::Mutex(_)
    );
    let whose = match has_no_kind && what.contains("--kind") {
        true => " (run, lock and status take --kind)",
        false => "",
    };
    format!(
        "{name:?} is in use as {}, not as {}; nothing was changed. {share}{what}{whose}",
        other.found,
        asked.as_str()
    )
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        if let Some(other) = error.other_kind() {
            return Self::new(Exit::Failed, as_other_kind(other));
        }
        if let LockError::Option(error) = &error {
            return Self::usage(in_flags(error));
        }
        let exit = match &error {
            LockError::Name(_)
            | LockError::Option(_)
            | LockError::Ticket { .. }
            | LockError::NotReentrant { .. }
            | LockError::UpgradeRefused { .. } => Exit::Usage,
            LockError::WaitTimeout { source: None, .. } => Exit::Busy,
            LockError::WaitTimeout {
                source: Some(source),
                ..
            }
            | LockError::Backend { source, .. } => of_backend(source),
            LockError::Lost { .. } => Exit::Lost,
            _ => Exit::Failed,
        };
        match error.too_few_permits() {
            Some(too_few) => Self::new(exit, too_few_permits(too_few)),
            None => Self::of(exit, &error),
        }
    }
}

/// The library's error about missing permits, with the command that mends it.
fn too_few_permits(error: &TooFewPermits) -> String {
    let (name, kind) = (error.target.name().as_str(), error.target.kind());
    let shown = word(name);
    let with_ids = match kind {
        LockKind::PermitSemaphore => "--with-ids ",
        _ => "",
    };
    let next = match error.total {
        None => format!("set it: locktopus semaphore init {with_ids}{shown} PERMITS"),
        Some(_) => format!(
            "ask for fewer, or raise the number: locktopus semaphore resize {with_ids}{shown} PERMITS"
        ),
    };
    format!("{} {name:?}: {error}; {next}", kind.as_str())
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        Self::of(of_backend(&error), &error)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        if let ConnectError::Settings(LockError::Option(error)) = &error {
            let text = error.to_string().replace(" (max_lease)", "");
            return Self::new(Exit::Config, text);
        }
        let exit = match &error {
            ConnectError::Unreachable { url, .. } => {
                let text = remedy::unreachable(url, &error.to_string());
                return Self::new(Exit::Unavailable, text);
            }
            ConnectError::Backend { source, .. } => of_backend(source),
            ConnectError::Unsafe { .. } => Exit::Failed,
            _ => Exit::Config,
        };
        Self::of(exit, &error)
    }
}

fn of_backend(error: &BackendError) -> Exit {
    match error.kind() {
        BackendErrorKind::Denied => Exit::Denied,
        BackendErrorKind::Unavailable
        | BackendErrorKind::Timeout
        | BackendErrorKind::Closed
        | BackendErrorKind::NoQuorum
        | BackendErrorKind::NotReplicated
        | BackendErrorKind::Protocol => Exit::Unavailable,
        _ => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_write_them() {
        for (time, text) in [
            (Duration::from_secs(300), "5m"),
            (Duration::from_secs(86_400), "1d"),
            (Duration::from_secs(400 * 86_400), "400d"),
            (
                Duration::from_millis(400 * 86_400_000 - 1),
                "399d23h59m59s999ms",
            ),
            (Duration::from_millis(2_999), "2s999ms"),
            (Duration::from_micros(999_833), "1s"),
            (Duration::from_millis(250), "250ms"),
            (Duration::from_micros(1), "1us"),
            (Duration::from_nanos(1), "1ns"),
            (Duration::ZERO, "0s"),
        ] {
            assert_eq!(spell(time), text);
        }
    }

    #[test]
    fn options_are_named_as_flags() {
        let error = OptionError::new(
            "fixed_lease",
            Duration::from_secs(300),
            format!(
                "a lease must be at most {:?} (max_lease)",
                Duration::from_secs(60)
            ),
        );
        let text = Failure::from(LockError::from(error)).message;
        assert_eq!(text, "--lease 5m: a lease must be at most 1m");
    }
}
