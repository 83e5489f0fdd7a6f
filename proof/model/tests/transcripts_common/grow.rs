//! Finds courses for mutants that no recorded course notices, and shrinks them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use locktopus_model::Rng;
use locktopus_model::lua::{Replaced, concerns, replace};
use locktopus_model::transcripts::course::{Course, Step};
use locktopus_model::transcripts::play::{Scripts, parting, record};
use locktopus_protocol::scripts;

use super::vary::Known;
use super::{pool, write, written};

/// A mutant, as `proof/run scripts --export` writes it. The first line of its file describes it.
struct Mutant {
    what: String,
    /// The file that it changes.
    file: String,
    replaced: Replaced,
}

fn read(file: &Path) -> Mutant {
    let text = std::fs::read_to_string(file).unwrap();
    let (what, text) = text.split_once('\n').unwrap();
    // '<id> <file>:<line>: <what>': keeps only the parts that survive a move of the line.
    let (_, place) = what.split_once(' ').unwrap();
    let (file, rest) = place.split_once(':').unwrap();
    let (_, what) = rest.split_once(": ").unwrap();
    Mutant {
        file: file.to_owned(),
        what: format!("{file}: {what}"),
        replaced: Replaced::parse(text).unwrap(),
    }
}

/// The limits of the search.
pub(crate) struct Effort {
    /// How many random courses about each script.
    pub(crate) of_each: u64,
    /// How many of these for each mutant.
    pub(crate) tries: usize,
    /// How many variations of recorded courses for each mutant.
    pub(crate) variations: usize,
    /// The seed of it all.
    pub(crate) seed: u64,
}

/// Searches a course for each mutant in this folder that notices it: among recorded courses, random
/// ones that call a script with the mutant, and variations of recorded ones.
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
    let mut random = pool::courses(of_each, seed);
    random
        .iter_mut()
        .for_each(|course| record(course, &shipped));
    // Loads the scripts as shipped.
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
        // Courses that notice another mutant of this file are likely to notice this one.
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

/// A variation of these that notices a mutant, mostly of those nearby.
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
        // Calls with impossible requests say nothing about a script.
        (is_sensible(&course) && parting(&course, mutated).is_some()).then_some(course)
    })
}

/// Whether every line is the outcome of a call, and none reports a request that the script or the
/// model does not support.
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

/// For each text that no course calls, a random course up to its first call.
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

/// The part of a course that is needed to notice a mutant.
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
