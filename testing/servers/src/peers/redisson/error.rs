//! The errors around Redisson.

use std::path::PathBuf;
use std::time::Duration;

/// Why Redisson is unavailable, or what went wrong with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedissonError {
    /// No Java can run or compile it.
    #[error("no JDK: {0}")]
    NoJdk(String),
    /// No Maven can build it.
    #[error(
        "no Maven: PATH has no mvn (Debian's package maven), and LOCKTOPUS_REDISSON_JAR names no jar"
    )]
    NoMaven,
    /// Maven could not fetch what it needs.
    #[error("Maven could not download what the Redisson peer needs: {0}")]
    NoDownload(String),
    /// The requested file does not exist.
    #[error("LOCKTOPUS_REDISSON_JAR names {}, which is no file", .0.display())]
    NoSuchJar(PathBuf),
    /// The sources to build it from are missing.
    #[error("the sources of the Redisson peer are not in {}", .0.display())]
    NoSources(PathBuf),
    /// The Maven build failed.
    #[error("Maven could not build the Redisson peer: {0}")]
    Build(String),
    /// A file or process could not be used.
    #[error("cannot {what}: {source}")]
    Io {
        /// The failed operation.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The process ended, or was killed.
    #[error("the Redisson process is gone; its last words are on standard error")]
    Gone,
    /// It did not answer.
    #[error("Redisson did not answer {what:?} within {within:?}")]
    Silent {
        /// The command.
        what: String,
        /// How long the wait was.
        within: Duration,
    },
    /// It could not connect, or its output is not an answer.
    #[error("Redisson said {0:?}")]
    Odd(String),
    /// In CI these tests must not be skipped.
    #[error(
        "in CI (the variable CI is set) the tests with Redisson cannot be left out without a reason in \
         LOCKTOPUS_SKIP_JDK: {0}"
    )]
    Required(Box<Self>),
}

impl RedissonError {
    /// Whether this machine lacks a requirement, as opposed to a fault.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(self, Self::NoJdk(_) | Self::NoMaven | Self::NoDownload(_))
    }

    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
