//! The Lua scripts, each with its digest.

use std::sync::LazyLock;

/// A script and the digest by which servers know it.
#[derive(Debug)]
pub struct Script {
    /// File name without ending, for errors.
    pub name: &'static str,
    /// The text, as sent by `EVAL`.
    pub source: &'static str,
    digest: LazyLock<String>,
}

impl Script {
    /// The SHA-1 digest in lower-case hex, as sent by `EVALSHA`.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = $file:literal;)*) => {
        $(
            $(#[$doc])*
            pub static $name: Script = Script {
                name: $file,
                source: include_str!(concat!("../lua/", $file, ".lua")),
                digest: LazyLock::new(|| {
                    sha1_smol::Sha1::from(include_str!(concat!("../lua/", $file, ".lua"))).digest().to_string()
                }),
            };
        )*

        /// Every script there is.
        pub static ALL: &[&Script] = &[$(&$name),*];
    };
}

scripts! {
    /// Takes a reentrant lock.
    LOCK_ACQUIRE = "lock_acquire";
    /// Releases a reentrant lock.
    LOCK_RELEASE = "lock_release";
    /// Extends reentrant locks.
    LOCK_EXTEND = "lock_extend";
    /// Reads a reentrant lock.
    LOCK_INSPECT = "lock_inspect";
    /// Takes a mutex.
    MUTEX_ACQUIRE = "mutex_acquire";
    /// Releases a mutex.
    MUTEX_RELEASE = "mutex_release";
    /// Extends mutexes.
    MUTEX_EXTEND = "mutex_extend";
    /// Reads a mutex.
    MUTEX_INSPECT = "mutex_inspect";
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_script_says_what_it_takes_and_gives() {
        for script in super::ALL {
            for word in ["KEYS  1", "Reply"] {
                assert!(
                    script.source.contains(word),
                    "{}.lua lacks {word:?} in its header",
                    script.name
                );
            }
            // Without it, a demoted primary would answer from its stale data until the first write.
            assert!(
                script.source.starts_with("#!lua"),
                "{}.lua lacks its first line",
                script.name
            );
            assert_eq!(script.digest().len(), 40);
        }
    }
}
