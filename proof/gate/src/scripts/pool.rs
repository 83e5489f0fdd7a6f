//! Worker processes that try mutants, because a mutant may never end, or take its process down.
//! Both count as noticed.
//!
//! A worker reads a question from a line of its input, and answers with a line, the verdict. Both
//! are JSON.
//!
//! A mutant may also time out because the machine is slow. So each one that did is tried again,
//! alone, right after the same tests of the shipped scripts, whose time sets the limit.

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

/// A mutant may take this many times as long as the shipped scripts.
pub const TIMES: u32 = 5;
/// And at least this long, since the shortest tests take no measurable time.
pub const AT_LEAST: Duration = Duration::from_secs(30);

/// The question to a worker.
#[derive(Debug, Serialize, Deserialize)]
struct Question<M> {
    mutant: M,
    round: Round,
    as_shipped: bool,
}

/// The answer to a question.
enum Answer {
    Verdict(Verdict),
    /// There is no answer, and why.
    Lost(String),
}

/// Tries mutants in workers.
#[allow(
    missing_debug_implementations,
    reason = "functions have nothing to show"
)]
pub struct Pool<'a> {
    /// The tests to run.
    pub round: Round,
    /// The number of workers.
    pub at_once: usize,
    /// How long one mutant may take while others run as well.
    pub limit: Duration,
    /// No mutant starts later than this.
    pub until: Option<Instant>,
    /// Starts a worker.
    pub command: &'a (dyn Fn() -> Command + Sync),
}

impl Pool<'_> {
    /// Tries mutants. Returns the verdict on each by its index. Mutants not tried in time are
    /// missing.
    ///
    /// # Errors
    ///
    /// If a worker cannot start, or the tests cannot run.
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

    /// Tries a mutant again, alone, with a limit from the shipped scripts.
    fn alone(&self, mutant: &Mutant) -> Result<Verdict, String> {
        let mut worker = None;
        let begun = Instant::now();
        // These tests end, even on a slow machine.
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
        // If the worker is gone, no answer comes either.
        let _ = writeln!(running.input(), "{question}");
        let mut waited = Duration::ZERO;
        loop {
            // In steps of a second, so that a pause of this process does not count.
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

/// Runs a worker, which tries the mutants that it reads.
///
/// # Errors
///
/// If it cannot read or write.
pub fn work(effort: &Effort) -> Result<(), String> {
    // Most noticed mutants end with a panic, whose message is not needed.
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
        // In a new thread, since an interpreter keeps what it has loaded.
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
