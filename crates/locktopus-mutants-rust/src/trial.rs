//! Runs the test programs, of no mutant or of one.
//!
//! A machine that has no time for a test must not be taken for one that notices. So a test that fails must fail twice in a row, and
//! one that does not end in time is run once more when nothing else runs, with as much time as the unchanged sources need then,
//! several times over.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::ledger::State;

/// So many times as long as without a mutant a program may take.
const TIMES: u32 = 6;
/// And at least so long.
const AT_LEAST: Duration = Duration::from_secs(10);
/// What is without a mutant may take so long.
const LONGEST: Duration = Duration::from_secs(600);
/// Kilobytes of memory that a program may ask for: mutants may want all there is.
const MEMORY: u32 = 8_000_000;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failed,
    /// It did not end in time.
    Late,
}

/// One test program.
#[derive(Debug, Clone)]
struct Program {
    path: PathBuf,
    /// The one that is without a mutant if none is chosen.
    unchanged: PathBuf,
    limit: Duration,
}

/// The test programs of one build, the shortest first.
#[derive(Debug)]
pub(crate) struct Tests {
    programs: Vec<Program>,
    /// Where they run: the package.
    folder: PathBuf,
}

/// What to do about a mutant after its tests were run beside others.
enum Found {
    State(State),
    /// The program at this place was late.
    Late(usize),
}

impl Tests {
    /// Puts the programs aside, for a later build writes others there.
    pub(crate) fn keep(
        programs: &[PathBuf],
        aside: &Path,
        folder: PathBuf,
    ) -> Result<Self, String> {
        let at = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        if programs.is_empty() {
            return Err("cargo built no test program".to_owned());
        }
        let _ = fs::remove_dir_all(aside);
        fs::create_dir_all(aside).map_err(|error| at(aside, error))?;
        let mut kept = Vec::new();
        for program in programs {
            let path = aside.join(program.file_name().unwrap_or_default());
            fs::copy(program, &path).map_err(|error| at(program, error))?;
            let (unchanged, limit) = (path.clone(), Duration::MAX);
            kept.push(Program {
                path,
                unchanged,
                limit,
            });
        }
        let programs = kept;
        Ok(Self { programs, folder })
    }

    /// These programs, with the limits of others that have the same names.
    pub(crate) fn like(&self, programs: &[PathBuf]) -> Result<Self, String> {
        let mut found = Vec::new();
        for known in &self.programs {
            let same = |path: &&PathBuf| path.file_name() == known.path.file_name();
            let path = programs.iter().find(same).cloned();
            let path = path.ok_or_else(|| format!("no program {}", known.path.display()))?;
            found.push(Program {
                path,
                ..known.clone()
            });
        }
        let (programs, folder) = (found, self.folder.clone());
        Ok(Self { programs, folder })
    }

    /// Without a mutant all must pass. Says how long each took, and puts the shortest first.
    ///
    /// As many run at once as mutants are tried at once, so that they have no better conditions.
    pub(crate) fn baseline(&mut self, at_once: usize) -> Result<(), String> {
        let run = || -> Result<Vec<Duration>, String> {
            let mut took = Vec::new();
            for program in &self.programs {
                let begun = Instant::now();
                let end = self.run(&program.unchanged, 0, LONGEST)?;
                if end != End::Passed {
                    return Err(format!(
                        "without a mutant: {end:?} {}",
                        program.path.display()
                    ));
                }
                took.push(begun.elapsed());
            }
            Ok(took)
        };
        let rounds: Result<Vec<_>, String> = thread::scope(|scope| {
            let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(run)).collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended
                .map(|took| took.map_err(|_| "a thread ended".to_owned())?)
                .collect()
        });
        let rounds = rounds?;
        for (at, program) in self.programs.iter_mut().enumerate() {
            let longest = rounds.iter().map(|took| took[at]).max().unwrap_or_default();
            program.limit = (longest * TIMES).max(AT_LEAST);
        }
        // Equal limits keep their order, so by what it took.
        let mut order: Vec<_> = (0..self.programs.len()).collect();
        order.sort_by_key(|at| rounds[0][*at]);
        self.programs = order.iter().map(|at| self.programs[*at].clone()).collect();
        Ok(())
    }

    /// Tries these mutants, of which the programs have all, until then. Says what came of which.
    pub(crate) fn try_all(
        &self,
        mutants: &[usize],
        at_once: usize,
        until: Instant,
    ) -> Result<Vec<(usize, State)>, String> {
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::new());
        let work = || -> Result<(), String> {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(mutant) = mutants.get(at).filter(|_| Instant::now() < until) else {
                    return Ok(());
                };
                let outcome = self.beside_others(*mutant)?;
                let mut found = found.lock().map_err(|error| error.to_string())?;
                found.push((*mutant, outcome));
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
            let mut ended = threads.into_iter().map(|thread| thread.join());
            ended.try_for_each(|ended| ended.map_err(|_| "a thread ended".to_owned())?)
        })?;
        let found = found.into_inner().map_err(|error| error.to_string())?;
        let settle = |(mutant, outcome)| Ok((mutant, self.settle(mutant, outcome)?));
        found.into_iter().map(settle).collect()
    }

    /// Tries a mutant while nothing else runs.
    pub(crate) fn try_one(&self, mutant: usize) -> Result<State, String> {
        let found = self.beside_others(mutant)?;
        self.settle(mutant, found)
    }

    fn settle(&self, mutant: usize, found: Found) -> Result<State, String> {
        match found {
            Found::State(state) => Ok(state),
            Found::Late(from) => self.alone(mutant, from),
        }
    }

    fn beside_others(&self, mutant: usize) -> Result<Found, String> {
        for (at, program) in self.programs.iter().enumerate() {
            match self.twice(program, mutant, program.limit)? {
                End::Passed => {}
                End::Failed => return Ok(Found::State(State::Noticed)),
                End::Late => return Ok(Found::Late(at)),
            }
        }
        Ok(Found::State(State::Survives))
    }

    /// When nothing else runs: the programs from this one on.
    fn alone(&self, mutant: usize, from: usize) -> Result<State, String> {
        for program in &self.programs[from..] {
            let begun = Instant::now();
            if self.run(&program.unchanged, 0, LONGEST)? != End::Passed {
                return Err(format!(
                    "without a mutant: fails: {}",
                    program.path.display()
                ));
            }
            let limit = (begun.elapsed() * TIMES).max(AT_LEAST);
            if self.twice(program, mutant, limit)? != End::Passed {
                return Ok(State::Noticed);
            }
        }
        Ok(State::Survives)
    }

    /// What fails must fail once more.
    fn twice(&self, program: &Program, mutant: usize, limit: Duration) -> Result<End, String> {
        match self.run(&program.path, mutant, limit)? {
            End::Failed => self.run(&program.path, mutant, limit),
            end => Ok(end),
        }
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "nothing here is asynchronous, so a thread that sleeps keeps nobody waiting"
    )]
    fn run(&self, program: &Path, mutant: usize, limit: Duration) -> Result<End, String> {
        let at = |error: std::io::Error| format!("{}: {error}", program.display());
        let mut child = Command::new("sh")
            .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" --quiet")])
            .arg(program)
            .env("LOCKTOPUS_MUTANT", mutant.to_string())
            // Nobody reads it, and it takes longer than most tests.
            .env("RUST_BACKTRACE", "0")
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(at)?;
        let begun = Instant::now();
        loop {
            match child.try_wait().map_err(at)? {
                Some(status) if status.success() => return Ok(End::Passed),
                Some(_) => return Ok(End::Failed),
                None if begun.elapsed() < limit => thread::sleep(Duration::from_millis(10)),
                None => {
                    child.kill().and_then(|()| child.wait()).map_err(at)?;
                    return Ok(End::Late);
                }
            }
        }
    }
}
