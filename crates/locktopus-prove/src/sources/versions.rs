//! Tests of what results say of others' packages, and of the commit that they name.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use super::*;

const LOCK: &str = r#"# made by cargo
version = 4

[[package]]
name = "locktopus-core"
version = "0.1.0"
dependencies = [
 "tokio",
]

[[package]]
name = "tokio"
version = "1.47.0"
source = "registry+https://example.org"
checksum = "00"
dependencies = [
 "bytes",
]
"#;

/// A result of another version of a client library is about another program.
#[test]
fn versions_of_others_are_told_and_what_own_crates_name_is_not() {
    let root = std::env::temp_dir().join(format!("locktopus-prove-lock-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    let of = |lock: &str| {
        std::fs::write(root.join(DEPENDENCIES), lock).unwrap();
        digest(&root, &[DEPENDENCIES]).unwrap()
    };
    let first = of(LOCK);
    assert_ne!(first, of(&LOCK.replace("1.47.0", "1.48.0")));
    assert_ne!(first, of(&LOCK.replace("\"00\"", "\"01\"")));
    assert_ne!(
        first,
        of(LOCK.split_once("[[package]]\nname = \"tokio").unwrap().0)
    );
    let own = LOCK.replacen("dependencies = [", "dependencies = [\n \"loom\",", 1);
    assert_eq!(first, of(&own.replace("0.1.0", "0.2.0")));

    // As it was at a commit.
    let run = |arguments: &[&str]| git(&root, arguments).unwrap();
    run(&["init", "--quiet"]);
    of(LOCK);
    run(&["add", "."]);
    let author = ["-c", "user.name=a", "-c", "user.email=a@b"];
    run(&[&author[..], &["commit", "--quiet", "--message", "first"]].concat());
    let commit = run(&["rev-parse", "HEAD"]);
    of(&own);
    unchanged_since(&root, &commit, &[DEPENDENCIES]).unwrap();
    of(&LOCK.replace("1.47.0", "1.48.0"));
    let told = unchanged_since(&root, &commit, &[DEPENDENCIES]).unwrap_err();
    assert!(
        told.contains("what a build takes from Cargo.lock"),
        "{told}"
    );
    std::fs::remove_dir_all(root).unwrap();
}

/// What is built of sources that are not committed is not of the commit, whichever of them a level speaks about.
#[test]
fn a_result_is_of_a_commit_as_it_is() {
    let root = std::env::temp_dir().join(format!("locktopus-prove-commit-{}", std::process::id()));
    std::fs::create_dir_all(root.join("docs")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
    let run = |arguments: &[&str]| git(&root, arguments).unwrap();
    run(&["init", "--quiet"]);
    let names = ["about.rs", "other.rs", "docs/testing.json"];
    names.iter().for_each(|name| write(name, "1"));
    run(&["add", "."]);
    let author = ["-c", "user.name=a", "-c", "user.email=a@b"];
    run(&[&author[..], &["commit", "--quiet", "--message", "first"]].concat());
    let fine = commit(&root, &["about.rs"]).unwrap();
    // What was not run yet, and what nobody builds.
    write("docs/testing.json", "2");
    write("notes", "1");
    assert_eq!(commit(&root, &["about.rs"]).unwrap(), fine);
    for name in ["about.rs", "other.rs"] {
        write(name, "2");
        let told = commit(&root, &["about.rs"]).unwrap_err();
        assert!(told.contains(name), "{told}");
        write(name, "1");
    }
    assert!(commit(&root, &["about.rs", "notes"]).is_err());
    std::fs::remove_dir_all(root).unwrap();
}
