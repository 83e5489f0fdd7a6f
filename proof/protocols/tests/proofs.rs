//! Every model as shipped holds, leaving any rule out breaks it, and proof/protocols/README.md says
//! so.
//!
//! `LOCKTOPUS_PROOFS=all` adds the runs that take too long for each change.

use locktopus_proofs::{catalogue, page};

fn written() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let text = std::fs::read_to_string(path).expect("the page is there");
    let places = text.find(page::BEGIN).zip(text.find(page::END));
    let (begin, end) = places.expect("it has a place for the tables");
    text[begin..end].to_owned()
}

fn prove(model: &str) {
    let everything = std::env::var("LOCKTOPUS_PROOFS").is_ok_and(|value| value == "all");
    let page = written();
    let cases: Vec<_> = catalogue::all()
        .into_iter()
        .filter(|case| case.model == model)
        .collect();
    assert!(cases.iter().any(|case| case.without.is_none()));
    assert!(cases.iter().any(|case| case.without.is_some()));
    for case in cases.iter().filter(|case| everything || !case.long) {
        let outcome = case.run();
        if let Err(what) = case.judge(&outcome) {
            panic!("{what}");
        }
        if let Some(broken) = &outcome.broken {
            println!("{}: without {:?}: {:#?}", case.model, case.without, broken);
        }
        let row = page::row(case, &outcome);
        assert!(
            page.lines().any(|line| line == row),
            "proof/protocols/README.md is not up to date: run cargo run -p locktopus-proofs -- --write protocols/README.md; it lacks\n{row}"
        );
    }
}

#[test]
fn hand_off() {
    prove("hand-off");
}

#[test]
fn quarantine() {
    prove("quarantine");
}

#[test]
fn quorum() {
    prove("quorum");
}

#[test]
fn the_page_has_a_row_for_each_run_and_no_other() {
    let models = ["hand-off", "quarantine", "quorum"];
    let cases = catalogue::all();
    assert!(cases.iter().all(|case| models.contains(&case.model)));
    let page = written();
    let starts = models.map(|model| format!("| {model} |"));
    let is_row = |line: &&str| starts.iter().any(|start| line.starts_with(start));
    assert_eq!(page.lines().filter(is_row).count(), cases.len());
}
