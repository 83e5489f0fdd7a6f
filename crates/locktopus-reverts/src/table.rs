//! The table: a file for each fault, with what takes its mends back and what must notice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// Where the table is.
pub(crate) const FOLDER: &str = "crates/locktopus-reverts/table";

/// What was wrong once. Its number is what its file's name begins with.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    #[serde(skip)]
    pub number: u32,
    #[serde(skip)]
    pub file: String,
    /// In one sentence.
    pub fault: String,
    /// Mistakes in other tables, whose own tests try them.
    #[serde(default)]
    pub mutants: Vec<Mutants>,
    /// What takes a mend back.
    #[serde(default, rename = "revert")]
    pub reverts: Vec<Revert>,
}

/// Mistakes that a test of this workspace makes by itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutants {
    /// The source file of their table.
    pub file: String,
    pub names: Vec<String>,
}

/// A mend taken back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Revert {
    /// What the mend is.
    pub mend: String,
    /// Who must notice.
    pub test: TestName,
    pub change: Vec<Change>,
}

/// One place in one file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    pub file: String,
    /// Stands in the file exactly once.
    pub find: String,
    pub replace: String,
}

/// A test, written `package/target/name`; the target of unit tests is `lib`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TestName {
    pub target: Target,
    pub name: String,
}

/// What cargo builds to run a test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub package: String,
    pub name: String,
}

impl Target {
    /// The folder of its package: one of the crates, or one that stands beside them.
    pub(crate) fn folder(&self, root: &Path) -> PathBuf {
        let among = root.join("crates").join(&self.package);
        match among.is_dir() {
            true => among,
            false => root.join(&self.package),
        }
    }
}

impl<'de> Deserialize<'de> for TestName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let parts: Vec<_> = text.split('/').collect();
        let [package, target, name] = parts[..] else {
            return Err(D::Error::custom(format!("{text}: not package/target/test")));
        };
        Ok(Self {
            target: Target {
                package: package.to_owned(),
                name: target.to_owned(),
            },
            name: name.to_owned(),
        })
    }
}

/// Reads the table.
///
/// # Errors
///
/// It is empty, has a hole or a file that cannot be read, or a fault that nothing takes back.
pub(crate) fn read(folder: &Path) -> Result<Vec<Fault>, String> {
    let mut faults = BTreeMap::new();
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        let fault = read_one(&path).map_err(|what| format!("{}: {what}", path.display()))?;
        if let Some(twin) = faults.insert(fault.number, fault) {
            return Err(format!("{} has a number twice", twin.file));
        }
    }
    let faults: Vec<_> = faults.into_values().collect();
    if faults.is_empty() {
        return Err(format!("{} is empty", folder.display()));
    }
    for (number, fault) in (1..).zip(&faults) {
        if fault.number != number {
            return Err(format!("there is no fault {number}"));
        }
    }
    Ok(faults)
}

fn read_one(path: &Path) -> Result<Fault, String> {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let number = file
        .strip_suffix(".toml")
        .and_then(|name| name.split_once('-'))
        .and_then(|(number, _)| number.parse().ok())
        .ok_or("not called NUMBER-NAME.toml")?;
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut fault: Fault = toml::from_str(&text).map_err(|error| error.to_string())?;
    fault.number = number;
    fault.file = file.into_owned();
    let named = fault
        .mutants
        .iter()
        .any(|mutants| !mutants.names.is_empty());
    if !named && fault.reverts.is_empty() {
        return Err("nothing takes it back".to_owned());
    }
    for revert in &fault.reverts {
        if revert.change.is_empty() {
            return Err(format!("\"{}\" changes nothing", revert.mend));
        }
    }
    Ok(fault)
}
