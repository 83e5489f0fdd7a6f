//! The configuration file.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Surroundings;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, typed_path};

/// The keys that a file may have.
const KEYS: [&str; 4] = ["url", "format", "label", "label_host"];

/// The content of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    url: Option<OneOrMore>,
    pub(super) format: Option<Format>,
    pub(super) label: Option<String>,
    pub(super) label_host: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl File {
    pub(super) fn urls(&self) -> Option<Vec<String>> {
        match self.url.as_ref()? {
            OneOrMore::One(url) => Some(vec![url.clone()]),
            OneOrMore::More(urls) => Some(urls.clone()),
        }
    }
}

/// Where to look for a file, in this order. The user's own comes first: the current directory must
/// not decide which servers a command talks to if the user has chosen.
pub(super) fn places(around: &impl Surroundings) -> Vec<PathBuf> {
    let home = around.variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = home.filter(|path| path.is_absolute()).or_else(|| {
        let home = around.variable("HOME")?;
        Some(PathBuf::from(home).join(".config"))
    });
    let own = home.map(|home| home.join("locktopus/config.toml"));
    own.into_iter()
        .chain([PathBuf::from("locktopus.toml")])
        .collect()
}

/// Reads the file the user named, else the first that exists.
pub(super) fn load(
    asked: Option<PathBuf>,
    around: &impl Surroundings,
) -> Result<Option<(PathBuf, File)>, Failure> {
    if let Some(path) = asked {
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        return Ok(Some((path.clone(), parse(&path, &text)?)));
    }
    for path in places(around) {
        match fs::read_to_string(&path) {
            Ok(text) => return Ok(Some((path.clone(), parse(&path, &text)?))),
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(unreadable(&path, &error)),
        }
    }
    Ok(None)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        Exit::Config,
        format!("cannot read {}: {error}", typed_path(path)),
    )
}

/// Parses the file. Errors quote neither values nor the parser's message, since either may contain
/// a password. An unknown key is named if it is a plain word.
fn parse(path: &Path, text: &str) -> Result<File, Failure> {
    let problem = |what: &str| {
        let problem = format!(
            "{} has {what}; its keys are url = \"...\" (or a list, for a quorum), format = \"text\" or \"json\", label = \"...\" \
             and label_host = \"...\"",
            path.display()
        );
        Failure::new(Exit::Config, problem)
    };
    if let Ok(table) = text.parse::<toml::Table>()
        && let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str()))
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    {
        return Err(problem(&format!("an unknown key {key:?}")));
    }
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            let before = text.get(..span.start).unwrap_or(text);
            before.matches('\n').count() + 1
        });
        problem(&format!("an error in line {line}"))
    })
}

/// Warns if other users can read the file, which may hold a password.
pub(super) fn readable_by_others(path: &Path) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    (mode & 0o044 != 0).then(|| {
        let path = path.display();
        format!("{path} can be read by others; if it holds a password, run chmod 600 {path}")
    })
}
