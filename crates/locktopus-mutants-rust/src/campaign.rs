//! Tries the mutants of one package: those in one build, and then those that must be built by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use crate::copy::{Built, Copy};
use crate::ledger::{Ledger, State};
use crate::mutant::Mutant;
use crate::trial::Tests;
use crate::weave::{CHOOSER, Woven, weave};

/// So many of one build are tried between two runs of the tests without a mutant.
const TOGETHER: usize = 30;
/// After so many of these in which the tests fail without a mutant it is given up.
const UNSOUND: usize = 4;
/// So many that are built by themselves are tried between two runs of the tests without a mutant.
const BATCH: usize = 10;

/// Which mutants are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    Untried,
    /// And those that survive.
    Survivors,
    All,
}

/// A run.
#[derive(Debug)]
pub(crate) struct Campaign<'a> {
    pub(crate) copy: Copy<'a>,
    /// The folder of the test programs that have all mutants.
    pub(crate) aside: PathBuf,
    /// The folder of the ledgers.
    pub(crate) tried: PathBuf,
    pub(crate) at_once: usize,
    pub(crate) until: Instant,
    pub(crate) again: Again,
}

/// Errors that a mutant has by itself as well, if they are about its own text: a trait, mostly `Default`, or an operator that
/// is not there for a type which is the same without what stands beside it.
const ITS_OWN: [&str; 3] = ["E0277", "E0368", "E0369"];

/// What came of putting mutants into one build.
struct Together {
    woven: Vec<Woven>,
    programs: Vec<PathBuf>,
    /// Those that do not compile, by whatever they stand beside.
    unviable: BTreeSet<usize>,
}

/// A file, its mutants, and what came of them.
struct File {
    name: String,
    source: String,
    mutants: Vec<Mutant>,
    ledger: Ledger,
    /// The numbers of those that are to be tried.
    wanted: BTreeSet<usize>,
}

impl File {
    /// Notes what came of those that are of this file.
    fn note(&mut self, found: &[(usize, State)]) -> Result<(), String> {
        for (number, state) in found {
            if let Some(mutant) = self.mutants.iter().find(|m| m.number == *number) {
                self.ledger.states.insert(*number, *state);
                println!("{:8} {}: {}", state.name(), self.name, mutant.name);
            }
        }
        self.ledger.write(&self.mutants)
    }
}

impl Campaign<'_> {
    pub(crate) fn run(&self, listed: BTreeMap<String, Vec<Mutant>>) -> Result<(), String> {
        let mut files = Vec::new();
        for (name, mutants) in listed {
            let source = self.copy.source(&name)?;
            let ledger = Ledger::read(&self.tried, &name, &source, &mutants);
            // Also one that nothing is tried of: it says so.
            ledger.write(&mutants)?;
            let wanted = |state: State| match self.again {
                Again::Untried => state == State::Untried,
                Again::Survivors => matches!(state, State::Untried | State::Survives),
                Again::All => true,
            };
            let wanted = ledger.states.iter().filter(|(_, state)| wanted(**state));
            let wanted: BTreeSet<_> = wanted.map(|(number, _)| *number).collect();
            println!(
                "{name}: {} of {} mutants to try",
                wanted.len(),
                mutants.len()
            );
            files.push(File {
                name,
                source,
                mutants,
                ledger,
                wanted,
            });
        }
        if self.is_over() || files.iter().all(|file| file.wanted.is_empty()) {
            return Ok(());
        }
        self.copy.refresh()?;
        let Together {
            woven,
            programs,
            unviable,
        } = self.weave_all(&files)?;
        for file in &mut files {
            file.wanted.retain(|number| !unviable.contains(number));
            let unviable = unviable.iter().map(|number| (*number, State::Unviable));
            file.note(&unviable.collect::<Vec<_>>())?;
        }
        let mut tests = Tests::keep(&programs, &self.aside, self.copy.package_folder())?;
        tests.baseline(self.at_once)?;
        let woven: Vec<Vec<usize>> = woven
            .iter()
            .map(|woven| woven.lines.keys().copied().collect())
            .collect();
        let mut all = woven.concat();
        all.sort_unstable();
        let mut unsound = 0;
        for mutants in all.chunks(TOGETHER) {
            let found = tests.try_all(mutants, self.at_once, self.until)?;
            if found.is_empty() {
                break;
            }
            if let Err(why) = tests.baseline(self.at_once) {
                println!("nothing is kept of these {}: {why}", found.len());
                unsound += 1;
                if unsound == UNSOUND {
                    return Err("the tests fail on this machine now".to_owned());
                }
                continue;
            }
            for file in &mut files {
                file.note(&found)?;
            }
        }
        self.copy.refresh()?;
        for (file, woven) in files.iter_mut().zip(&woven) {
            file.wanted.retain(|number| !woven.contains(number));
            self.by_themselves(file, &mut tests)?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Puts into the copy all mutants that can stand there together, and builds the tests.
    fn weave_all(&self, files: &[File]) -> Result<Together, String> {
        let root = format!("crates/{}/src/lib.rs", self.copy.package);
        let (mut out, mut unviable) = (BTreeSet::new(), BTreeSet::new());
        loop {
            let mut woven = Vec::new();
            for file in files {
                let stays =
                    |m: &&Mutant| file.wanted.contains(&m.number) && !out.contains(&m.number);
                let mutants: Vec<_> = file.mutants.iter().filter(stays).collect();
                let at = |error: String| format!("{}: {error}", file.name);
                let mut done = weave(&file.source, &mutants).map_err(at)?;
                if file.name == root {
                    done.text += CHOOSER;
                }
                self.copy.put(&file.name, done.text.as_bytes())?;
                woven.push(done);
            }
            if !files.iter().any(|file| file.name == root) {
                let text = self.copy.source(&root)? + CHOOSER;
                self.copy.put(&root, text.as_bytes())?;
            }
            let built = match self.copy.check()? {
                Built::Programs(_) => self.copy.build()?,
                errors @ Built::Errors(..) => errors,
            };
            let (errors, rendered) = match built {
                Built::Programs(programs) => {
                    return Ok(Together {
                        woven,
                        programs,
                        unviable,
                    });
                }
                Built::Errors(errors, rendered) => (errors, rendered),
            };
            let before = out.len();
            for error in &errors {
                let blamed = blamed(&error.places, files, &woven);
                let own = error
                    .places
                    .iter()
                    .take(1)
                    .any(|place| !at(place, files, &woven).is_empty());
                if own && ITS_OWN.contains(&error.code.as_str()) {
                    unviable.extend(&blamed);
                }
                out.extend(blamed);
            }
            if out.len() == before {
                return Err(format!("no mutant is to blame for this:\n{rendered}"));
            }
            println!("{} cannot stand beside the others", out.len());
        }
    }

    /// Tries what is still wanted of a file, each in a build of its own.
    fn by_themselves(&self, file: &mut File, tests: &mut Tests) -> Result<(), String> {
        let wanted: Vec<_> = file.wanted.iter().copied().collect();
        for batch in wanted.chunks(BATCH) {
            let mut found = Vec::new();
            for number in batch {
                let mutant = file.mutants.iter().find(|mutant| mutant.number == *number);
                let Some(mutant) = mutant.filter(|_| !self.is_over()) else {
                    break;
                };
                let text = mutant.applied(&file.source);
                self.copy.put(&file.name, text.as_bytes())?;
                found.push((*number, self.by_itself(&file.name, tests)?));
            }
            self.copy.put(&file.name, file.source.as_bytes())?;
            if found.iter().any(|(_, state)| *state != State::Unviable) {
                tests.baseline(1)?;
            }
            file.note(&found)?;
        }
        Ok(())
    }

    fn by_itself(&self, name: &str, tests: &Tests) -> Result<State, String> {
        if let Built::Errors(..) = self.copy.check()? {
            return Ok(State::Unviable);
        }
        let programs = match self.copy.build()? {
            Built::Programs(programs) => programs,
            // Some files are only compiled for tests.
            Built::Errors(errors, _) if errors.iter().any(|error| error.is_in(name)) => {
                return Ok(State::Unviable);
            }
            // A test that does not compile with it, as where it works out a constant, has noticed it.
            Built::Errors(..) => return Ok(State::Noticed),
        };
        // It is there, whichever is chosen.
        let tests = tests.like(&programs)?;
        tests.try_one(1)
    }
}

/// The mutants whose own text is there.
fn at((name, line): &(String, usize), files: &[File], woven: &[Woven]) -> BTreeSet<usize> {
    let Some(at) = files.iter().position(|file| file.name == *name) else {
        return BTreeSet::new();
    };
    let lines = woven[at].lines.iter();
    let here = lines.filter(|(_, (first, last))| (first..=last).contains(&line));
    here.map(|(number, _)| *number).collect()
}

/// The mutants that one error is about: where it is, or whatever else it names, or those of the function it is in.
fn blamed(places: &[(String, usize)], files: &[File], woven: &[Woven]) -> BTreeSet<usize> {
    let here = places.iter().map(|place| at(place, files, woven));
    if let Some(here) = here.into_iter().find(|here| !here.is_empty()) {
        return here;
    }
    for (name, line) in places {
        let Some(at) = files.iter().position(|file| file.name == *name) else {
            continue;
        };
        let above = woven[at]
            .lines
            .iter()
            .filter(|(_, (first, _))| first < line);
        let Some((nearest, _)) = above.max_by_key(|(_, (first, _))| *first) else {
            continue;
        };
        let function = |number: usize| {
            let mutant = files[at]
                .mutants
                .iter()
                .find(|mutant| mutant.number == number);
            mutant.and_then(|mutant| mutant.function)
        };
        let same = |number: &&usize| function(**number) == function(*nearest);
        return woven[at].lines.keys().filter(same).copied().collect();
    }
    BTreeSet::new()
}
