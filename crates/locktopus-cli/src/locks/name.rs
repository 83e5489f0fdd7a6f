//! The lock's name, as a positional argument or an option.

use clap::Args;

/// The name of the lock to run a program under.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct NameArg {
    /// The lock's name, without the namespace
    #[arg(value_name = "NAME")]
    positional: Option<String>,

    /// The lock's name, as an option
    #[arg(long = "name", value_name = "NAME")]
    option: Option<String>,
}

impl NameArg {
    /// The name. clap requires one.
    pub(crate) fn get(&self) -> &str {
        let either = self.positional.as_ref().or(self.option.as_ref());
        either.map_or("", String::as_str)
    }
}
