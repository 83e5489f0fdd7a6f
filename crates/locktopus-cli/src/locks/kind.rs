//! The options that say which kind of lock it is.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use locktopus::{LockKind, MutexProfile};

use crate::failure::Failure;

/// The kind of a lock. Its name is a separate argument.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LockArgs {
    /// Kind of lock. Default: lock; status, watch and break detect it where possible
    #[arg(long, value_parser = kinds())]
    pub(crate) kind: Option<LockKind>,

    #[arg(long, value_name = "LIBRARY", value_parser = MutexProfile::named, help = profiles())]
    pub(crate) profile: Option<MutexProfile>,
}

/// The kinds, under the library's own words. Latches have their own command.
fn kinds() -> impl TypedValueParser<Value = LockKind> {
    let kinds = LockKind::all()
        .into_iter()
        .filter(|kind| *kind != LockKind::Latch);
    let words = kinds.map(|kind| PossibleValue::new(kind.as_str()).help(kind.about()));
    PossibleValuesParser::new(words)
        .try_map(|word| LockKind::from_word(&word).ok_or("there is no such kind"))
}

fn profiles() -> String {
    let names: Vec<_> = MutexProfile::names().collect();
    format!(
        "Use the mutex format of another library: {}",
        names.join(", ")
    )
}

impl LockArgs {
    /// The kind asked for, if any.
    pub(crate) fn kind(&self) -> Result<Option<LockKind>, Failure> {
        match (&self.kind, &self.profile) {
            (Some(LockKind::Mutex(_)) | None, Some(profile)) => {
                Ok(Some(LockKind::Mutex(profile.clone().into())))
            }
            (Some(other), Some(_)) => Err(Failure::usage(format!(
                "--profile is for mutexes, not for --kind {}",
                other.as_str()
            ))),
            (kind, None) => Ok(kind.clone()),
        }
    }
}
