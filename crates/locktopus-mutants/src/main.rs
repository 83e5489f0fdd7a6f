//! `scripts/mutants`: see [`locktopus_mutants`].

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Parser;
use locktopus_mutants::kept::{self, Judges, Kept};
use locktopus_mutants::levels::{Effort, Loads, Round, judge};
use locktopus_mutants::mutants::{self, Mutant};
use locktopus_mutants::pool::{self, Pool};
use locktopus_mutants::survivors::{self, Survivors};
use locktopus_mutants::verdict::Verdict;
use locktopus_mutants::{page, parts};

/// Changes the shipped Lua scripts in every small way, one at a time, and looks whether a test notices.
#[derive(Debug, Parser)]
#[command(name = "scripts/mutants")]
struct Options {
    /// Only mutants of these files, such as part/queue.lua.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    file: Vec<String>,
    /// Only these; of a single one, what came of it in full.
    #[arg(long, value_name = "ID", num_args = 1..)]
    mutant: Vec<String>,
    /// Only those of the table.
    #[arg(long)]
    survivors: bool,
    /// Only those of files whose survivors are all in the table.
    #[arg(long)]
    settled: bool,
    /// Only those that must be noticed: of files whose survivors are all in the table, and not in it. Nothing is kept of this.
    #[arg(long)]
    noticed: bool,
    /// Only those that no test is known to notice, from runs before.
    #[arg(long)]
    left: bool,
    /// Only what the transcripts say, which takes milliseconds for each; what they do not notice is left out.
    #[arg(long)]
    quick: bool,
    /// Only so many of them, chosen by the seed. Whatever of them survives and is in no table is a failure.
    #[arg(long, value_name = "NUMBER")]
    sample: Option<usize>,
    /// Chooses the sample.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// Forget what is known from runs before.
    #[arg(long)]
    fresh: bool,
    /// Run nothing: list the mutants.
    #[arg(long)]
    list: bool,
    /// Run nothing: check that the table is about mutants that there are.
    #[arg(long)]
    check: bool,
    /// Run nothing: write each mutant into a file of this folder, for `--test transcripts`.
    #[arg(long, value_name = "FOLDER")]
    export: Option<PathBuf>,
    /// Write the table into docs/testing.md, with this in front.
    #[arg(long, value_name = "TEXT")]
    write: Option<String>,
    /// How many processes try mutants.
    #[arg(long, value_name = "NUMBER", default_value_t = cores())]
    at_once: usize,
    /// Begin none after so many minutes, and say how many were left out. That is no failure, as it was asked for.
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Schedules of each kind and way in which the model must notice.
    #[arg(long, value_name = "NUMBER", default_value_t = 150)]
    schedules: u64,
    /// A program of other tests.
    #[arg(long, value_name = "PROGRAM")]
    tests: Vec<PathBuf>,
    /// Which of their tests runs which script.
    #[arg(long, value_name = "FILE", hide = true)]
    loads: Option<PathBuf>,
    /// Be one of the processes.
    #[arg(long, hide = true)]
    work: bool,
    /// The root of the sources.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    root: PathBuf,
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(what) => {
            eprintln!("mutants: {what}");
            ExitCode::FAILURE
        }
    }
}

impl Options {
    fn effort(&self, loads: Loads) -> Effort {
        Effort {
            first_schedules: 12,
            schedules: self.schedules,
            calls: 6_000,
            tests: self.tests.clone(),
            loads,
        }
    }

    fn wants(&self, mutant: &Mutant, survivors: &Survivors) -> bool {
        let file = self.file.is_empty() || self.file.contains(&mutant.file);
        let id = self.mutant.is_empty() || self.mutant.contains(&mutant.id);
        file && id
            && (!self.survivors || survivors.has(mutant))
            && (!self.settled || survivors.is_settled(mutant))
            && (!self.noticed || survivors.is_settled(mutant) && !survivors.has(mutant))
    }

    /// Whether this asks for no more than there is time for, or than the transcripts say.
    fn may_leave_out(&self) -> bool {
        self.minutes.is_some() || self.quick
    }

    fn rounds(&self) -> &'static [Round] {
        match self.quick {
            true => &[Round::Transcripts],
            false => &Round::ALL,
        }
    }

    /// What is known from runs before. `write` if this run adds to it.
    fn kept(&self, judges: Judges, write: bool) -> Result<Kept, String> {
        let (file, fresh) = match self.noticed {
            true => (kept::SAMPLE, true),
            false => (kept::FILE, self.fresh),
        };
        Kept::open(
            &self.root.join(file),
            judges,
            self.schedules,
            fresh && write,
        )
    }

    /// The command that starts one of the processes.
    fn worker(&self, loads: &Path) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap_or_default());
        command.arg("--work").arg("--root").arg(&self.root);
        command.args(["--schedules", &self.schedules.to_string()]);
        command.arg("--loads").arg(loads);
        for program in &self.tests {
            command.arg("--tests").arg(program);
        }
        command.stderr(Stdio::null());
        command
    }
}

fn run(options: &Options) -> Result<bool, String> {
    if options.work {
        let loads = match &options.loads {
            Some(file) => Loads::read(file)?,
            None => Loads::default(),
        };
        pool::work(&options.effort(loads))?;
        return Ok(true);
    }
    let mut all = Vec::new();
    for part in parts::read(&options.root)? {
        all.extend(mutants::of(&part)?);
    }
    let survivors = survivors::read(&options.root, &all)?;
    if options.check {
        let (known, settled) = (survivors.reasons.len(), survivors.settled.len());
        println!(
            "{} mutants; {known} survivors in the table, {settled} files settled",
            all.len()
        );
        return Ok(true);
    }
    let wanted = all
        .iter()
        .filter(|mutant| options.wants(mutant, &survivors));
    let mut chosen: Vec<&Mutant> = wanted.collect();
    if options.left {
        let kept = options.kept(kept::judges(&options.tests)?, false)?;
        chosen.retain(|mutant| kept.verdict(mutant).is_none_or(|it| it.survived()));
    }
    if let Some(number) = options.sample {
        chosen = mutants::sample(chosen, number, options.seed);
    }
    if options.list {
        chosen.iter().for_each(|mutant| println!("{mutant}"));
        println!("{} mutants", chosen.len());
        return Ok(true);
    }
    if let Some(folder) = &options.export {
        export(folder, &chosen)?;
        return Ok(true);
    }
    if chosen.is_empty() {
        return Err("there is no such mutant".to_owned());
    }
    if options.mutant.len() == 1 {
        return show(options, &chosen, &survivors);
    }
    let chosen = mutants::in_turn(chosen, options.seed);
    try_all(options, &chosen, &survivors)
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

/// Says in full what becomes of a few.
fn show(options: &Options, chosen: &[&Mutant], survivors: &Survivors) -> Result<bool, String> {
    let effort = options.effort(Loads::of(&options.tests)?);
    let mut killed = true;
    for mutant in chosen {
        println!("{mutant}");
        let mut known = None;
        for round in Round::ALL {
            if round.follows(known.as_ref()) {
                known = Some(judge(mutant, false, round, &effort)?);
            }
        }
        let Some(verdict) = known else {
            return Err("there are no rounds".to_owned());
        };
        match verdict {
            Verdict::Killed { level, how } => println!("noticed by {level}: {how}"),
            Verdict::Observable { how } => println!("SURVIVES; there is a difference: {how}"),
            Verdict::Unseen | Verdict::Unnoticed | Verdict::Alike => {
                println!("SURVIVES; no difference was seen")
            }
            Verdict::NotCalled => println!("SURVIVES; no random call is of its scripts"),
        }
        killed &= !survivors.has(mutant);
    }
    Ok(killed)
}

/// What is said to notice a mutant must not complain without one. How long that takes, of the files that are in most scripts:
/// there most is run.
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
        if let Verdict::Killed { level, how } = verdict {
            return Err(format!(
                "{level} complains about {} as it is: {how}",
                mutant.file
            ));
        }
    }
    Ok(longest)
}

fn try_all(options: &Options, chosen: &[&Mutant], survivors: &Survivors) -> Result<bool, String> {
    let begun = Instant::now();
    let until = options
        .minutes
        .map(|minutes| begun + Duration::from_secs(60 * minutes));
    let kept = options.kept(kept::judges(&options.tests)?, true)?;
    let trouble = Mutex::new(None);
    let tell = |mutant: &Mutant, verdict: &Verdict| {
        if verdict.is_final() && verdict.survived() && !survivors.has(mutant) {
            println!("SURVIVES {mutant}");
        }
        if let (Err(what), Ok(mut trouble)) = (kept.add(mutant, verdict), trouble.lock()) {
            *trouble = Some(what);
        }
    };
    let loads = match options.quick {
        true => Loads::default(),
        false => Loads::of(&options.tests)?,
    };
    let written = options.root.join(kept::LOADS);
    loads.write(&written)?;
    let effort = options.effort(loads);
    let mut verdicts: Vec<_> = chosen.iter().map(|mutant| kept.verdict(mutant)).collect();
    let known = verdicts.iter().flatten().count();
    for round in options.rounds() {
        let left: Vec<usize> = (0..chosen.len())
            .filter(|at| round.follows(verdicts[*at].as_ref()))
            .collect();
        if left.is_empty() {
            continue;
        }
        let round = *round;
        let mutants: Vec<_> = left.iter().map(|at| chosen[*at]).collect();
        let shipped = unchanged(&effort, &mutants, round)?;
        // Beside others, each of which has a core at best.
        let limit = pool::AT_LEAST.max(shipped * pool::TIMES * 2);
        let pool = Pool {
            round,
            at_once: options.at_once,
            limit,
            until,
            command: &|| options.worker(&written),
            tell: &tell,
        };
        for (at, verdict) in pool.try_all(&mutants)? {
            let said_before = match verdict {
                Verdict::Unseen => kept.beside_transcripts(mutants[at]),
                _ => None,
            };
            if let Some(said) = &said_before {
                tell(mutants[at], said);
            }
            verdicts[left[at]] = said_before.or(Some(verdict));
        }
    }
    if let Ok(Some(what)) = trouble.into_inner() {
        return Err(what);
    }
    println!("{known} of {} known from runs before", chosen.len());
    let verdicts: Vec<_> = chosen.iter().zip(&verdicts).collect();
    let finals = verdicts.into_iter().filter_map(|(mutant, verdict)| {
        let verdict = verdict.as_ref().filter(|verdict| verdict.is_final())?;
        Some((*mutant, verdict))
    });
    let finals: Vec<_> = finals.collect();
    conclude(options, chosen, &finals, survivors, begun)
}

fn conclude(
    options: &Options,
    chosen: &[&Mutant],
    verdicts: &[(&Mutant, &Verdict)],
    survivors: &Survivors,
    begun: Instant,
) -> Result<bool, String> {
    let table = page::table(chosen, verdicts, survivors);
    print!("{table}");
    let took = begun.elapsed().as_secs();
    println!(
        "{} of {} mutants tried in {} min {} s",
        verdicts.len(),
        chosen.len(),
        took / 60,
        took % 60
    );
    let mut wrong = Vec::new();
    for (mutant, verdict) in verdicts {
        match (verdict.survived(), survivors.has(mutant)) {
            (true, false) if options.sample.is_some() || survivors.is_settled(mutant) => {
                wrong.push(format!("survives, and is not in the table: {mutant}"));
            }
            (false, true) => wrong.push(format!("is noticed, but in the table: {mutant}")),
            _ => {}
        }
    }
    wrong.iter().for_each(|line| println!("{line}"));
    if let Some(run) = &options.write {
        page::write(&options.root, run, &table)?;
    }
    let left_out = chosen.len() - verdicts.len();
    if left_out > 0 {
        println!("LEFT OUT: {left_out} mutants, of which not enough is known yet");
    }
    Ok(wrong.is_empty() && (left_out == 0 || options.may_leave_out()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a run ends that knows this of the only mutant it was about.
    fn ends_well(options: &[&str], verdict: Option<&Verdict>) -> bool {
        let options = Options::parse_from(["mutants"].iter().chain(options));
        let mutant = Mutant {
            id: "a".to_owned(),
            file: "part/now.lua".to_owned(),
            line: 1,
            operator: "constant".to_owned(),
            what: "constant: 1 -> 2".to_owned(),
            before: "1".to_owned(),
            after: "2".to_owned(),
            text: String::new(),
            scripts: Vec::new(),
        };
        let verdicts: Vec<_> = verdict
            .map(|verdict| (&mutant, verdict))
            .into_iter()
            .collect();
        let survivors = Survivors::default();
        let now = Instant::now();
        conclude(&options, &[&mutant], &verdicts, &survivors, now).is_ok_and(|well| well)
    }

    #[test]
    fn what_is_left_out_is_a_failure_unless_it_was_asked_for() {
        let noticed = Verdict::Killed {
            level: "model".to_owned(),
            how: "Exclusion".to_owned(),
        };
        for options in [&[][..], &["--sample", "1"], &["--fresh"], &["--settled"]] {
            assert!(ends_well(options, Some(&noticed)), "{options:?}");
            assert!(!ends_well(options, None), "{options:?}");
        }
        assert!(ends_well(&["--minutes", "3"], None) && ends_well(&["--quick"], None));
        // What was asked for does not excuse what is wrong.
        for options in [
            &["--sample", "1", "--minutes", "3"],
            &["--sample", "1", "--quick"][..],
        ] {
            assert!(!ends_well(options, Some(&Verdict::Alike)), "{options:?}");
        }
    }
}
