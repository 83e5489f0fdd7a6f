//! Processes that try mutants: one that never ends, or takes the process with it, is one of them
//! and is noticed.
//!
//! A process reads a question from a line of its input, and answers with a line: what became of the
//! mutant. Both are JSON.
//!
//! That a mutant takes too long may as well be the machine's doing. So what did not end in time is
//! tried once more, alone, right after the same tests of the scripts as they are shipped, which say
//! how long it may take.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::levels::{Effort, Round, judge};
use super::mutants::Mutant;
use super::verdict::Verdict;

/// So many times as long as the scripts as they are shipped a mutant may take.
pub const TIMES: u32 = 5;
/// And at least so long: the shortest tests take no time that could be measured.
pub const AT_LEAST: Duration = Duration::from_secs(30);

/// What a process is asked.
#[derive(Debug, Serialize, Deserialize)]
struct Question<M> {
    mutant: M,
    round: Round,
    as_shipped: bool,
}

/// What came of a question.
enum Answer {
    Verdict(Verdict),
    /// None came, and why.
    Lost(String),
}

/// How mutants are tried.
#[allow(
    missing_debug_implementations,
    reason = "functions have nothing to show"
)]
pub struct Pool<'a> {
    /// Which tests are run.
    pub round: Round,
    /// How many processes.
    pub at_once: usize,
    /// What one mutant may take while others are tried as well.
    pub limit: Duration,
    /// None is begun later.
    pub until: Option<Instant>,
    /// Starts a process.
    pub command: &'a (dyn Fn() -> Command + Sync),
}

impl Pool<'_> {
    /// Tries mutants, and says of each, by its place, what became of it; of those for which there
    /// was no time nothing.
    ///
    /// # Errors
    ///
    /// If a process cannot be started, or the tests cannot be run.
    pub fn try_all(&self, mutants: &[&Mutant]) -> Result<Vec<(usize, Verdict)>, String> {
        let next = AtomicUsize::new(0);
        let verdicts = Mutex::new(Vec::new());
        let lost = Mutex::new(Vec::new());
        let work = || -> Result<(), String> {
            let mut worker = None;
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(mutant) = mutants.get(at).filter(|_| !self.is_over()) else {
                    return Ok(());
                };
                match self.ask(&mut worker, mutant, false, self.limit)? {
                    Answer::Verdict(verdict) => locked(&verdicts).push((at, verdict)),
                    Answer::Lost(_) => locked(&lost).push(at),
                }
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.at_once).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err("a thread panicked".to_owned()))
            })
        })?;
        let mut verdicts = verdicts
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        for at in lost.into_inner().unwrap_or_else(PoisonError::into_inner) {
            if self.is_over() {
                break;
            }
            verdicts.push((at, self.alone(mutants[at])?));
        }
        verdicts.sort_by_key(|(at, _)| *at);
        Ok(verdicts)
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() > until)
    }

    /// Once more, alone, in a time that the scripts as they are shipped set.
    fn alone(&self, mutant: &Mutant) -> Result<Verdict, String> {
        let mut worker = None;
        let begun = Instant::now();
        // However slow the machine is, these tests end.
        match self.ask(&mut worker, mutant, true, Duration::MAX)? {
            Answer::Verdict(Verdict::Noticed { level, how }) => {
                return Err(format!(
                    "{level} complains about {} as it is: {how}",
                    mutant.file
                ));
            }
            Answer::Verdict(_) => {}
            Answer::Lost(why) => return Err(format!("{} as it is shipped: {why}", mutant.file)),
        }
        let shipped = begun.elapsed();
        let limit = AT_LEAST.max(shipped * TIMES);
        Ok(match self.ask(&mut worker, mutant, false, limit)? {
            Answer::Verdict(verdict) => verdict,
            Answer::Lost(why) => Verdict::Noticed {
                level: "time".to_owned(),
                how: format!(
                    "{why}, twice, the second time alone; as shipped it takes {:.1} s",
                    shipped.as_secs_f64()
                ),
            },
        })
    }

    fn ask(
        &self,
        worker: &mut Option<Worker>,
        mutant: &Mutant,
        as_shipped: bool,
        limit: Duration,
    ) -> Result<Answer, String> {
        let running = match worker {
            Some(running) => running,
            None => worker.insert(Worker::start((self.command)())?),
        };
        let question = Question {
            mutant,
            round: self.round,
            as_shipped,
        };
        let question = serde_json::to_string(&question).map_err(|error| error.to_string())?;
        // If it is gone, so are its answers.
        let _ = writeln!(running.input(), "{question}");
        let mut waited = Duration::ZERO;
        loop {
            // Second by second, so that those in which this process was stopped do not count.
            match running.answers.recv_timeout(Duration::from_secs(1)) {
                Ok(line) => {
                    let answer: Result<Verdict, String> = serde_json::from_str(&line)
                        .map_err(|error| format!("{line:?}: {error}"))?;
                    return answer.map(Answer::Verdict);
                }
                Err(RecvTimeoutError::Timeout) => waited += Duration::from_secs(1),
                Err(RecvTimeoutError::Disconnected) => {
                    *worker = None;
                    return Ok(Answer::Lost("it ended the process".to_owned()));
                }
            }
            if waited >= limit {
                *worker = None;
                let why = format!("it did not end within {} s", limit.as_secs());
                return Ok(Answer::Lost(why));
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Worker {
    child: Child,
    answers: Receiver<String>,
}

impl Worker {
    fn start(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let output = child.stdout.take().ok_or("no output")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, answers })
    }

    fn input(&mut self) -> impl std::io::Write + '_ {
        self.child.stdin.as_mut().expect("it was asked for")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process does: tries the mutants that it reads.
///
/// # Errors
///
/// If it cannot read or write.
pub fn work(effort: &Effort) -> Result<(), String> {
    // Every mutant that is noticed ends with a panic, of which nobody wants to hear.
    std::panic::set_hook(Box::new(|_| {}));
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let question: Question<Mutant> =
            serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let Question {
            mutant,
            round,
            as_shipped,
        } = &question;
        // In a thread of its own, as an interpreter keeps what it has loaded.
        let verdict = std::thread::scope(|scope| {
            let judged = scope.spawn(|| judge(mutant, *as_shipped, *round, effort));
            judged.join()
        });
        let verdict = verdict.unwrap_or_else(|_| {
            Ok(Verdict::Noticed {
                level: "model".to_owned(),
                how: "a panic".to_owned(),
            })
        });
        let text = serde_json::to_string(&verdict).map_err(|error| error.to_string())?;
        println!("{text}");
    }
    Ok(())
}
