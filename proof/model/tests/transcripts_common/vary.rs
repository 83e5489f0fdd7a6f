//! Variations of recorded courses. These already run close to the changed lines, and one thing
//! more, less or different often shows what a random course does not reach.

use std::collections::BTreeMap;

use locktopus_model::Rng;
use locktopus_model::transcripts::course::{Course, Step};

/// Further values for arguments, besides those in other calls of the same script. None is so great
/// that a script counts up to it for long.
const WORDS: [&str; 13] = [
    "", "0", "1", "2", "3", "16", "17", "x", "PUBLISH", "SPUBLISH", "publish", "50000", "60000",
];

/// The recorded courses, indexed.
pub(super) struct Known<'a> {
    courses: Vec<&'a Course>,
    /// The arguments of the calls of each script.
    calls: BTreeMap<&'a str, Vec<&'a [Vec<u8>]>>,
}

impl<'a> Known<'a> {
    pub(super) fn new(courses: &[&'a Course]) -> Self {
        let mut calls: BTreeMap<&str, Vec<&[Vec<u8>]>> = BTreeMap::new();
        for (step, _) in courses.iter().flat_map(|course| &course.steps) {
            if let Step::Call {
                script, arguments, ..
            } = step
            {
                calls.entry(script).or_default().push(arguments);
            }
        }
        Self {
            courses: courses.to_vec(),
            calls,
        }
    }

    /// A copy of a course with one to four changes.
    pub(super) fn vary(&self, course: &Course, rng: &mut Rng) -> Course {
        let mut course = course.clone();
        for _ in 0..=rng.below(4) {
            match rng.below(10) {
                0..=1 => again(&mut course, rng),
                2..=5 => self.other_word(&mut course, rng),
                6 => without(&mut course, rng),
                7..=8 => self.go_on(&mut course, rng),
                _ => self.also(&mut course, rng),
            }
            if course.scripts().next().is_none() {
                break;
            }
        }
        course
    }

    /// Changes an argument.
    fn other_word(&self, course: &mut Course, rng: &mut Rng) {
        let at = *rng.pick(&calls(course));
        let Step::Call {
            script, arguments, ..
        } = &mut course.steps[at].0
        else {
            unreachable!("these are calls")
        };
        if arguments.is_empty() {
            return;
        }
        let place = usize::try_from(rng.below(arguments.len() as u64)).unwrap();
        let others = self.calls.get(script.as_str());
        let word = match others {
            Some(others) if rng.permille(600) => rng.pick(others).get(place).cloned(),
            _ => Some(rng.pick(&WORDS).as_bytes().to_vec()),
        };
        if let Some(word) = word {
            arguments[place] = word;
        }
    }

    /// Continues like another course about the same keys.
    fn go_on(&self, course: &mut Course, rng: &mut Rng) {
        let Some((key, until)) = last(course) else {
            return;
        };
        let alike: Vec<_> = self
            .courses
            .iter()
            .filter(|other| last(other).is_some_and(|(its, _)| its == key))
            .collect();
        if alike.is_empty() {
            return;
        }
        let other = *rng.pick(&alike);
        let first = other.steps.iter().find_map(|(step, _)| match step {
            Step::Call { clock, .. } => Some(*clock),
            _ => None,
        });
        let later = until + *rng.pick(&[1, 16, 1_000, 60_000_000]) - first.unwrap_or_default();
        let moved = if rng.permille(700) { later } else { 0 };
        course.steps.extend(other.steps.iter().map(|(step, _)| {
            let mut step = step.clone();
            if let Step::Call { clock, .. } = &mut step {
                *clock += moved;
            }
            (step, Vec::new())
        }));
    }

    /// Inserts a call of another course, on the keys of this one.
    fn also(&self, course: &mut Course, rng: &mut Rng) {
        let other = *rng.pick(&self.courses);
        let from = *rng.pick(&calls(other));
        let at = *rng.pick(&calls(course));
        let mut step = other.steps[from].0.clone();
        let Step::Call {
            keys: here,
            clock: when,
            ..
        } = &course.steps[at].0
        else {
            unreachable!("these are calls")
        };
        if let Step::Call { keys, clock, .. } = &mut step {
            if keys.len() == here.len() {
                keys.clone_from(here);
            }
            *clock = *when;
        }
        course.steps.insert(at, (step, Vec::new()));
    }
}

/// The first key of the last call, and its time.
fn last(course: &Course) -> Option<(&[u8], i64)> {
    course.steps.iter().rev().find_map(|(step, _)| match step {
        Step::Call { keys, clock, .. } => Some((keys.first()?.as_slice(), *clock)),
        _ => None,
    })
}

fn calls(course: &Course) -> Vec<usize> {
    let steps = course.steps.iter().enumerate();
    let calls = steps.filter(|(_, (step, _))| matches!(step, Step::Call { .. }));
    calls.map(|(at, _)| at).collect()
}

/// Repeats a call, at once or after all others.
fn again(course: &mut Course, rng: &mut Rng) {
    let calls = calls(course);
    let at = *rng.pick(&calls);
    let mut step = course.steps[at].0.clone();
    if rng.permille(500) {
        course.steps.insert(at + 1, (step, Vec::new()));
        return;
    }
    if let (Step::Call { clock, .. }, Some((_, until))) = (&mut step, last(course)) {
        *clock = until + *rng.pick(&[1, 16, 1_000, 21_000, 1_000_000, 60_000_000]);
    }
    course.steps.push((step, Vec::new()));
}

/// Removes a step.
fn without(course: &mut Course, rng: &mut Rng) {
    let at = usize::try_from(rng.below(course.steps.len() as u64)).unwrap();
    if course.steps.len() > 1 {
        course.steps.remove(at);
    }
}
