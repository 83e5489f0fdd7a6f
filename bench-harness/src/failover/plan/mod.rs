//! Plans of faults, read from TOML.

mod axes;
mod cells;
mod fault;
mod file;
mod lock_group;
mod mode;

pub use axes::{Place, Subject};
pub use cells::{Cell, Choice, describe};
pub use fault::Verb;
pub use file::{PlanFile, Scenario, ServerKnobs};
pub use lock_group::LockGroup;
pub use mode::Mode;

/// Gives each variant of an enumeration the name it has in files, on the command line and in
/// reports.
macro_rules! named {
    ($type:ident: $($variant:ident = $name:literal),* $(,)?) => {
        impl $type {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in files, on the command line and in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().copied().find(|one| one.name() == word);
                found.ok_or_else(|| {
                    let known: Vec<_> = Self::ALL.iter().map(|one| one.name()).collect();
                    format!("unknown {word:?}: use one of {}", known.join(", "))
                })
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str>>::deserialize(from)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
use named;
