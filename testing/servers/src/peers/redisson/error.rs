//! Why there is no Redisson, or what went wrong with it.

use std::path::PathBuf;
use std::time::Duration;

/// Why there is no Redisson, or what went wrong with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedissonError {
    /// There is no Java that could run or compile it.
    #[error("no JDK: {0}")]
    NoJdk(String),
    /// There is no Maven to build it with.
    #[error(
        "no Maven: PATH has no mvn (Debian's package maven), and LOCKTOPUS_REDISSON_JAR names no jar"
    )]
    NoMaven,
    /// Maven could not fetch what it needs.
    #[error("Maven could not download what the Redisson peer needs: {0}")]
    NoDownload(String),
    /// The file that was asked for does not exist.
    #[error("LOCKTOPUS_REDISSON_JAR names {}, which is no file", .0.display())]
    NoSuchJar(PathBuf),
    /// There is nothing to build.
    #[error("the sources of the Redisson peer are not in {}", .0.display())]
    NoSources(PathBuf),
    /// Maven did not build it.
    #[error("Maven could not build the Redisson peer: {0}")]
    Build(String),
    /// A file or process could not be used.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It ended, or was killed.
    #[error("the Redisson process is gone; its last words are on standard error")]
    Gone,
    /// It said nothing.
    #[error("Redisson did not answer {what:?} within {within:?}")]
    Silent {
        /// What it was told.
        what: String,
        /// How long was waited.
        within: Duration,
    },
    /// It could not connect, or said something that is no answer.
    #[error("Redisson said {0:?}")]
    Odd(String),
    /// Nothing may be left out here.
    #[error(
        "in CI (the variable CI is set) the tests with Redisson cannot be left out without a reason in \
         LOCKTOPUS_SKIP_JDK: {0}"
    )]
    Required(Box<Self>),
}

impl RedissonError {
    /// Whether this machine lacks something, as opposed to something being wrong.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(self, Self::NoJdk(_) | Self::NoMaven | Self::NoDownload(_))
    }

    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
