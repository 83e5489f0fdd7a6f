//! Finds courses that notice mutants which none of those that are written down notices: of random
//! ones what is needed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use locktopus_model::Rng;
use locktopus_model::lua::{Replaced, concerns, replace};
use locktopus_model::transcripts::course::{Course, Step};
use locktopus_model::transcripts::play::{Scripts, parting, record};
use locktopus_protocol::scripts;

use super::vary::Known;
use super::{crowds, pool, scenes, states, states_other, twist, write, written};

/// So many planned courses of each kind for each random one of a script.
const SCENES: u64 = 16;
/// And so many states that are put together.
const STATES: u64 = 64;

/// A mutant, as `proof/run scripts --export` writes it: the first line of its file says what it is.
struct Mutant {
    what: String,
    /// The file that it is of.
    file: String,
    replaced: Replaced,
}

fn read(file: &Path) -> Mutant {
    let text = std::fs::read_to_string(file).unwrap();
    let (what, text) = text.split_once('\n').unwrap();
    // '<id> <file>:<line>: <what>': only what stays while the line does.
    let (_, place) = what.split_once(' ').unwrap();
    let (file, rest) = place.split_once(':').unwrap();
    let (_, what) = rest.split_once(": ").unwrap();
    Mutant {
        file: file.to_owned(),
        what: format!("{file}: {what}"),
        replaced: Replaced::parse(text).unwrap(),
    }
}

/// How much is tried.
pub(crate) struct Effort {
    /// Random courses about each script.
    pub(crate) of_each: u64,
    /// Of these, so many for each mutant.
    pub(crate) tries: usize,
    /// So many variations of what is written down for each mutant.
    pub(crate) variations: usize,
    /// Chooses all of it.
    pub(crate) seed: u64,
}

/// For each mutant in this folder, looks for a course that notices it, among those that are written
/// down, among random ones that call a script with the mutant, and among variations of what is
/// written down.
pub(crate) fn grow(folder: &Path, effort: &Effort) {
    let Effort { of_each, seed, .. } = *effort;
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let shipped = Scripts::new();
    let mut corpus = written();
    let mut rng = Rng::new(seed);
    let mut random = states::courses(of_each * STATES, seed);
    random.extend(states_other::courses(of_each * STATES, seed));
    random.extend(scenes::courses(of_each * SCENES, seed));
    random.extend(crowds::courses(of_each, seed));
    random
        .iter_mut()
        .for_each(|course| record(course, &shipped));
    random.retain(is_sensible);
    for course in pool::courses(of_each, seed) {
        for twisted in [false, true, true] {
            let mut course = course.clone();
            if twisted {
                twist::twist(&mut course, &mut rng);
            }
            record(&mut course, &shipped);
            random.push(course);
        }
    }
    // Scripts are loaded as they are shipped.
    for course in &corpus {
        record(&mut course.clone(), &shipped);
    }
    let mut grown: BTreeSet<String> = BTreeSet::new();
    for course in uncalled(&corpus, &random) {
        grown.insert(course.why.split(": ").next().unwrap().to_owned());
        corpus.push(course);
    }
    write(&corpus, |part| grown.contains(part));
    println!(
        "{} courses are written down, {} random ones",
        corpus.len(),
        random.len()
    );
    let (mut before, mut found) = (0, 0);
    for (at, file) in files.iter().enumerate() {
        let mutant = read(file);
        let what = format!("{} {}", file.file_name().unwrap().display(), mutant.what);
        replace(Some(mutant.replaced));
        let changed: BTreeSet<&str> = scripts::all()
            .filter(|script| concerns(script.source))
            .map(|script| script.name)
            .collect();
        let mutated = Scripts::new();
        let about = |course: &&Course| course.scripts().any(|script| changed.contains(script));
        // Those that notice another mutant of this file are likely to notice this one.
        let near = |course: &&Course| course.why.starts_with(&mutant.file);
        let same = corpus.iter().rev().filter(near);
        let others = corpus.iter().rev().filter(|course| !near(course));
        let known = same.chain(others).filter(about);
        if { known }.any(|course| parting(course, &mutated).is_some()) {
            before += 1;
            println!("known {what}");
        } else if let Some(course) = { random.iter() }
            .filter(about)
            .take(effort.tries)
            .find(|course| parting(course, &mutated).is_some())
            .cloned()
            .or_else(|| {
                let courses: Vec<&Course> = corpus.iter().filter(about).collect();
                let near: Vec<&Course> = courses.iter().copied().filter(near).collect();
                varied(
                    &courses,
                    &near,
                    effort.variations,
                    &mut rng,
                    &shipped,
                    &mutated,
                )
            })
        {
            found += 1;
            let course = shortest(&course, &mutated, &shipped, &mutant.what);
            println!("found {what}");
            corpus.push(course);
            grown.insert(mutant.file.clone());
        } else {
            println!("UNNOTICED {what}");
        }
        replace(None);
        if at % 100 == 99 {
            write(&corpus, |part| grown.contains(part));
        }
    }
    write(&corpus, |part| grown.contains(part));
    println!(
        "{} mutants: {before} noticed before, {found} by new courses, of which there are {} now",
        files.len(),
        corpus.len()
    );
}

/// A variation of these that notices a mutant, mostly of those that are near.
fn varied(
    courses: &[&Course],
    near: &[&Course],
    variations: usize,
    rng: &mut Rng,
    shipped: &Scripts,
    mutated: &Scripts,
) -> Option<Course> {
    if courses.is_empty() {
        return None;
    }
    let known = Known::new(courses);
    (0..variations).find_map(|_| {
        let of = if near.is_empty() || rng.permille(300) {
            courses
        } else {
            near
        };
        let base = *rng.pick(of);
        let mut course = known.vary(base, rng);
        record(&mut course, shipped);
        // What no script is asked says nothing about one.
        (is_sensible(&course) && parting(&course, mutated).is_some()).then_some(course)
    })
}

/// Whether every line says what came of a call, and none that a script or the model was asked for
/// what it cannot do.
fn is_sensible(course: &Course) -> bool {
    const BEGINNINGS: [&str; 7] = [
        "answers ",
        "publishes ",
        "spublishes ",
        "keeps ",
        "removes ",
        "touches ",
        "runs ",
    ];
    let sensible = |line: &String| {
        BEGINNINGS
            .iter()
            .any(|beginning| line.starts_with(beginning))
            && !line.starts_with("answers error of the script")
    };
    course
        .steps
        .iter()
        .all(|(_, lines)| lines.iter().all(sensible))
}

/// For each text that no course calls a random one, up to its first call.
fn uncalled(corpus: &[Course], random: &[Course]) -> Vec<Course> {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let source = |name: &str| {
        let script = scripts::all().find(|script| script.name == name);
        script.unwrap().source
    };
    known.extend(corpus.iter().flat_map(Course::scripts).map(source));
    let mut found = Vec::new();
    for course in random {
        for (at, (step, _)) in course.steps.iter().enumerate() {
            if let Step::Call { script, .. } = step
                && known.insert(source(script))
            {
                let mut course = course.clone();
                course.why = format!("{script}: is called");
                course.steps.truncate(at + 1);
                found.push(course);
            }
        }
    }
    found
}

/// What of a course is needed to notice a mutant.
fn shortest(course: &Course, mutated: &Scripts, shipped: &Scripts, what: &str) -> Course {
    let mut shortest = course.clone();
    what.clone_into(&mut shortest.why);
    let (last, _) = parting(&shortest, mutated).unwrap();
    shortest.steps.truncate(last + 1);
    let mut size = shortest.steps.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < shortest.steps.len() {
            let mut shorter = shortest.clone();
            let until = (from + size).min(shorter.steps.len());
            shorter.steps.drain(from..until);
            record(&mut shorter, shipped);
            match parting(&shorter, mutated) {
                Some((last, _)) => {
                    shorter.steps.truncate(last + 1);
                    shortest = shorter;
                }
                None => from += size,
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    if shortest.advances {
        let mut frozen = shortest.clone();
        frozen.advances = false;
        record(&mut frozen, shipped);
        if parting(&frozen, mutated).is_some() {
            shortest = frozen;
        }
    }
    assert!(matches!(
        shortest.steps.last(),
        Some((Step::Call { .. }, _))
    ));
    shortest
}
