//! What became of mutants, written down as it is known: a run that is stopped goes on where it was.
//!
//! A line of JSON each, in `target/mutants/kept.jsonl`, of which the last about a mutant counts. It is about one text of the
//! scripts; when that is another, the mutant is tried again. That a mutant was noticed stays true when tests are added.
//! That it was not is only said of the same tests, and of at least as many schedules. Where only the transcripts are others, which
//! are seen through in no time, the rest stays known.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use locktopus_model::transcripts::texts;
use serde::{Deserialize, Serialize};

use crate::mutants::Mutant;
use crate::verdict::Verdict;

/// Where it is, from the root of the sources.
pub const FILE: &str = "target/mutants/kept.jsonl";
/// And that of a run that believes nothing of what is known.
pub const SAMPLE: &str = "target/mutants/sample.jsonl";

/// Which test runs which script.
pub const LOADS: &str = "target/mutants/loads.json";

/// So much of what a test said is kept.
const SAID: usize = 300;

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    id: String,
    text: String,
    #[serde(flatten)]
    judges: Judges,
    schedules: u64,
    verdict: Verdict,
}

/// Names of the tests that a verdict is about: others that are built or written anew have other names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judges {
    /// The programs.
    #[serde(rename = "judges")]
    pub programs: String,
    /// The transcripts.
    #[serde(default)]
    pub transcripts: String,
}

/// What is known.
#[derive(Debug)]
pub struct Kept {
    known: HashMap<String, Line>,
    file: Mutex<File>,
    judges: Judges,
    schedules: u64,
}

impl Kept {
    /// Reads what is known, which is nothing if it is to be `fresh`. `judges` names the tests that there are now.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or written.
    pub fn open(path: &Path, judges: Judges, schedules: u64, fresh: bool) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut known = HashMap::new();
        match File::open(path) {
            Ok(file) if !fresh => {
                // The last line may be half of one, if the run was ended.
                for line in BufReader::new(file).lines().map_while(Result::ok) {
                    if let Ok(line) = serde_json::from_str::<Line>(&line) {
                        known.insert(line.id.clone(), line);
                    }
                }
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.create(true).write(true);
        let options = match fresh {
            true => options.truncate(true),
            false => options.append(true),
        };
        let mut file = options.open(path).map_err(failed)?;
        // Whatever half a line there is ends here.
        file.write_all(b"\n").map_err(failed)?;
        Ok(Self {
            known,
            file: Mutex::new(file),
            judges,
            schedules,
        })
    }

    /// What is known of a mutant.
    #[must_use]
    pub fn verdict(&self, mutant: &Mutant) -> Option<Verdict> {
        let line = self.line(mutant)?;
        let same = self.holds(line) && self.judges.transcripts == line.judges.transcripts;
        let holds = matches!(line.verdict, Verdict::Killed { .. }) || same;
        holds.then(|| line.verdict.clone())
    }

    /// What is known of one that no transcript notices, as they are now: what other tests said, if that holds.
    #[must_use]
    pub fn beside_transcripts(&self, mutant: &Mutant) -> Option<Verdict> {
        let line = self.line(mutant)?;
        let said = self.holds(line) && line.verdict != Verdict::Unseen;
        said.then(|| line.verdict.clone())
    }

    fn line(&self, mutant: &Mutant) -> Option<&Line> {
        let line = self.known.get(&mutant.id)?;
        (line.text == mutant.text).then_some(line)
    }

    /// Whether what other tests than transcripts said is still what they would say.
    fn holds(&self, line: &Line) -> bool {
        self.schedules <= line.schedules && self.judges.programs == line.judges.programs
    }

    /// Writes down what became of one.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn add(&self, mutant: &Mutant, verdict: &Verdict) -> Result<(), String> {
        let line = Line {
            id: mutant.id.clone(),
            text: mutant.text.clone(),
            judges: self.judges.clone(),
            schedules: self.schedules,
            verdict: shortened(verdict),
        };
        let mut text = serde_json::to_string(&line).map_err(|error| error.to_string())?;
        text.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(text.as_bytes())
            .map_err(|error| format!("what is known cannot be written down: {error}"))
    }
}

fn shortened(verdict: &Verdict) -> Verdict {
    let short = |how: &str| how.chars().take(SAID).collect();
    match verdict {
        Verdict::Killed { level, how } => Verdict::Killed {
            level: level.clone(),
            how: short(how),
        },
        Verdict::Observable { how } => Verdict::Observable { how: short(how) },
        other => other.clone(),
    }
}

/// Names of the tests that there are.
///
/// # Errors
///
/// If a program is not there, or the transcripts cannot be read.
pub fn judges(programs: &[PathBuf]) -> Result<Judges, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut digest = sha1_smol::Sha1::new();
    for program in programs.iter().chain([&own]) {
        let failed = |error: std::io::Error| format!("{}: {error}", program.display());
        digest.update(&std::fs::read(program).map_err(failed)?);
    }
    let mut written = sha1_smol::Sha1::new();
    for text in texts().map_err(|error| format!("the transcripts: {error}"))? {
        written.update(text.as_bytes());
    }
    let short = |digest: sha1_smol::Sha1| digest.digest().to_string()[..12].to_owned();
    Ok(Judges {
        programs: short(digest),
        transcripts: short(written),
    })
}
