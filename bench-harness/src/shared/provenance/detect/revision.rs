//! The commit that the running program was built from.
//!
//! The program asks when it runs, not when it is built: a build that knows its commit has to be
//! repeated after every commit, and the release build of this package takes minutes. Cargo leaves
//! the list of source files beside the program, which shows whether one of them has changed since.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The git arguments that list uncommitted changes in everything that is built or run. Pages of
/// figures are written between measurements and no build reads them, so they do not count.
pub const STATUS_OF_WHAT_IS_BUILT: [&str; 6] = [
    "status",
    "--porcelain",
    "--untracked-files=no",
    "--",
    ".",
    ":(exclude)docs",
];

/// `git describe` of the checkout that this program was built in, if the program still matches it.
///
/// It ends with `-dirty` if [`STATUS_OF_WHAT_IS_BUILT`] shows uncommitted changes, and with
/// `-stale` if a source file is newer than the program, so the commit says nothing about it. `None`
/// without git, without a checkout, or without cargo's list.
pub(super) fn revision() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let program = std::env::current_exe().ok()?;
    let list = std::fs::read_to_string(program.with_extension("d")).ok()?;
    let built = program.metadata().and_then(|data| data.modified()).ok()?;
    let described = describe(root)?;
    Some(match changed_since(built, root, &list) {
        None => described,
        Some(_) => format!("{described}-stale"),
    })
}

fn describe(root: &Path) -> Option<String> {
    let commit = git(root, &["describe", "--always", "--tags"])?;
    let changed = git(root, &STATUS_OF_WHAT_IS_BUILT)?;
    Some(if changed.is_empty() {
        commit
    } else {
        format!("{commit}-dirty")
    })
}

/// The output of git in `root`.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// A file of cargo's list that was written after `built`, or is gone.
fn changed_since(built: SystemTime, root: &Path, list: &str) -> Option<PathBuf> {
    sources(list)
        .map(|source| root.join(source))
        .find(|source| {
            let written = source.metadata().and_then(|data| data.modified());
            !written.is_ok_and(|at| at <= built)
        })
}

/// The files after the colon of each line. The format is that of make: a space in a name follows a
/// backslash.
fn sources(list: &str) -> impl Iterator<Item = String> {
    list.lines()
        .filter_map(|line| line.split_once(": "))
        .flat_map(|(_, files)| split_names(files))
}

fn split_names(files: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut escaped = false;
    for letter in files.chars() {
        match letter {
            '\\' if !escaped => escaped = true,
            ' ' if !escaped => names.push(String::new()),
            _ => {
                if escaped && letter != ' ' {
                    names.last_mut().expect("there is always one").push('\\');
                }
                names.last_mut().expect("there is always one").push(letter);
                escaped = false;
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn names_are_split_at_spaces_without_a_backslash() {
        let list = "/t/program: /a/b.rs /a/c\\ d.rs src/e.lua\n\nno colon here\n/t/other: f\n";
        let found: Vec<String> = sources(list).collect();
        assert_eq!(found, ["/a/b.rs", "/a/c d.rs", "src/e.lua", "f"]);
    }

    #[test]
    fn what_is_not_committed_is_told_unless_it_is_in_the_docs() {
        let root = std::env::temp_dir().join(format!("locktopus-revision-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        let root = root.as_path();
        let run = |arguments: &[&str]| git(root, arguments).unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
        run(&["init", "--quiet"]);
        std::fs::create_dir(root.join("docs")).unwrap();
        write("lib.rs", "");
        write("docs/page.md", "");
        run(&["add", "."]);
        // These override the user's own settings, such as keys and hooks.
        let own = [
            "user.name=a",
            "user.email=a@b",
            "commit.gpgsign=false",
            "core.hooksPath=/dev/null",
        ];
        let own: Vec<&str> = own.into_iter().flat_map(|set| ["-c", set]).collect();
        run(&[&own[..], &["commit", "--quiet", "--message", "first"]].concat());
        let commit = describe(root).unwrap();
        assert!(!commit.ends_with("-dirty"), "{commit}");
        write("docs/page.md", "figures");
        assert_eq!(describe(root).unwrap(), commit);
        write("lib.rs", "fn changed() {}");
        assert_eq!(describe(root).unwrap(), format!("{commit}-dirty"));
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_program_is_stale_when_a_source_is_newer_or_gone() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let list = "program: Cargo.toml src/lib.rs";
        let newest = ["Cargo.toml", "src/lib.rs"]
            .map(|name| root.join(name).metadata().unwrap().modified().unwrap())
            .into_iter()
            .max()
            .unwrap();
        assert_eq!(changed_since(newest, root, list), None);
        let before = newest - Duration::from_nanos(1);
        assert!(changed_since(before, root, list).is_some());
        let gone = changed_since(newest, root, "program: src/lib.rs src/no.rs");
        assert_eq!(gone, Some(root.join("src/no.rs")));
    }
}
