//! The program of this crate does with every chapter what mdBook asks for, even without mdBook.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use locktopus_pages::{REPOSITORY_URL, Repository, links};
use serde_json::{Value, json};

fn preprocessor(input: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_locktopus-pages"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = program.stdin.take().expect("it reads");
    stdin.write_all(input.as_bytes()).expect("it reads all");
    drop(stdin);
    program.wait_with_output().expect("it ends")
}

/// The input of a preprocessor: the context, and the book.
fn book(chapters: Vec<Value>) -> String {
    json!([{"renderer": "html", "mdbook_version": "0.5.4"}, {"items": chapters}]).to_string()
}

fn chapter(path: &str, content: &str) -> Value {
    json!({"Chapter": {"name": path, "content": content, "number": null, "sub_items": [], "path": path,
        "source_path": path, "parent_names": []}})
}

#[test]
fn every_chapter_is_prepared() {
    let repository = Repository::this();
    let read = |path: &str| repository.read(&Path::new("docs").join(path));
    let summary = read("SUMMARY.md").expect("a table of contents");
    let chapters: Vec<Value> = links(&summary)
        .iter()
        .map(|link| chapter(&link.target, &read(&link.target).expect("a chapter")))
        .collect();
    assert!(chapters.len() > 30, "only {} chapters", chapters.len());
    let done = preprocessor(&book(chapters.clone()));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{said}");
    let prepared: Value = serde_json::from_slice(&done.stdout).expect("a book");
    let prepared = prepared["items"].as_array().expect("chapters");
    assert_eq!(prepared.len(), chapters.len());
    let text = |chapter: &Value| {
        chapter["Chapter"]["content"]
            .as_str()
            .unwrap_or("")
            .to_owned()
    };
    for (before, after) in chapters.iter().zip(prepared) {
        assert_eq!(before["Chapter"]["path"], after["Chapter"]["path"]);
        assert!(text(before).is_empty() == text(after).is_empty());
    }
    let changed = chapters
        .iter()
        .zip(prepared)
        .filter(|(before, after)| before != after);
    assert!(
        changed.count() > 10,
        "chapters link to sources, which are no part of the book"
    );
}

#[test]
fn what_leads_out_of_the_book_leads_to_the_repository_and_what_leads_nowhere_is_refused() {
    let page = "[a](fencing.md) [b](../README.md) [c](adr/README.md)";
    let done = preprocessor(&book(vec![
        chapter("safety.md", page),
        chapter("fencing.md", ""),
    ]));
    let said = String::from_utf8(done.stdout).expect("text");
    let prepared: Value = serde_json::from_str(&said).expect("a book");
    assert_eq!(
        prepared["items"][0]["Chapter"]["content"],
        format!(
            "[a](fencing.md) [b]({REPOSITORY_URL}/blob/main/README.md) \
             [c]({REPOSITORY_URL}/blob/main/docs/adr/README.md)"
        )
    );
    for wrong in [
        book(vec![chapter("safety.md", "[a](nothing.md)")]),
        book(Vec::new()),
    ] {
        let refused = preprocessor(&wrong);
        assert!(!refused.status.success() && !refused.stderr.is_empty());
    }
}
