//! Options that are handled here; the rest goes to the harness.

use std::path::PathBuf;

use crate::failure::{Done, fail};
use crate::shell::Shell;

/// The options of `scripts/bench` and `scripts/failover`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) provider: Option<String>,
    out: Option<PathBuf>,
    pub(super) pin: bool,
    /// For the harness.
    pub(super) kept: Vec<String>,
}

impl Options {
    pub(super) fn of(arguments: &[String]) -> Done<Self> {
        let mut options = Self { provider: None, out: None, pin: true, kept: Vec::new() };
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            let (name, mut value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (option.as_str(), None),
            };
            match name {
                "--provider" | "--out" | "-o" => {
                    value = value.or_else(|| rest.next().cloned());
                    let Some(value) = value else { fail!("{name} needs a value") };
                    if name == "--provider" {
                        options.provider = Some(value);
                    } else {
                        options.out = Some(value.into());
                    }
                }
                "--no-pin" => options.pin = false,
                "--pin" => {}
                _ => options.kept.push(option.clone()),
            }
        }
        Ok(options)
    }

    /// Whether the options for the harness include this one.
    pub(super) fn has(&self, name: &str) -> bool {
        self.kept.iter().any(|option| option.split('=').next() == Some(name))
    }

    /// The folder of the report: `--out`, or a new one below `folder`.
    pub(super) fn out(&self, sh: &Shell, folder: &str) -> Done<PathBuf> {
        match &self.out {
            Some(asked) => Ok(sh.from.join(asked)),
            None => {
                let now = sh.cmd("date").args(["-u", "+%Y-%m-%dT%H-%M-%SZ"]).read()?;
                Ok(sh.root.join(folder).join(now))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::said;

    fn of(words: &str) -> Done<Options> {
        Options::of(&words.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_not_decided_here_is_kept_for_the_harness() {
        let options =
            of("--full --provider pod --url=redis://a --out=b --workers 3 --no-pin").unwrap();
        assert_eq!((options.provider.as_deref(), options.pin), (Some("pod"), false));
        assert_eq!(options.kept, ["--full", "--url=redis://a", "--workers", "3"]);
        assert!(options.has("--url") && !options.has("--list"));
        assert_eq!(of("-o b").unwrap(), of("--out b").unwrap());
        assert_eq!(said(of("--provider")), "--provider needs a value");
    }
}
