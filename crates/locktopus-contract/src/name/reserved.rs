//! Reserved names: names that would share keys with another lock.
//!
//! The side keys of a lock (its queue, its tokens, its readers) have names made from its own name:
//! with words before or after it, and in braces unless it already has some. A lock whose name looks
//! like a side key would be two things at once, so every backend refuses it.

use super::NameError;

/// The prefixes of the names of side keys.
const BESIDE: [&str; 2] = ["locktopus_", "redisson_"];
/// The side keys that belong to no single lock, and so need no braces.
const OF_NO_LOCK: [&str; 2] = ["locktopus_history", "locktopus_mark"];
/// The list with which python-redis-lock notifies waiters.
const RELEASE_SIGNAL: &str = "lock-signal:";

/// Whether a name, as stored, has only one meaning. `beside`: the lock has side keys.
pub(crate) fn check_apart(name: &str, beside: bool) -> Result<(), NameError> {
    let rule = match bare(name) {
        Some(inner) if beside => Some(format!(
            "what belongs to a lock is kept under its name in braces, so {name:?} and {inner:?} would share it; use \
             {inner:?}, or put something before or behind the braces, as in \"{name}:lock\""
        )),
        _ if is_beside(name) => Some(
            "it is the name of something that is kept beside a lock; let it begin with something else than \
             \"locktopus_\", \"redisson_\" and \"lock-signal:\""
                .to_owned(),
        ),
        _ => behind(name).map(|end| {
            format!(
                "it is the name of what is kept beside a lock named as it is without {end:?}; use another ending, or no \
                 braces"
            )
        }),
    };
    match rule {
        None => Ok(()),
        Some(rule) => Err(NameError::Ambiguous {
            name: name.to_owned(),
            rule,
        }),
    }
}

/// The name without its braces, if they surround all of it.
fn bare(name: &str) -> Option<&str> {
    let inner = name.strip_prefix('{')?.strip_suffix('}')?;
    (!inner.is_empty() && !inner.contains('{')).then_some(inner)
}

fn is_beside(name: &str) -> bool {
    let marked = BESIDE.iter().any(|start| name.starts_with(start)) && name.contains('{');
    marked
        || name.starts_with(RELEASE_SIGNAL)
        || OF_NO_LOCK.iter().any(|start| name.starts_with(start))
}

/// The ending that makes it the name of a side key: the deadlines of permits, or of one reader.
fn behind(name: &str) -> Option<&str> {
    let at = match name.strip_suffix(":timeout") {
        Some(rest) => rest.len(),
        None => {
            let rest = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let is_numbered = rest.len() < name.len();
            rest.strip_suffix(":rwlock_timeout:")
                .filter(|_| is_numbered)?
                .len()
        }
    };
    name[..at].contains('{').then(|| &name[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_something_else_are_refused_with_what_to_use_instead() {
        for (name, word) in [
            ("{n}", "\"n\""),
            ("{a}b}", "\"a}b\""),
            ("redisson_lock_queue:{n}", "begin with"),
            ("locktopus_waiters:{a}:b", "begin with"),
            ("locktopus_history", "begin with"),
            ("lock-signal:n", "begin with"),
            ("{n}:timeout", "another ending"),
            ("x{n}:y:timeout", "another ending"),
            ("{n}:some:one:rwlock_timeout:1", "another ending"),
        ] {
            let error = check_apart(name, true).unwrap_err().to_string();
            assert!(
                error.contains(&format!("{name:?}")) && error.contains(word),
                "{error}"
            );
        }
    }

    #[test]
    fn other_names_are_not() {
        for name in [
            "n",
            "{}",
            "a{n}b",
            "{n}:lock",
            "{{n}}",
            "{a}{b}",
            "n:timeout",
            "redisson_lock_queue",
            "locktopus_test:n",
            "n:rwlock_timeout:1",
            "{n}:rwlock_timeout:",
            "a:redisson_lock_queue:{n}",
            "{n}:timeouts",
        ] {
            assert_eq!(check_apart(name, true), Ok(()), "{name}");
        }
        assert_eq!(
            check_apart("{n}", false),
            Ok(()),
            "nothing is kept beside it"
        );
    }
}
