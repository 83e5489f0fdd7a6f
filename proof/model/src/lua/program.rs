//! A compiled script and the flags in its first line.

use mlua::{Function, Lua, Table};

use crate::redis::Unsupported;

/// A compiled script. Cheap to clone, and tied to the interpreter that made it.
#[derive(Debug, Clone)]
pub struct Program {
    function: Function,
    flags: Flags,
}

/// The flags in the first line of a script.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flags {
    /// Whether that line exists. Without it, a server judges each command on its own.
    pub(super) declared: bool,
    pub(super) allow_oom: bool,
    pub(super) no_writes: bool,
}

impl Flags {
    /// Reads the first line. Also returns the rest of the text, which keeps its line numbers.
    fn parse(source: &str) -> Result<(Self, &str), Unsupported> {
        if !source.starts_with("#!") {
            return Ok((Self::default(), source));
        }
        let end = source.find('\n').unwrap_or(source.len());
        let (line, rest) = source.split_at(end);
        let unknown = || Unsupported {
            what: format!("the first line {line:?} of a script"),
        };
        let mut flags = Self {
            declared: true,
            ..Self::default()
        };
        let mut words = line.split(' ');
        if words.next() != Some("#!lua") {
            return Err(unknown());
        }
        for word in words {
            let list = word.strip_prefix("flags=").ok_or_else(unknown)?;
            for flag in list.split(',') {
                match flag {
                    "allow-oom" => flags.allow_oom = true,
                    "no-writes" => flags.no_writes = true,
                    // The model never refuses what these allow.
                    "allow-stale" | "no-cluster" | "allow-cross-slot-keys" => {}
                    _ => return Err(unknown()),
                }
            }
        }
        Ok((flags, rest))
    }
}

impl Program {
    pub(super) fn compile(
        lua: &Lua,
        environment: &Table,
        source: &str,
    ) -> Result<Self, Unsupported> {
        let (flags, body) = Flags::parse(source)?;
        // On the first line of the script, so that error messages give its own line numbers.
        let text = format!("return function(KEYS, ARGV) {body}\nend");
        let chunk = lua
            .load(text)
            .set_name("=user_script")
            .set_environment(environment.clone());
        let function = chunk.eval().map_err(|error| Unsupported {
            what: format!("this Lua: {error}"),
        })?;
        Ok(Self { function, flags })
    }

    pub(super) fn function(&self) -> &Function {
        &self.function
    }

    pub(super) fn flags(&self) -> Flags {
        self.flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_read_and_kept_as_an_empty_one() {
        let (flags, rest) = Flags::parse("#!lua flags=allow-oom,no-writes\nreturn 1").unwrap();
        assert!(flags.declared && flags.allow_oom && flags.no_writes);
        assert_eq!(rest, "\nreturn 1");
        assert!(!Flags::parse("return 1").unwrap().0.declared);
        assert!(Flags::parse("#!js\nreturn 1").is_err());
        assert!(Flags::parse("#!lua flags=fast\nreturn 1").is_err());
    }
}
