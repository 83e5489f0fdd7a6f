//! What is kept of a run is believed for as long as it is true.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::fs::OpenOptions;
use std::io::Write as _;

use locktopus_mutants::kept::{FILE, Judges, Kept};
use locktopus_mutants::mutants::Mutant;
use locktopus_mutants::verdict::Verdict;

fn mutant(id: &str, text: &str) -> Mutant {
    Mutant {
        id: id.to_owned(),
        file: "part/now.lua".to_owned(),
        line: 1,
        operator: "constant".to_owned(),
        what: "constant: 1 -> 2".to_owned(),
        before: "1".to_owned(),
        after: "2".to_owned(),
        text: text.to_owned(),
        scripts: Vec::new(),
    }
}

fn judges(programs: &str, transcripts: &str) -> Judges {
    Judges {
        programs: programs.to_owned(),
        transcripts: transcripts.to_owned(),
    }
}

#[test]
fn a_result_holds_for_one_text_and_that_nobody_noticed_for_the_same_tests() {
    let root = std::env::temp_dir().join(format!("locktopus-kept-{}", std::process::id()));
    let killed = Verdict::Killed {
        level: "model".to_owned(),
        how: "x".repeat(1_000),
    };
    let (noticed, not) = (mutant("a", "t1"), mutant("b", "t1"));
    let path = root.join(FILE);
    let kept = Kept::open(&path, judges("one", "t"), 100, true).unwrap();
    kept.add(&noticed, &Verdict::Unnoticed).unwrap();
    kept.add(&noticed, &killed).unwrap();
    kept.add(&not, &Verdict::Alike).unwrap();
    // A run that is ended in the middle of a line.
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"id\":\"c").unwrap();

    let open =
        |programs, schedules| Kept::open(&path, judges(programs, "t"), schedules, false).unwrap();
    let same = open("one", 100);
    assert!(
        matches!(same.verdict(&noticed), Some(Verdict::Killed { how, .. }) if how.len() == 300)
    );
    assert_eq!(same.verdict(&not), Some(Verdict::Alike));
    assert_eq!(same.verdict(&mutant("a", "t2")), None);
    same.add(&mutant("d", "t1"), &Verdict::NotCalled).unwrap();
    assert_eq!(open("one", 101).verdict(&not), None);
    let written = Kept::open(&path, judges("one", "others"), 100, false).unwrap();
    assert!(written.verdict(&noticed).is_some() && written.verdict(&not).is_none());
    assert_eq!(written.beside_transcripts(&not), Some(Verdict::Alike));
    written.add(&mutant("e", "t1"), &Verdict::Unseen).unwrap();
    let again = Kept::open(&path, judges("one", "third"), 100, false).unwrap();
    assert_eq!(again.beside_transcripts(&mutant("e", "t1")), None);
    let others = open("two", 100);
    assert_eq!(others.beside_transcripts(&not), None);
    assert!(others.verdict(&noticed).is_some() && others.verdict(&not).is_none());
    assert!(open("one", 1).verdict(&mutant("d", "t1")).is_some());
    let fresh = Kept::open(&path, judges("one", "t"), 100, true).unwrap();
    assert_eq!(fresh.verdict(&noticed), None);
    std::fs::remove_dir_all(root).unwrap();
}
