//! A script, and how it is assembled from its parts.

use std::sync::OnceLock;

const ONCE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/lua/once.lua"));
const TOGETHER: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/lua/together.lua"));

/// A script and the digest that servers know it by.
#[derive(Debug)]
pub struct Script {
    /// What it does, for errors: `lock_acquire`.
    pub name: &'static str,
    /// The text, as sent by `EVAL`.
    pub source: &'static str,
    digest: OnceLock<String>,
    together: OnceLock<Box<Self>>,
}

impl Script {
    pub(super) const fn new(name: &'static str, source: &'static str) -> Self {
        Self {
            name,
            source,
            digest: OnceLock::new(),
            together: OnceLock::new(),
        }
    }

    /// The SHA-1 digest in lower-case hex, as sent by `EVALSHA`.
    #[must_use]
    pub fn digest(&self) -> &str {
        let digest = || sha1_smol::Sha1::from(self.source).digest().to_string();
        self.digest.get_or_init(digest)
    }

    /// The script that runs this one once for each member of a batch: see `lua/together.lua`. Its
    /// first line is the same, so a server refuses both in the same situations.
    ///
    /// Made on first use, and never freed, as the script itself.
    #[must_use]
    pub fn together(&self) -> &Self {
        self.together.get_or_init(|| {
            let (first, rest) = self.source.split_once('\n').unwrap_or_default();
            let source = [first, "\n", ONCE, rest, TOGETHER].concat();
            let name = format!("{}_together", self.name);
            Box::new(Self::new(name.leak(), source.leak()))
        })
    }
}

/// Puts the files in order. `first` is the line that tells a server the script's flags. `head` is a
/// file that must come before everything else. `args` is a line that names the arguments that the
/// parts need.
macro_rules! script {
    ($name:expr, $first:literal, $(head $head:literal,)? $($args:literal,)? [$($file:literal),+ $(,)?]) => {{
        const SOURCE: &str = concat!(
            $first,
            "\n",
            $(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/lua/", $head, ".lua")),)?
            $($args, "\n",)?
            $(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/lua/", $file, ".lua"))),+
        );
        $crate::scripts::Script::new($name, SOURCE)
    }};
}

/// Two scripts that grant: the plain one, and the one for `safety=quarantine`, which has the
/// quarantine parts after `before`.
macro_rules! granting_script {
    (
        $(#[$doc:meta])*
        $plain:ident, $quarantined:ident, $name:expr, $args:literal,
        before: [$($before:literal),+ $(,)?],
        quarantine: [$($guard:literal),+ $(,)?],
        after: [$($after:literal),+ $(,)?] $(,)?
    ) => {
        $(#[$doc])*
        pub static $plain: $crate::scripts::Script =
            script!($name, "#!lua", $args, [$($before,)+ $($after),+]);

        #[doc = concat!("[`", stringify!($plain), "`] for `safety=quarantine`.")]
        pub(crate) static $quarantined: $crate::scripts::Script = script!(
            concat!("quarantined_", $name),
            "#!lua",
            head "part/quarantine_args",
            $args,
            [$($before,)+ $($guard,)+ $($after),+]
        );
    };
}

pub(super) use {granting_script, script};
