//! Server versions, and which of them are dangerous to run scripts on.

use std::fmt;

use locktopus_contract::{Finding, Severity};

/// The product and version that a server reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerVersion {
    flavour: Flavour,
    number: [u32; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flavour {
    Redis,
    Valkey,
}

impl ServerVersion {
    /// Reads the version from the fields of `INFO`. Valkey keeps `redis_version` for compatibility,
    /// so its own field comes first.
    pub(super) fn from_info<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let (flavour, text) = match field("valkey_version") {
            Some(text) => (Flavour::Valkey, text),
            None => (Flavour::Redis, field("redis_version")?),
        };
        let mut parts = text.split(['.', '-']).map(|part| part.parse().ok());
        let mut part = || parts.next().flatten();
        Some(Self {
            flavour,
            number: [part()?, part()?, part().unwrap_or(0)],
        })
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.flavour {
            Flavour::Redis => "redis",
            Flavour::Valkey => "valkey",
        };
        let [major, minor, patch] = self.number;
        write!(f, "{name} {major}.{minor}.{patch}")
    }
}

/// The oldest server whose commands the scripts use (`PEXPIRE ... GT`, `SPUBLISH`).
const OLDEST: [u32; 3] = [7, 0, 0];

/// The first version of each line with the fix for CVE-2025-49844 (use after free in the Lua
/// engine).
fn patched(version: &ServerVersion) -> bool {
    let [major, minor, _] = version.number;
    let fixed = match (version.flavour, major, minor) {
        (Flavour::Redis, 6, 2) => [6, 2, 20],
        (Flavour::Redis, 7, 2) => [7, 2, 11],
        (Flavour::Redis, 7, 4) => [7, 4, 6],
        (Flavour::Redis, 8, 0) => [8, 0, 4],
        (Flavour::Redis, 8, 2) => [8, 2, 2],
        (Flavour::Redis, _, _) => [8, 2, 2],
        (Flavour::Valkey, 7, 2) => [7, 2, 11],
        (Flavour::Valkey, 8, 0) => [8, 0, 6],
        (Flavour::Valkey, _, _) => [8, 1, 4],
    };
    version.number >= fixed
}

pub(super) fn findings(node: &str, version: &ServerVersion) -> Vec<Finding> {
    let mut findings = Vec::new();
    if version.number < OLDEST {
        let message = format!("{node}: {version} is too old; Redis 7.0 or Valkey 7.2 is needed");
        findings.push(Finding::new(Severity::Danger, "version", message));
    }
    if !patched(version) {
        let message = format!(
            "{node}: {version} has a hole in its Lua engine (CVE-2025-49844) unless your distribution patched \
             it; upgrade, and let nobody run scripts who need not"
        );
        findings.push(Finding::new(Severity::Warning, "version", message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(field: &'static str, text: &'static str) -> ServerVersion {
        ServerVersion::from_info(|name| (name == field).then_some(text)).unwrap()
    }

    #[test]
    fn old_and_unpatched_servers_are_named() {
        let checks = |v: &ServerVersion| {
            findings("n", v)
                .iter()
                .map(|f| f.severity)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            checks(&version("redis_version", "6.2.20")),
            [Severity::Danger]
        );
        assert_eq!(
            checks(&version("redis_version", "7.0.15")),
            [Severity::Warning]
        );
        assert_eq!(
            checks(&version("redis_version", "8.0.3")),
            [Severity::Warning]
        );
        assert_eq!(checks(&version("redis_version", "8.0.4")), []);
        assert_eq!(checks(&version("redis_version", "8.4.0")), []);
        assert_eq!(checks(&version("valkey_version", "8.1.4")), []);
        assert_eq!(checks(&version("valkey_version", "9.0.0-rc1")), []);
        assert_eq!(
            version("valkey_version", "8.1.1").to_string(),
            "valkey 8.1.1"
        );
    }
}
