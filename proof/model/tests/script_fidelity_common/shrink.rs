//! Shrinks a list of steps after which two servers differ.

use std::time::Instant;

use locktopus_model::redis::Reply;

use super::alike::{SPARE, alike, text};
use super::sides::{Kept, Modelled, Real, same};
use super::steps::{Course, Shipped, Step};

/// The servers must differ this many times: if a millisecond decides, it may vary.
const TRIES: usize = 5;

/// Runs the steps on both servers, which start empty. Returns where they differ, if they do each
/// time.
pub(super) fn parting(real: &mut Real, texts: &[Shipped], course: &Course) -> Option<String> {
    let mut parted = None;
    for _ in 0..TRIES {
        parted = Some(parting_once(real, texts, course)?);
    }
    parted
}

/// As much time passes between the steps on the real server as on the modelled one: a lapse makes
/// up the difference to the time that really passed.
fn parting_once(real: &mut Real, texts: &[Shipped], course: &Course) -> Option<String> {
    let mut modelled = Modelled::new(texts, &course.replid);
    for listening in &course.listening {
        modelled.listen(listening);
    }
    real.clear();
    let (begun, mut lapsed) = (Instant::now(), 0);
    for step in &course.steps {
        let passed = clock_at(&modelled, step) / 1_000;
        let really = i64::try_from(begun.elapsed().as_millis()).unwrap();
        let lapse = passed - really - lapsed;
        lapsed += lapse;
        real.send(&Step::Lapse(lapse), false);
        let is_lapse = matches!(step, Step::Lapse(_));
        let done = if is_lapse { &Step::Lapse(0) } else { step };
        real.send(done, true);
        real.flush();
        let reply = modelled.run(step);
        let dump = modelled.dump();
        let lapse = real.answer();
        assert!(!matches!(lapse, Reply::Error(_)), "{lapse:?}");
        let answer = real.answer();
        let dumped = real.dumped();
        let answered = is_lapse || alike(&answer, &reply, SPARE);
        if !answered || !same(&dumped, &dump, SPARE) {
            return Some(shown((&answer, &reply), (&dumped, &dump)));
        }
    }
    None
}

/// The time of the modelled server for the step, in µs.
fn clock_at(modelled: &Modelled, step: &Step) -> i64 {
    let now = modelled.server.clock;
    match step {
        Step::Call { clock, .. } => now.max(*clock),
        Step::Command(_) => now,
        Step::Lapse(millis) => now + millis * 1_000,
    }
}

pub(super) fn shown(answers: (&Reply, &Reply), dumps: (&[Kept], &[Kept])) -> String {
    let lines = |kept: &[Kept]| {
        let lines = kept.iter().map(|kept| format!("    {kept}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    format!(
        "real server answers {}\nmodel answers       {}\nreal server keeps\n{}\nmodel keeps\n{}",
        text(answers.0),
        text(answers.1),
        lines(dumps.0),
        lines(dumps.1)
    )
}

/// Removes steps that the difference does not need. Returns where the servers differ, and how to
/// reproduce it.
pub(super) fn report(
    real: &mut Real,
    texts: &[Shipped],
    (mut shortest, mut what): (Course, String),
) -> String {
    let mut size = shortest.steps.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < shortest.steps.len() {
            let mut shorter = shortest.clone();
            let until = (from + size).min(shorter.steps.len());
            shorter.steps.drain(from..until);
            match parting(real, texts, &shorter) {
                Some(parting) => (shortest, what) = (shorter, parting),
                None => from += size,
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    shortest.listening.retain(|listening| {
        let heard = |words: &[Vec<u8>]| words.contains(&listening.channel);
        shortest.steps.iter().any(|step| match step {
            Step::Call { arguments, .. } => heard(arguments),
            Step::Command(words) => heard(words),
            Step::Lapse(_) => false,
        })
    });
    let steps = shortest.to_text(texts);
    format!(
        "the servers part after these steps, which {} reads from a file:\n{steps}{what}",
        super::REPLAY
    )
}
