//! Safety modes, as data.

use serde::{Deserialize, Serialize};

/// A safety mode: how clients connect, what servers need for it, and what it promises.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// Options of the URL, as after its `?`.
    #[serde(default)]
    pub options: String,
    /// Whether a majority of independent servers must agree.
    #[serde(default)]
    pub quorum: bool,
    /// Whether the mode promises that under no fault of the plan two holders believe at once.
    /// Broken promises fail the run.
    #[serde(default)]
    pub exclusive: bool,
    /// Arguments that servers with replicas get for it.
    #[serde(default)]
    pub server_args: Vec<String>,
    /// The longest lease of any lock. In a quorum a restarted node does not vote for this long
    /// either.
    #[serde(default, with = "humantime_serde")]
    pub max_lease: Option<std::time::Duration>,
}

impl Mode {
    /// `url` with the options of this mode and of the harness.
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

    /// The library's error for these options in this build; `None` if it knows them.
    pub(super) fn unknown_option(&self) -> Option<String> {
        self.url("redis://127.0.0.1:6379", "")
            .parse::<locktopus::url::BackendUrl>()
            .err()
            // The error names the option by its number only, because URLs contain secrets. Plans do
            // not.
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
