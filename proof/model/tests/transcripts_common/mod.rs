//! Writes transcripts, and makes them from random calls.

pub(crate) mod grow;
mod pool;
mod vary;

use std::collections::BTreeMap;

use locktopus_model::transcripts::course::{Course, parse, to_text};
use locktopus_model::transcripts::{folder, texts};

/// Every recorded course.
pub(crate) fn written() -> Vec<Course> {
    let texts = texts().unwrap();
    texts.iter().flat_map(|text| parse(text)).collect()
}

/// Writes courses to the files of their parts, which their `why` begins with; only the `wanted`
/// parts.
pub(crate) fn write(courses: &[Course], wanted: impl Fn(&str) -> bool) {
    let mut files: BTreeMap<&str, Vec<Course>> = BTreeMap::new();
    for course in courses {
        let (part, _) = course.why.split_once(": ").unwrap();
        files.entry(part).or_default().push(course.clone());
    }
    for (part, courses) in files.into_iter().filter(|(part, _)| wanted(part)) {
        // For a script that nothing else calls, the part is the script's name, without the ending
        // of a file.
        let name = format!("{}.txt", part.trim_end_matches(".lua").replace('/', "_"));
        std::fs::write(folder().join(name), to_text(&courses)).unwrap();
    }
}
