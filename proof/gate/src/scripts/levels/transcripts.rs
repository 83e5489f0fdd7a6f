//! The transcripts of the model (`--test transcripts`), played in this process. They run first,
//! since they take milliseconds and notice most mutants.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use locktopus_model::lua::concerns;
use locktopus_model::transcripts::course::{Course, parse};
use locktopus_model::transcripts::play::{Scripts, parting};
use locktopus_model::transcripts::texts;
use locktopus_protocol::scripts;

use super::Noticed;
use crate::scripts::mutants::Mutant;

static COURSES: LazyLock<Result<Vec<Course>, String>> = LazyLock::new(|| {
    let texts = texts().map_err(|error| format!("the transcripts: {error}"))?;
    let courses: Vec<_> = texts.iter().flat_map(|text| parse(text)).collect();
    match courses.is_empty() {
        true => Err("there are no transcripts".to_owned()),
        false => Ok(courses),
    }
});

/// Plays the courses that call a changed script, up to the first with another outcome than
/// recorded. The course recorded for this mutant comes first, then those for other mutants of its
/// file.
///
/// # Errors
///
/// If the transcripts cannot be read.
pub(super) fn run(mutant: &Mutant) -> Result<Noticed, String> {
    let changed: BTreeSet<&str> = scripts::all()
        .filter(|script| concerns(script.source))
        .map(|script| script.name)
        .collect();
    let about = |course: &&Course| course.scripts().any(|script| changed.contains(script));
    let mut courses: Vec<_> = COURSES.as_ref()?.iter().filter(about).collect();
    courses.sort_by_key(|course| (distance(course, mutant), course.steps.len()));
    let scripts = Scripts::new();
    let noticed = courses.into_iter().find_map(|course| {
        let (at, lines) = parting(course, &scripts)?;
        let (_, was) = &course.steps[at];
        Some(format!(
            "course {}, step {}: was\n{}\nis\n{}",
            course.why,
            at + 1,
            was.join("\n"),
            lines.join("\n")
        ))
    });
    Ok(noticed.map(|how| ("transcripts", how)))
}

/// How far a course's reason is from a mutant.
fn distance(course: &Course, mutant: &Mutant) -> usize {
    match course.why.split_once(": ") {
        Some((file, what)) if file == mutant.file => usize::from(what != mutant.what),
        _ => 2,
    }
}
