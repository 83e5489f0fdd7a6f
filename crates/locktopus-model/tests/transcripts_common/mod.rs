//! Where the transcripts are, and how they are read, played and written.

pub(crate) mod course;
pub(crate) mod grow;
pub(crate) mod play;
mod pool;
mod twist;

use std::collections::BTreeMap;
use std::path::PathBuf;

use course::{Course, parse, to_text};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// Every course that is written down.
pub(crate) fn written() -> Vec<Course> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "txt"));
    files.sort();
    let texts = files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap());
    texts.flat_map(|text| parse(&text)).collect()
}

/// Writes them down, each in the file that is about the part of scripts that its `why` begins with; only of those parts that
/// are `wanted`.
pub(crate) fn write(courses: &[Course], wanted: impl Fn(&str) -> bool) {
    let mut files: BTreeMap<&str, Vec<Course>> = BTreeMap::new();
    for course in courses {
        let (part, _) = course.why.split_once(": ").unwrap();
        files.entry(part).or_default().push(course.clone());
    }
    for (part, courses) in files.into_iter().filter(|(part, _)| wanted(part)) {
        let name = part.replace('/', "_").replace(".lua", ".txt");
        std::fs::write(folder().join(name), to_text(&courses)).unwrap();
    }
}
