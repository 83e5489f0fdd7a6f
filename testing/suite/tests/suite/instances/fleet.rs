//! Several instances, their output, and the faults they suffer.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use locktopus_servers::topology::Deployment;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::common::{LONG, url_for};
use crate::gone::door::Door;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, until repaired.
    Stop,
    /// No connection to the server, until repaired.
    CutOff,
}

/// One line of an instance's output.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) worker: usize,
    pub(crate) word: String,
    pub(crate) token: u64,
    /// When the run was due.
    pub(crate) run: u64,
    /// The time of the line, in microseconds since the epoch.
    at: u64,
}

pub(crate) struct Fleet {
    url: String,
    server: SocketAddr,
    role: &'static str,
    name: String,
    workers: Vec<Option<Instance>>,
    said: Vec<Line>,
    lines: mpsc::UnboundedReceiver<Line>,
    speak: mpsc::UnboundedSender<Line>,
}

struct Instance {
    process: Child,
    door: Door,
}

impl Fleet {
    pub(crate) fn new(place: &Deployment, client: &str, role: &'static str, name: &str) -> Self {
        let (speak, lines) = mpsc::unbounded_channel();
        Self {
            url: url_for(place, client),
            server: place.nodes()[0].addr(),
            role,
            name: name.to_owned(),
            workers: Vec::new(),
            said: Vec::new(),
            lines,
            speak,
        }
    }

    /// Starts one more, connected instance.
    pub(crate) async fn start(&mut self) {
        let worker = self.workers.len();
        let door = Door::to(self.server).await;
        let url = self
            .url
            .replace(&self.server.to_string(), &door.addr().to_string());
        assert_ne!(url, self.url, "the address of the server is not in its URL");
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "instances::worker", "--ignored", "--nocapture"])
            .env("INSTANCE_URL", url)
            .env("INSTANCE_NAME", &self.name)
            .env("INSTANCE_ROLE", self.role)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (output, speak) = (process.stdout.take().unwrap(), self.speak.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(line) = Line::read(worker, &line)
                    && speak.send(line).is_err()
                {
                    return;
                }
            }
        });
        self.workers.push(Some(Instance { process, door }));
        self.next("up", |line| line.worker == worker).await;
    }

    pub(crate) fn running(&self) -> usize {
        self.workers.iter().flatten().count()
    }

    /// The next line with this word that matches.
    pub(crate) async fn next(&mut self, word: &str, wanted: impl Fn(&Line) -> bool) -> Line {
        let next = async {
            loop {
                let line = self.lines.recv().await.unwrap();
                self.said.push(line.clone());
                if line.word == word && wanted(&line) {
                    return line;
                }
            }
        };
        match timeout(LONG, next).await {
            Ok(line) => line,
            Err(_) => panic!("nobody says {word:?}"),
        }
    }

    /// The same, but an earlier line counts too.
    pub(crate) async fn heard(&mut self, word: &str, wanted: impl Fn(&Line) -> bool) {
        let told = |line: &Line| line.word == word && wanted(line);
        if !self.said.iter().any(told) {
            self.next(word, wanted).await;
        }
    }

    pub(crate) fn break_down(&mut self, worker: usize, fault: Fault) {
        let instance = self.workers[worker].as_mut().unwrap();
        match fault {
            Fault::Kill => {
                instance.signal(Signal::KILL);
                instance.process.wait().unwrap();
                self.workers[worker] = None;
            }
            Fault::Stop => instance.signal(Signal::STOP),
            Fault::CutOff => instance.door.shut(),
        }
    }

    pub(crate) fn mend(&mut self, worker: usize, fault: Fault) {
        let Some(instance) = &self.workers[worker] else {
            return;
        };
        match fault {
            Fault::Kill => {}
            Fault::Stop => instance.signal(Signal::CONT),
            Fault::CutOff => instance.door.open(),
        }
    }

    /// Checks that of any two terms or runs, the one with the smaller token took no step after the
    /// other one started. Returns the started ones, by token.
    pub(crate) fn one_at_a_time(&mut self) -> Vec<Line> {
        while let Ok(line) = self.lines.try_recv() {
            self.said.push(line);
        }
        let mut begun: BTreeMap<u64, Line> = BTreeMap::new();
        let mut last_step: BTreeMap<u64, u64> = BTreeMap::new();
        for line in &self.said {
            match line.word.as_str() {
                "lead" | "run" => {
                    let twice = begun.insert(line.token, line.clone());
                    assert!(twice.is_none(), "a token was given twice: {line:?}");
                }
                "step" => {
                    let last = last_step.entry(line.token).or_default();
                    *last = line.at.max(*last);
                }
                _ => {}
            }
        }
        let begun: Vec<_> = begun.into_values().collect();
        for pair in begun.windows(2) {
            let last = last_step.get(&pair[0].token).copied();
            assert!(
                last.is_none_or(|last| last < pair[1].at),
                "{:?} took a step at {last:?}, after {:?} had begun",
                pair[0],
                pair[1]
            );
        }
        assert!(begun.len() > 3, "{begun:?}");
        begun
    }
}

impl Line {
    fn read(worker: usize, text: &str) -> Option<Self> {
        let mut words = text.strip_prefix("@ ")?.split(' ');
        let word = words.next()?.to_owned();
        let mut number = || words.next()?.parse().ok();
        Some(Self {
            worker,
            word,
            token: number()?,
            run: number()?,
            at: number()?,
        })
    }
}

impl Instance {
    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Works for a stopped process too.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
