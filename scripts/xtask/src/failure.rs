//! How a command ends when it does not end well.

use std::fmt::Display;

/// The result of a command.
pub(crate) type Done<T = ()> = Result<T, Failure>;

/// Why a command ends early.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Printed on stderr; the exit code is 1.
    Said(String),
    /// Something is not on this machine and cannot be installed, for this reason. The caller
    /// decides whether it can do without.
    Missing(String),
    /// A program ended with this code and has said why.
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

/// Ends the function with the reason why something cannot be had.
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

/// Turns what is missing into a failure that begins with these words.
pub(crate) fn need<T>(looked: Done<T>, otherwise: &str) -> Done<T> {
    looked.map_err(|failure| match failure {
        Failure::Missing(why) => Failure::Said(format!("{otherwise}: {why}")),
        other => other,
    })
}
