//! Names of enumerations, the same in files, on the command line and in reports.

/// Gives each variant its name.
macro_rules! names {
    ($($type:ident: $($variant:ident = $name:literal),* $(,)?;)*) => {
        $(impl $type {
            /// The name used in files, on the command line and in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        })*
    };
}
pub(crate) use names;
