//! A copy of the sources in which mutants are built, and what cargo says of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The copy, and the package in it whose mutants are tried.
#[derive(Debug)]
pub(crate) struct Copy<'a> {
    pub(crate) root: &'a Path,
    pub(crate) folder: PathBuf,
    pub(crate) package: &'a str,
    /// Its integration tests that are run, beside the unit tests.
    pub(crate) tests: &'a [String],
}

/// What cargo came to.
#[derive(Debug)]
pub(crate) enum Built {
    /// These test programs.
    Programs(Vec<PathBuf>),
    /// Errors, and how they read.
    Errors(Vec<Error>, String),
}

/// An error of the compiler.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) code: String,
    /// The files and lines that it is about, the first one first.
    pub(crate) places: Vec<(String, usize)>,
}

impl Error {
    /// Whether it is about a file of this name.
    pub(crate) fn is_in(&self, name: &str) -> bool {
        self.places.iter().any(|(file, _)| file == name)
    }
}

impl Copy<'_> {
    /// Makes it what the sources are. What is the same is left alone, or cargo would build it again.
    pub(crate) fn refresh(&self) -> Result<(), String> {
        let arguments = [
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ];
        let listed = said(Command::new("git").args(arguments).current_dir(self.root))?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let files: BTreeSet<&str> = listed.split_terminator('\0').collect();
        for file in &files {
            let from = self.root.join(file);
            if from.is_file() {
                let content = fs::read(&from).map_err(|error| format!("{file}: {error}"))?;
                self.put(file, &content)?;
            }
        }
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let name = path.strip_prefix(&self.folder).unwrap_or(&path);
                if path.is_dir() {
                    folders.push(path);
                } else if !name.to_str().is_some_and(|name| files.contains(name)) {
                    fs::remove_file(&path)
                        .map_err(|error| format!("{}: {error}", path.display()))?;
                }
            }
        }
        Ok(())
    }

    /// The text of a file of the sources.
    pub(crate) fn source(&self, file: &str) -> Result<String, String> {
        fs::read_to_string(self.root.join(file)).map_err(|error| format!("{file}: {error}"))
    }

    /// Writes a file of the copy, unless it is that already.
    pub(crate) fn put(&self, file: &str, content: &[u8]) -> Result<(), String> {
        let path = self.folder.join(file);
        if fs::read(&path).is_ok_and(|before| before == content) {
            return Ok(());
        }
        fs::create_dir_all(path.parent().unwrap_or(&path))
            .and_then(|()| fs::write(&path, content))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Where the package is.
    pub(crate) fn package_folder(&self) -> PathBuf {
        self.folder.join("crates").join(self.package)
    }

    /// Whether the library compiles.
    pub(crate) fn check(&self) -> Result<Built, String> {
        self.cargo(&["check", "--lib"])
    }

    /// Builds the tests.
    pub(crate) fn build(&self) -> Result<Built, String> {
        let mut arguments = vec!["test", "--no-run", "--lib"];
        for test in self.tests {
            arguments.extend(["--test", test]);
        }
        self.cargo(&arguments)
    }

    fn cargo(&self, arguments: &[&str]) -> Result<Built, String> {
        let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(arguments)
            .args([
                "--locked",
                "--quiet",
                "--message-format=json",
                "--package",
                self.package,
            ])
            // Each build is of another text.
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_TEST_DEBUG", "0")
            // Its own: cargo takes packages for the same that are at the same place of their workspaces.
            .env("CARGO_TARGET_DIR", self.folder.with_file_name("target"))
            .current_dir(&self.folder)
            .output()
            .map_err(|error| format!("cargo: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let messages: Vec<Value> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if output.status.success() {
            return Ok(Built::Programs(programs(&messages)));
        }
        let errors = errors(&messages);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        if errors.is_empty() {
            return Err(format!("cargo {}: {told}", arguments.join(" ")));
        }
        let rendered = messages
            .iter()
            .filter(|message| message["message"]["level"] == "error")
            .filter_map(|message| message["message"]["rendered"].as_str());
        Ok(Built::Errors(errors, rendered.collect()))
    }
}

fn said(command: &mut Command) -> Result<Output, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!(
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

fn programs(messages: &[Value]) -> Vec<PathBuf> {
    let tests = messages
        .iter()
        .filter(|message| message["profile"]["test"] == true);
    let mut found = BTreeMap::new();
    for test in tests {
        if let Some(path) = test["executable"].as_str() {
            found.insert(test["target"]["name"].to_string(), PathBuf::from(path));
        }
    }
    found.into_values().collect()
}

fn errors(messages: &[Value]) -> Vec<Error> {
    let errors = messages
        .iter()
        .map(|message| &message["message"])
        .filter(|message| message["level"] == "error" && message["spans"] != Value::Array(vec![]));
    errors
        .map(|error| {
            let mut spans: Vec<_> = error["spans"].as_array().into_iter().flatten().collect();
            spans.sort_by_key(|span| span["is_primary"] != true);
            let place = |span: &&Value| {
                let line = usize::try_from(span["line_start"].as_u64()?).ok()?;
                Some((span["file_name"].as_str()?.to_owned(), line))
            };
            let code = error["code"]["code"].as_str().unwrap_or_default();
            Error {
                code: code.to_owned(),
                places: spans.iter().filter_map(place).collect(),
            }
        })
        .collect()
}
