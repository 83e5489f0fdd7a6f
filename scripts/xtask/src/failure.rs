//! How a command fails.

use std::fmt::Display;

/// The result of a command.
pub(crate) type Done<T = ()> = Result<T, Failure>;

/// Why a command ends early.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Printed on stderr; the exit code is 1.
    Said(String),
    /// Something is missing on this machine and cannot be installed, for this reason. The caller
    /// decides whether it can do without.
    Missing(String),
    /// A program exited with this code and has reported why.
    Code(i32),
}

impl<T: Display> From<T> for Failure {
    fn from(reason: T) -> Self {
        Self::Said(reason.to_string())
    }
}

/// Ends the function with a message.
macro_rules! fail {
    ($($words:tt)*) => { return Err($crate::failure::Failure::Said(format!($($words)*))) };
}

/// Ends the function with the reason why something is missing.
macro_rules! missing {
    ($($words:tt)*) => { return Err($crate::failure::Failure::Missing(format!($($words)*))) };
}

pub(crate) use {fail, missing};

/// The reason why something is missing, or `None` if it is there.
pub(crate) fn why_missing<T>(looked: Done<T>) -> Done<Option<String>> {
    match looked {
        Ok(_) => Ok(None),
        Err(Failure::Missing(why)) => Ok(Some(why)),
        Err(other) => Err(other),
    }
}

/// Turns a missing item into a failure that begins with these words.
pub(crate) fn need<T>(looked: Done<T>, otherwise: &str) -> Done<T> {
    looked.map_err(|failure| match failure {
        Failure::Missing(why) => Failure::Said(format!("{otherwise}: {why}")),
        other => other,
    })
}
