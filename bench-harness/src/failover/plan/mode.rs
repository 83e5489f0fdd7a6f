//! Safety modes, as data.

use serde::{Deserialize, Serialize};

/// A safety mode: how locks are connected to, what servers need for it, and what it promises.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// Options for the URL, as behind its `?`.
    #[serde(default)]
    pub options: String,
    /// Whether a majority of independent servers must agree.
    #[serde(default)]
    pub quorum: bool,
    /// Whether it promises that no fault of the plan lets two holders believe at once. Broken
    /// promises fail the run.
    #[serde(default)]
    pub exclusive: bool,
    /// Arguments that servers with replicas get for it.
    #[serde(default)]
    pub server_args: Vec<String>,
    /// The longest lease of any lock; of a quorum, also how long a restarted node does not vote.
    #[serde(default, with = "humantime_serde")]
    pub max_lease: Option<std::time::Duration>,
}

impl Mode {
    /// `url` with this mode's options, and those of the harness.
    #[must_use]
    pub fn url(&self, url: &str, extra: &str) -> String {
        let options: Vec<_> = [extra, &self.options]
            .into_iter()
            .filter(|options| !options.is_empty())
            .collect();
        if options.is_empty() {
            return url.to_owned();
        }
        let joint = if url.contains('?') { '&' } else { '?' };
        format!("{url}{joint}{}", options.join("&"))
    }

    /// What this build of the library says to the options; nothing if it knows them.
    pub(super) fn unknown_option(&self) -> Option<String> {
        self.url("redis://127.0.0.1:6379", "")
            .parse::<locktopus::url::BackendUrl>()
            .err()
            // The error says which option it is by its number alone: URLs have secrets, plans have
            // none.
            .map(|error| format!("{}: {error}", self.options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_joined_to_what_is_there() {
        let mode = Mode {
            options: "safety=x".to_owned(),
            ..Mode::default()
        };
        assert_eq!(
            mode.url("redis://h", "client=fred"),
            "redis://h?client=fred&safety=x"
        );
        assert_eq!(mode.url("redis://h?a=b", ""), "redis://h?a=b&safety=x");
        assert_eq!(Mode::default().url("redis://h", ""), "redis://h");
        assert_eq!(Mode::default().unknown_option(), None);
        let odd = Mode {
            options: "no_such_option=1".to_owned(),
            ..Mode::default()
        };
        assert!(odd.unknown_option().unwrap().contains("no_such_option"));
    }
}
