//! Names with `*` and `?`.

/// Prefix of the lock names that clients use at connect to test their permissions.
const PROBE: &str = "locktopus:probe";

/// A pattern for whole names.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    parts: Vec<char>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        let parts = text.chars().collect();
        Self { parts }
    }

    /// The common prefix of all matching names.
    pub(crate) fn prefix(&self) -> String {
        let plain = self.parts.iter().take_while(|part| !"*?".contains(**part));
        plain.collect()
    }

    /// Whether to show the lock of this name. The lock that clients hold briefly at connect is
    /// shown only if the pattern names it.
    pub(crate) fn shows(&self, name: &str) -> bool {
        self.fits(name) && (!name.starts_with(PROBE) || self.prefix().starts_with(PROBE))
    }

    fn fits(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut here) = (0, 0);
        // Where to resume if the last star has to match one more character.
        let mut again: Option<(usize, usize)> = None;
        while here < name.len() {
            match self.parts.get(at) {
                Some('*') => {
                    again = Some((at, here));
                    at += 1;
                }
                Some(part) if *part == '?' || *part == name[here] => {
                    at += 1;
                    here += 1;
                }
                _ => match again {
                    Some((star, from)) => {
                        again = Some((star, from + 1));
                        at = star + 1;
                        here = from + 1;
                    }
                    None => return false,
                },
            }
        }
        self.parts[at..].iter().all(|part| *part == '*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_hold_when_they_connect_is_shown_to_whoever_asks() {
        let shows = |pattern: &str, name: &str| Pattern::new(pattern).shows(name);
        assert!(shows("*", "locktopus:prod") && shows("*", "probe") && !shows("job", "job:1"));
        assert!(!shows("*", "locktopus:probe") && !shows("lock*", "locktopus:probe:3"));
        assert!(shows("locktopus:probe*", "locktopus:probe:3"));
    }

    #[test]
    fn stars_are_any_text() {
        let fits = |pattern: &str, name: &str| Pattern::new(pattern).fits(name);
        assert!(fits("*", "") && fits("*", "a:b") && fits("a*", "a") && fits("a", "a"));
        assert!(fits("job:*:eu", "job:mail:eu") && fits("*aab", "aaaab") && fits("?b*", "ab"));
        assert!(!fits("a", "ab") && !fits("a?", "a") && !fits("job:*:eu", "job:mail:us"));
        assert_eq!(Pattern::new("job:*:eu").prefix(), "job:");
    }
}
