//! Reads the workspace's metadata from cargo, and finds the programs that cargo built.

use std::path::PathBuf;

use serde_json::Value;

use crate::failure::{Done, Failure, fail};
use crate::shell::{Cmd, Shell};

/// The workspace's packages for a package registry, as `cargo metadata` describes them.
pub(crate) fn published(sh: &Shell) -> Done<Vec<Value>> {
    let metadata = sh.cargo("metadata").args(["--no-deps", "--format-version", "1"]).read()?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let all = metadata["packages"].as_array().into_iter().flatten();
    let found: Vec<_> =
        all.filter(|package| package["publish"] != Value::Array(Vec::new())).cloned().collect();
    if found.is_empty() {
        fail!("no crate of this workspace may be published");
    }
    Ok(found)
}

pub(crate) fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap_or_default()
}

/// The messages of a `cargo build`.
#[derive(Debug)]
pub(crate) struct Built(Vec<Value>);

impl Built {
    /// Runs a `cargo build`, or `cargo test --no-run`.
    pub(crate) fn by(build: Cmd) -> Done<Self> {
        let said = build.args(["--message-format", "json-render-diagnostics"]).read()?;
        Ok(Self(said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()))
    }

    /// The path of this target's program.
    pub(crate) fn program(&self, target: &str) -> Done<PathBuf> {
        let ours = self.0.iter().rev().filter(|message| message["target"]["name"] == target);
        let path = ours.filter_map(|message| message["executable"].as_str()).next();
        path.map(PathBuf::from)
            .ok_or_else(|| Failure::Said(format!("cargo did not say where it put {target}")))
    }

    /// How many packages were built rather than taken from the cache.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().filter(|message| message["fresh"] == false).count()
    }
}
