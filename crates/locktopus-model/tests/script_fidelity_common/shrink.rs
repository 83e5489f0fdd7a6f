//! A list of steps after which two servers differ, made as short as it gets.

use std::time::Instant;

use locktopus_model::redis::Reply;

use super::alike::{alike, text};
use super::sides::{Kept, Modelled, Real, same};
use super::spare;
use super::steps::{Course, Shipped, Step};

/// Does the steps on both, each on empty servers, and says where they part.
pub(super) fn parting(real: &mut Real, texts: &[Shipped], course: &Course) -> Option<String> {
    let mut modelled = Modelled::new(texts, &course.replid);
    for listening in &course.listening {
        modelled.listen(listening);
    }
    real.clear();
    let begun = Instant::now();
    for step in &course.steps {
        let reply = modelled.run(step);
        let dump = modelled.dump();
        real.send(step, true);
        real.flush();
        let answer = real.answer();
        let dumped = real.dumped();
        let spare = spare(begun);
        let answered = matches!(step, Step::Lapse(_)) || alike(&answer, &reply, spare);
        if !answered || !same(&dumped, &dump, spare) {
            return Some(shown((&answer, &reply), (&dumped, &dump)));
        }
    }
    None
}

fn shown(answers: (&Reply, &Reply), dumps: (&[Kept], &[Kept])) -> String {
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

/// Leaves out what is not needed for the servers to part, and tells how to see it again.
pub(super) fn report(real: &mut Real, texts: &[Shipped], course: Course) -> String {
    let mut shortest = course;
    let Some(mut what) = parting(real, texts, &shortest) else {
        let steps = shortest.to_text(texts);
        return format!("the servers parted once and not again, in:\n{steps}");
    };
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
