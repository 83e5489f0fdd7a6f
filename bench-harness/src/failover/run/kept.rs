//! Kept histories, compressed, with what a later judge needs to know of the cell.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use locktopus_history::{Checker, History, Options, Outcome, Property, Verdict};
use serde::{Deserialize, Serialize};

use crate::shared::file::FileError;

/// The description of the cell, beside its histories.
pub const FILE: &str = "cell.json";
/// The extension of a compressed history.
const END: &str = "gz";

/// The data about a cell that a later judge needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The cell in a few words.
    pub cell: String,
    /// Seed of the run.
    pub seed: u64,
    /// Whether two holders at once break a promise.
    pub exclusive: bool,
    /// A limit of the first judge.
    #[serde(with = "humantime_serde")]
    pub use_limit: Duration,
    /// As above.
    #[serde(with = "humantime_serde")]
    pub lateness_limit: Option<Duration>,
    /// As above.
    #[serde(with = "humantime_serde")]
    pub outage_limit: Option<Duration>,
    /// As above.
    #[serde(with = "humantime_serde")]
    pub stalled_waiter: Duration,
    /// As above.
    #[serde(with = "humantime_serde")]
    pub order_recovery: Option<Duration>,
    /// Properties that are not required in this cell, each with the reason.
    pub excused: BTreeMap<String, String>,
    /// The outcome of each property when it was first judged.
    pub outcomes: BTreeMap<String, String>,
    /// The files, relative to the folder of the cell.
    pub histories: Vec<PathBuf>,
}

fn at(path: &Path) -> impl Fn(&dyn std::fmt::Display) -> FileError {
    move |problem| FileError::at(path, problem)
}

impl Kept {
    /// The limits of the first judge.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            exclusive: self.exclusive,
            use_limit: self.use_limit,
            lateness_limit: self.lateness_limit,
            outage_limit: self.outage_limit,
            stalled_waiter: self.stalled_waiter,
            order_recovery: self.order_recovery,
            ..Options::default()
        }
    }

    /// Starts the description with the limits of the judge.
    pub(super) fn new(cell: String, seed: u64, options: &Options) -> Self {
        Self {
            cell,
            seed,
            exclusive: options.exclusive,
            use_limit: options.use_limit,
            lateness_limit: options.lateness_limit,
            outage_limit: options.outage_limit,
            stalled_waiter: options.stalled_waiter,
            order_recovery: options.order_recovery,
            excused: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            histories: Vec::new(),
        }
    }

    /// Compresses the files in place, and writes this description beside them.
    pub(super) fn keep(mut self, folder: &Path, files: &[PathBuf]) -> Result<(), FileError> {
        for file in files {
            let mut name = file.as_os_str().to_owned();
            name.push(".");
            name.push(END);
            let packed = PathBuf::from(name);
            pack(file, &packed).map_err(|error| at(&packed)(&error))?;
            std::fs::remove_file(file).map_err(|error| at(file)(&error))?;
            let inside = packed.strip_prefix(folder).unwrap_or(&packed);
            self.histories.push(inside.to_owned());
        }
        let path = folder.join(FILE);
        let text = serde_json::to_string_pretty(&self).map_err(|error| at(&path)(&error))?;
        std::fs::write(&path, text + "\n").map_err(|error| at(&path)(&error))
    }

    /// Reads the description in a folder.
    ///
    /// # Errors
    ///
    /// [`FileError`].
    pub fn read(folder: &Path) -> Result<Self, FileError> {
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| at(&path)(&error))?;
        serde_json::from_str(&text).map_err(|error| at(&path)(&error))
    }

    /// Judges the histories in this folder again.
    ///
    /// # Errors
    ///
    /// [`FileError`], also if there are no histories.
    pub fn judge(&self, folder: &Path) -> Result<Verdict, FileError> {
        if self.histories.is_empty() {
            return Err(at(folder)(&"no history was kept"));
        }
        let unpacked = Unpacked::new().map_err(|error| at(folder)(&error))?;
        let mut files = Vec::new();
        for name in &self.histories {
            // Keep the name that it has in the folder, because a verdict names the file of a
            // damaged line.
            if !name
                .components()
                .all(|part| matches!(part, Component::Normal(_)))
            {
                return Err(at(&folder.join(FILE))(&format!(
                    "{name:?} is not in the folder of the cell"
                )));
            }
            let file = unpacked.0.join(name).with_extension("");
            let packed = folder.join(name);
            unpack(&packed, &file).map_err(|error| at(&packed)(&error))?;
            files.push(file);
        }
        let history = History::read(&files).map_err(|error| at(folder)(&error))?;
        if history.records().is_empty() {
            return Err(at(folder)(&"the histories are empty"));
        }
        Ok(Checker::new().options(self.options()).check(&history))
    }

    /// Required properties that are broken according to this verdict, or were in the run if
    /// histories cannot show them.
    #[must_use]
    pub fn broken(&self, verdict: &Verdict) -> Vec<String> {
        let then = verdict.judgements.iter().filter_map(|judgement| {
            let name = judgement.property.to_string();
            let failed = self.outcomes.get(&name).map(String::as_str) == Some("failed");
            let elsewhere = failed && is_from_elsewhere(judgement.property);
            elsewhere.then(|| (name, "as in the run".to_owned()))
        });
        let violations = verdict.violations().into_iter();
        violations
            .map(|violation| (violation.property.to_string(), violation.text.clone()))
            .chain(then)
            .filter(|(name, _)| !self.excused.contains_key(name))
            .map(|(name, text)| format!("{name}: {text}"))
            .collect()
    }

    /// Properties whose outcome differs from the first verdict. The final state of servers and
    /// resources is in no history, so it is not compared.
    #[must_use]
    pub fn different(&self, verdict: &Verdict) -> Vec<String> {
        let judgements = verdict.judgements.iter();
        judgements
            .filter(|judgement| !is_from_elsewhere(judgement.property))
            .filter_map(|judgement| {
                let (name, now) = (judgement.property.to_string(), word(judgement.outcome));
                let then = self.outcomes.get(&name).map_or("nothing", String::as_str);
                (then != now).then(|| format!("{name}: {then} then, {now} now"))
            })
            .collect()
    }
}

/// Whether judging it takes more than a history.
#[must_use]
pub fn is_from_elsewhere(property: Property) -> bool {
    matches!(property, Property::Leftovers | Property::LostUpdates)
}

/// An outcome in words.
#[must_use]
pub const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::NotJudged => "not judged",
    }
}

fn pack(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut from = BufReader::new(File::open(from)?);
    let mut packing = GzEncoder::new(BufWriter::new(File::create(to)?), Compression::default());
    std::io::copy(&mut from, &mut packing)?;
    packing.finish()?.flush()
}

fn unpack(from: &Path, to: &Path) -> std::io::Result<()> {
    to.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    // A history may consist of several compressed parts in sequence.
    let mut unpacking = MultiGzDecoder::new(BufReader::new(File::open(from)?));
    let mut to = BufWriter::new(File::create(to)?);
    std::io::copy(&mut unpacking, &mut to)?;
    to.flush()
}

/// A temporary folder for unpacked files; dropping it removes the folder.
struct Unpacked(PathBuf);

impl Unpacked {
    fn new() -> std::io::Result<Self> {
        let name = format!("locktopus-judge-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
