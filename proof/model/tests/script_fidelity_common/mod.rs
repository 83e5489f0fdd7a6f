//! The shipped backend calls every shipped script on the modelled server, and then a real server
//! gets the same calls: replies, messages and keys must be the same.

mod calling;
mod focus;
mod recorder;
mod scene;
mod shim;
mod shrink;
mod sides;
mod steps;

#[path = "../fidelity_common/alike.rs"]
mod alike;
#[path = "../fidelity_common/wire.rs"]
mod wire;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use alike::{SPARE, alike, text};
use calling::Callers;
use focus::Focus;
use locktopus_model::Rng;
use locktopus_model::redis::Reply;
use recorder::{Done, Recorder, locked};
use sides::{Real, same};
use steps::{Course, Shipped, Step, shipped};

/// The number of calls of each script.
const CALLS: &str = "LOCKTOPUS_FIDELITY_CALLS";
/// The seed of the random numbers.
const SEED: &str = "LOCKTOPUS_FIDELITY_SEED";
/// A file with a list of steps to run instead of random ones.
const REPLAY: &str = "LOCKTOPUS_FIDELITY_REPLAY";

/// Requests between two clean starts.
const REQUESTS: [usize; 3] = [15, 40, 80];
/// Dumps are compared after each so many steps, and at the end.
const DUMPED_EVERY: [usize; 3] = [1, 7, 20];
/// If none of this many lists calls a script, nothing calls it.
const LISTS_IN_VAIN: usize = 40;
/// Rare replies of a script may need this many times the requested calls.
const CALLS_FOR_ANOTHER_SORT: u64 = 50;

/// By how many milliseconds times may differ: time has passed on the real server since then, and
/// none on the modelled one.
fn spare(begun: Instant) -> u64 {
    SPARE + u64::try_from(begun.elapsed().as_millis()).unwrap()
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |number| number.parse().expect(variable))
}

/// Compares until each script was called as often as the variable says, or `by_default`.
pub(crate) fn compare(server: &str, addr: SocketAddr, by_default: u64) {
    let texts = shipped();
    let real = Real::connect(addr, &texts);
    if let Ok(file) = std::env::var(REPLAY) {
        replay(&file, real, &texts);
        return;
    }
    let counts = compare_random_lists(real, texts, number(CALLS, by_default));
    println!("{server}: {counts}");
}

/// Compares random lists, and returns what was called. Panics if the servers differ.
fn compare_random_lists(real: Real, texts: Vec<Shipped>, calls: u64) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let mut session = Session::begin(real, texts, &runtime);
    runtime.block_on(session.run(calls));
    session.counts()
}

/// Runs a recorded list, and shows where the servers differ.
fn replay(file: &str, mut real: Real, texts: &[Shipped]) {
    let written = std::fs::read_to_string(file).expect(file);
    let course = Course::parse(&written, texts);
    assert!(!course.steps.is_empty(), "no step in {file}");
    let parting = parting_of(course, &mut real, texts);
    assert!(parting.is_none(), "{}", parting.unwrap_or_default());
}

/// Where a recorded list makes the real server differ from a modelled one with these scripts.
fn parting_of(course: Course, real: &mut Real, texts: &[Shipped]) -> Option<String> {
    let course = course.on(&real.replid);
    real.listen(&course.listening);
    shrink::parting(real, texts, &course)
}

/// A real server with the shipped scripts, and changed scripts for the modelled one.
#[allow(dead_code, reason = "containers are compared by random lists alone")]
fn differing(addr: SocketAddr, [from, to]: [&str; 2]) -> (Real, Vec<Shipped>) {
    let mut texts = shipped();
    let real = Real::connect(addr, &texts);
    for text in &mut texts {
        text.source = text.source.replace(from, to).leak();
    }
    (real, texts)
}

/// Where a list of steps makes servers with different scripts differ.
#[allow(dead_code, reason = "containers are compared by random lists alone")]
pub(crate) fn parting(addr: SocketAddr, list: &str, change: [&str; 2]) -> Option<String> {
    let (mut real, texts) = differing(addr, change);
    parting_of(Course::parse(list, &texts), &mut real, &texts)
}

/// How random lists make servers with different scripts differ, or what they called.
#[allow(
    dead_code,
    reason = "containers are compared with the shipped scripts alone"
)]
pub(crate) fn random_parting(
    addr: SocketAddr,
    change: [&str; 2],
    calls: u64,
) -> Result<String, String> {
    let (real, texts) = differing(addr, change);
    let compared = std::panic::catch_unwind(|| compare_random_lists(real, texts, calls));
    match compared {
        Ok(counts) => Err(counts),
        Err(panic) => Ok(*panic.downcast::<String>().unwrap()),
    }
}

struct Session {
    real: Real,
    texts: Vec<Shipped>,
    recorder: Arc<Mutex<Recorder>>,
    callers: Callers,
    rng: Rng,
    counts: Vec<u64>,
    /// The sorts of replies of each script.
    sorts: Vec<BTreeSet<String>>,
    steps: usize,
    dumps: usize,
    /// How many lists were compared a second time.
    again: usize,
}

impl Session {
    fn begin(real: Real, texts: Vec<Shipped>, runtime: &tokio::runtime::Runtime) -> Self {
        let recorder = Recorder::new(&texts, &real.replid);
        let callers = runtime.block_on(Callers::connect(&recorder));
        real.listen(&locked(&recorder).listening);
        let seed = number(SEED, 20_261_123);
        Self {
            counts: vec![0; texts.len()],
            sorts: vec![BTreeSet::new(); texts.len()],
            real,
            texts,
            recorder,
            callers,
            rng: Rng::new(seed),
            steps: 0,
            dumps: 0,
            again: 0,
        }
    }

    /// Runs lists of calls, each about the script with the fewest calls of those that need more.
    async fn run(&mut self, calls: u64) {
        let mut in_vain = 0;
        loop {
            let Some(least) = self.not_called_enough(calls) else {
                self.require_several_sorts();
                return;
            };
            let count = self.counts[least];
            let name = *self.rng.pick(&self.texts[least].names);
            let focus = Focus::on(name, &mut self.rng);
            let requests = *self.rng.pick(&REQUESTS);
            locked(&self.recorder).dumped_every = *self.rng.pick(&DUMPED_EVERY);
            self.callers.call(&focus, &mut self.rng, requests).await;
            self.compare_list();
            in_vain = if self.counts[least] > count {
                0
            } else {
                in_vain + 1
            };
            assert!(
                in_vain < LISTS_IN_VAIN,
                "{LISTS_IN_VAIN} lists about {name}, and no call of it: {focus:?}"
            );
        }
    }

    /// Repeats the list on the real server, and starts anew.
    fn compare_list(&mut self) {
        let mut recorder = locked(&self.recorder);
        let mut done = std::mem::take(&mut recorder.done);
        if let Some(last) = done.last_mut() {
            last.dump = Some(recorder.modelled.dump());
        }
        recorder.modelled.server.keys.clear();
        recorder.modelled.server.take_published();
        recorder.modelled.server.take_changes();
        let listening = recorder.listening.clone();
        drop(recorder);
        let begun = Instant::now();
        for one in &done {
            self.real.send(&one.step, one.dump.is_some());
        }
        self.real.flush();
        let mut parted = None;
        for (at, one) in done.iter().enumerate() {
            let differs = difference(&mut self.real, one, begun);
            parted = parted.or_else(|| differs.map(|what| format!("step {at}: {what}")));
            self.count(one);
        }
        let took = begun.elapsed();
        self.real.clear();
        if let Some(parted) = parted {
            let course = Course {
                replid: self.real.replid.clone(),
                listening,
                steps: done.into_iter().map(|one| one.step).collect(),
            };
            // All calls at once take no time on the real server, or very long if the machine
            // stalls; the modelled clock follows the list. So compare again, step by step, with the
            // same times on both.
            self.again += 1;
            if let Some(again) = shrink::parting(&mut self.real, &self.texts, &course) {
                let found = (course, again);
                let report = shrink::report(&mut self.real, &self.texts, found);
                panic!("{report}\n\nfirst, sent all at once, in {took:?}: {parted}");
            }
            self.real.clear();
        }
    }

    fn count(&mut self, one: &Done) {
        self.steps += 1;
        self.dumps += usize::from(one.dump.is_some());
        if let Step::Call { script, .. } = one.step {
            self.counts[script] += 1;
            self.sorts[script].insert(sort(&one.reply));
        }
    }

    /// A script with only one sort of reply is called further, since its rare replies depend on
    /// chance.
    fn not_called_enough(&self, calls: u64) -> Option<usize> {
        let scripts = 0..self.texts.len();
        scripts
            .filter(|&script| {
                let count = self.counts[script];
                count < calls
                    || count < calls * CALLS_FOR_ANOTHER_SORT && self.only_one_sort(script)
            })
            .min_by_key(|&script| self.counts[script])
    }

    /// One script has a single reply, which differs only by the clock.
    fn only_one_sort(&self, script: usize) -> bool {
        self.sorts[script].len() < 2 && self.texts[script].names[0] != "wait_offset"
    }

    /// A script with only one sort of reply was called only when it had nothing to do.
    fn require_several_sorts(&self) {
        for (script, text) in self.texts.iter().enumerate() {
            let (name, sorts) = (text.names[0], &self.sorts[script]);
            assert!(
                !self.only_one_sort(script),
                "{name} only ever answered {sorts:?}"
            );
        }
    }

    fn counts(&self) -> String {
        let calls: u64 = self.counts.iter().sum();
        let least = self.counts.iter().min().copied().unwrap_or(0);
        let mut line = format!(
            "{} texts of {} scripts, {calls} calls, {} steps, {} dumps; each at least {least} times; {} lists compared twice",
            self.texts.len(),
            self.texts
                .iter()
                .map(|text| text.names.len())
                .sum::<usize>(),
            self.steps,
            self.dumps,
            self.again,
        );
        for ((text, count), sorts) in self.texts.iter().zip(&self.counts).zip(&self.sorts) {
            let _ = write!(line, "\n    {count:>9} {}", text.names.join(", "));
            let _ = write!(
                line,
                "\n              {}",
                sorts.iter().cloned().collect::<Vec<_>>().join("; ")
            );
        }
        line
    }
}

/// The sort of a reply, without times and tokens: its error code, status, or shape.
fn sort(reply: &Reply) -> String {
    match reply {
        Reply::Error(line) => line.split(' ').next().unwrap_or_default().to_owned(),
        Reply::Int(small @ -2..10) => small.to_string(),
        Reply::Int(_) => "a number".to_owned(),
        Reply::Array(items) => match items.first() {
            // The messages come first, then the reply.
            Some(Reply::Array(said)) if items.len() <= 2 => {
                let answer = items.get(1).map(sort).unwrap_or_default();
                format!("{answer}, {} published", said.len())
            }
            Some(first) => format!("list of {}", sort(first)),
            None => "an empty list".to_owned(),
        },
        Reply::Bulk(long) if long.len() > 1 => "a text".to_owned(),
        other => text(other),
    }
}

/// Reads all replies of the real server, and returns how they differ.
fn difference(real: &mut Real, done: &Done, begun: Instant) -> Option<String> {
    let answer = real.answer();
    let lapse = matches!(done.step, Step::Lapse(_));
    let mut fine = if lapse {
        !matches!(answer, Reply::Error(_))
    } else {
        alike(&answer, &done.reply, spare(begun))
    };
    let mut dumps = (Vec::new(), &[][..]);
    if let Some(dump) = &done.dump {
        dumps = (real.dumped(), dump);
        fine &= same(&dumps.0, dump, spare(begun));
    }
    (!fine).then(|| shrink::shown((&answer, &done.reply), (&dumps.0, dumps.1)))
}
