//! The preprocessor that `docs/book/book.toml` names: mdBook passes it the book as JSON, and reads
//! it back.
//!
//! First mdBook runs `locktopus-pages supports RENDERER`, which succeeds for every renderer.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use locktopus_pages::{Book, REPOSITORY_URL, Repository};
use serde_json::Value;

/// The folder of the chapters, `src` in `book.toml`.
const SOURCE: &str = "docs";

fn main() -> ExitCode {
    if std::env::args()
        .nth(1)
        .is_some_and(|first| first == "supports")
    {
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    let (_context, mut content): (Value, Value) = serde_json::from_str(&input)?;
    let mut chapters = BTreeSet::new();
    each_chapter(&mut content, &mut |path, _| {
        chapters.insert(path.to_owned());
    });
    if chapters.is_empty() {
        return Err("mdBook gave no chapter".into());
    }
    let book = Book {
        source: SOURCE.into(),
        chapters,
        repository_url: REPOSITORY_URL.to_owned(),
    };
    let mut repository = Repository::this();
    let mut wrong = Vec::new();
    each_chapter(
        &mut content,
        &mut |path, text| match book.prepare(&mut repository, path, text) {
            Ok(prepared) => *text = prepared,
            Err(errors) => wrong.extend(errors),
        },
    );
    if !wrong.is_empty() {
        return Err(wrong.join("\n").into());
    }
    io::stdout().write_all(serde_json::to_string(&content)?.as_bytes())?;
    Ok(())
}

/// Every chapter with its file, from the root of the repository, and its text.
fn each_chapter(value: &mut Value, what: &mut impl FnMut(&Path, &mut String)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_chapter(item, what)),
        Value::Object(fields) => {
            if let Some(path) = fields.get("source_path").and_then(Value::as_str) {
                let path: PathBuf = Path::new(SOURCE).join(path);
                if let Some(Value::String(text)) = fields.get_mut("content") {
                    what(&path, text);
                }
            }
            for name in ["items", "sub_items", "Chapter"] {
                if let Some(inside) = fields.get_mut(name) {
                    each_chapter(inside, what);
                }
            }
        }
        _ => {}
    }
}
