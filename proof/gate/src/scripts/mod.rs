//! Makes every small change of the shipped Lua scripts, one at a time, and checks that a test
//! notices.
//!
//! A mutant that survives is a failure, unless `proof/gate/survivors` lists it with a reason.
//!
//! | module | what is in it |
//! |---|---|
//! | [`parts`] | the files that make up the scripts |
//! | [`edits`], [`mutants`] | every small change of them |
//! | [`levels`] | the tests that each mutant meets |
//! | [`pool`], [`verdict`] | processes that try mutants, and their verdicts |
//! | [`survivors`] | the list of survivors |
//!
//! Layers, lowest first: parts, edits, mutants, verdict, levels, pool, survivors.

pub mod edits;
pub mod levels;
pub mod mutants;
pub mod parts;
pub mod pool;
pub mod survivors;
pub mod verdict;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;

use self::levels::{Effort, Loads, Round, judge};
use self::mutants::Mutant;
use self::pool::Pool;
use self::survivors::Survivors;
use self::verdict::Verdict;

/// Which changes to try, and how.
#[derive(Debug, Args)]
pub struct Options {
    /// Only changes of these files, such as part/queue.lua.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    file: Vec<String>,
    /// Only these changes; a single one is reported in full.
    #[arg(long, value_name = "ID", num_args = 1..)]
    mutant: Vec<String>,
    /// Only this many of them, chosen by the seed.
    #[arg(long, value_name = "NUMBER")]
    sample: Option<usize>,
    /// Chooses the sample.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// Run only the transcripts, which take milliseconds for each change. Changes they miss are
    /// counted, and are no failure.
    #[arg(long)]
    quick: bool,
    /// Only list the changes.
    #[arg(long)]
    list: bool,
    /// Only write each change to a file in this folder, for `--test transcripts`.
    #[arg(long, value_name = "FOLDER")]
    export: Option<PathBuf>,
    /// How many processes try changes.
    #[arg(long, value_name = "NUMBER", default_value_t = cores())]
    at_once: usize,
    /// Start no change after this many minutes. The rest is counted, and is no failure.
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// A program with other tests.
    #[arg(long, value_name = "PROGRAM")]
    tests: Vec<PathBuf>,
    /// Which of their tests runs which script.
    #[arg(long, value_name = "FILE", hide = true)]
    loads: Option<PathBuf>,
    /// Run as a worker process.
    #[arg(long, hide = true)]
    work: bool,
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Options {
    fn wants(&self, mutant: &Mutant) -> bool {
        (self.file.is_empty() || self.file.contains(&mutant.file))
            && (self.mutant.is_empty() || self.mutant.contains(&mutant.id))
    }

    fn rounds(&self) -> &'static [Round] {
        match self.quick {
            true => &[Round::Transcripts],
            false => &Round::ALL,
        }
    }

    /// The command that starts a worker process.
    fn worker(&self, root: &Path, loads: &Path) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap_or_default());
        command.arg("--root").arg(root).args(["scripts", "--work"]);
        command.arg("--loads").arg(loads);
        for program in &self.tests {
            command.arg("--tests").arg(program);
        }
        command.stderr(Stdio::null());
        command
    }
}

/// Tries changes of the scripts.
///
/// # Errors
///
/// If a level cannot run, an unlisted change survives, or a test notices a listed one.
pub fn run(root: &Path, options: &Options) -> Result<(), String> {
    if options.tests.is_empty()
        && !(options.quick || options.list || options.export.is_some() || options.work)
    {
        return Err("name the programs of other tests by --tests, or ask for --quick".to_owned());
    }
    if options.work {
        let loads = match &options.loads {
            Some(file) => Loads::read(file)?,
            None => Loads::default(),
        };
        let tests = options.tests.clone();
        return pool::work(&Effort { tests, loads });
    }
    let mut all = Vec::new();
    for part in parts::read(root)? {
        all.extend(mutants::of(&part)?);
    }
    let survivors = survivors::read(root, &all)?;
    let mut chosen: Vec<&Mutant> = all.iter().filter(|mutant| options.wants(mutant)).collect();
    if let Some(number) = options.sample {
        chosen = mutants::sample(chosen, number, options.seed);
    }
    if chosen.is_empty() {
        return Err("there is no such mutant".to_owned());
    }
    if options.list {
        chosen.iter().for_each(|mutant| println!("{mutant}"));
        println!("{} mutants", chosen.len());
        return Ok(());
    }
    if let Some(folder) = &options.export {
        return export(folder, &chosen);
    }
    let chosen = mutants::in_turn(chosen, options.seed);
    let begun = Instant::now();
    let verdicts = try_all(root, options, &chosen)?;
    conclude(options, &chosen, &verdicts, &survivors, begun.elapsed())
}

fn export(folder: &Path, chosen: &[&Mutant]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for mutant in chosen {
        let text = format!("{mutant}\n{}", mutant.replaced().to_file());
        std::fs::write(folder.join(&mutant.id), text).map_err(failed)?;
    }
    println!("{} mutants", chosen.len());
    Ok(())
}

/// Checks that the levels pass without a mutant. Returns how long that takes for the files that are
/// in the most scripts, which run the most tests.
fn unchanged(effort: &Effort, chosen: &[&Mutant], round: Round) -> Result<Duration, String> {
    let mut files: Vec<&Mutant> = Vec::new();
    for mutant in chosen {
        if files.iter().all(|known| known.file != mutant.file) {
            files.push(mutant);
        }
    }
    files.sort_by_key(|mutant| usize::MAX - mutant.scripts.len());
    let mut longest = Duration::ZERO;
    for mutant in files.into_iter().take(2) {
        let begun = Instant::now();
        let verdict = judge(mutant, true, round, effort)?;
        longest = longest.max(begun.elapsed());
        if let Verdict::Noticed { level, how } = verdict {
            let file = &mutant.file;
            return Err(format!("{level} complains about {file} as it is: {how}"));
        }
    }
    Ok(longest)
}

/// The verdict on each mutant. `None` if time ran out.
fn try_all(
    root: &Path,
    options: &Options,
    chosen: &[&Mutant],
) -> Result<Vec<Option<Verdict>>, String> {
    let minute = Duration::from_secs(60);
    let until = options
        .minutes
        .map(|minutes| Instant::now() + minute * u32::try_from(minutes).unwrap_or(u32::MAX));
    let loads = match options.quick {
        true => Loads::default(),
        false => Loads::of(&options.tests)?,
    };
    let written = std::env::temp_dir().join(format!("locktopus-gate-loads-{}", std::process::id()));
    loads.write(&written)?;
    let effort = Effort {
        tests: options.tests.clone(),
        loads,
    };
    let mut verdicts: Vec<Option<Verdict>> = vec![None; chosen.len()];
    for round in options.rounds().iter().copied() {
        let left: Vec<usize> = (0..chosen.len())
            .filter(|at| round.follows(verdicts[*at].as_ref()))
            .collect();
        if left.is_empty() {
            continue;
        }
        let mutants: Vec<_> = left.iter().map(|at| chosen[*at]).collect();
        let shipped = unchanged(&effort, &mutants, round)?;
        let pool = Pool {
            round,
            at_once: options.at_once,
            // The other workers leave each one core at best.
            limit: pool::AT_LEAST.max(shipped * pool::TIMES * 2),
            until,
            command: &|| options.worker(root, &written),
        };
        for (at, verdict) in pool.try_all(&mutants)? {
            verdicts[left[at]] = Some(verdict);
        }
    }
    let _ = std::fs::remove_file(&written);
    Ok(verdicts)
}

fn conclude(
    options: &Options,
    chosen: &[&Mutant],
    verdicts: &[Option<Verdict>],
    survivors: &Survivors,
    took: Duration,
) -> Result<(), String> {
    let (mut noticed, mut explained, mut left_out, mut wrong) = (0, 0, 0, 0);
    for (mutant, verdict) in chosen.iter().zip(verdicts) {
        match (verdict, survivors.has(mutant)) {
            (Some(Verdict::Noticed { level, how }), known) => {
                noticed += 1;
                if chosen.len() == 1 {
                    println!("{mutant}\nnoticed by {level}: {how}");
                }
                if known {
                    wrong += 1;
                    println!("is noticed, but in the list of survivors: {mutant}");
                }
            }
            (Some(Verdict::Survives), true) => explained += 1,
            (Some(Verdict::Survives), false) => {
                wrong += 1;
                println!("SURVIVES: {mutant}");
            }
            (Some(Verdict::Unseen) | None, _) => left_out += 1,
        }
    }
    println!(
        "{} mutants in {} s: {noticed} noticed, {explained} survive for a known reason, {wrong} wrong, {left_out} not tried to the end",
        chosen.len(),
        took.as_secs(),
    );
    let may_leave_out = options.quick || options.minutes.is_some();
    match wrong == 0 && (left_out == 0 || may_leave_out) {
        true => Ok(()),
        false => Err(format!("{wrong} wrong, {left_out} left out")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Alone {
        #[command(flatten)]
        options: Options,
    }

    fn ends_well(options: &[&str], verdict: Option<Verdict>, known: bool) -> bool {
        let Alone { options } = clap::Parser::parse_from(["gate"].iter().chain(options));
        let mutant = Mutant {
            id: "a".to_owned(),
            file: "part/now.lua".to_owned(),
            line: 1,
            operator: "constant".to_owned(),
            what: "constant: 1 -> 2".to_owned(),
            before: "1".to_owned(),
            after: "2".to_owned(),
            scripts: Vec::new(),
        };
        let mut survivors = Survivors::default();
        if known {
            survivors
                .reasons
                .insert("a".to_owned(), "a reason".to_owned());
        }
        conclude(&options, &[&mutant], &[verdict], &survivors, Duration::ZERO).is_ok()
    }

    #[test]
    fn what_is_left_out_is_a_failure_unless_it_was_asked_for() {
        let noticed = || {
            Some(Verdict::Noticed {
                level: "transcripts".to_owned(),
                how: String::new(),
            })
        };
        assert!(ends_well(&[], noticed(), false));
        assert!(!ends_well(&[], noticed(), true));
        assert!(ends_well(&[], Some(Verdict::Survives), true));
        assert!(!ends_well(&[], Some(Verdict::Survives), false));
        for left in [None, Some(Verdict::Unseen)] {
            assert!(!ends_well(&[], left.clone(), false));
            assert!(ends_well(&["--quick"], left.clone(), false));
            assert!(ends_well(&["--minutes", "1"], left, false));
        }
    }
}
