//! Digests of sources, which change when they do and not when they are committed.

use std::path::{Path, PathBuf};
use std::process::Command;

use bench_harness::shared::provenance::detect::STATUS_OF_WHAT_IS_BUILT;

mod built_with;

/// Which versions of others' packages there are, and how everything is compiled. A result may be about these as about sources.
pub(crate) const DEPENDENCIES: &str = "Cargo.lock";

/// What begins so is left out, although a folder that is named has it in it. Git writes it so, too.
pub(crate) const BUT: &str = ":!";

/// A digest of these files and folders, but for those that are [left out](BUT), and of what they are
/// [built with](built_with::with_manifests): of the path and the content of each file; of lock files and manifests only of what
/// [a build takes from them](built_with::part).
///
/// # Errors
///
/// If one cannot be read.
pub(crate) fn digest(root: &Path, about: &[&str]) -> Result<String, String> {
    let named: Vec<&str> = about
        .iter()
        .copied()
        .filter(|path| !path.starts_with(BUT))
        .collect();
    let mut files = Vec::new();
    for path in built_with::with_manifests(root, &named) {
        list(root, &path, &mut files)?;
    }
    files.retain(|file| !is_left_out(about, file));
    files.sort();
    files.dedup();
    let mut digest = sha1_smol::Sha1::new();
    for file in files {
        let content = std::fs::read(root.join(&file))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let part = built_with::part(&file, &String::from_utf8_lossy(&content));
        let content = part.map_or(content, String::into_bytes);
        let name = file.to_string_lossy();
        digest.update(format!("{name}\n{}\n", content.len()).as_bytes());
        digest.update(&content);
    }
    Ok(digest.digest().to_string()[..12].to_owned())
}

/// Whether it is [left out](BUT) of these.
pub(crate) fn is_left_out(about: &[&str], file: &Path) -> bool {
    let mut out = about.iter().filter_map(|path| path.strip_prefix(BUT));
    out.any(|path| file.starts_with(path))
}

fn list(root: &Path, path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if !root.join(path).is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(root.join(path)).map_err(failed)? {
        list(root, &path.join(entry.map_err(failed)?.file_name()), files)?;
    }
    Ok(())
}

/// The commit, if these sources are as they were committed, and so is everything else that is built or run, as measurements take it too
/// ([`STATUS_OF_WHAT_IS_BUILT`]).
///
/// # Errors
///
/// If they are not, or there is no git.
pub(crate) fn commit(root: &Path, about: &[&str]) -> Result<String, String> {
    let mut status = vec!["status", "--porcelain", "--"];
    status.extend(about);
    for status in [&status[..], &STATUS_OF_WHAT_IS_BUILT] {
        let changed = git(root, status)?;
        if !changed.is_empty() {
            return Err(format!(
                "a result needs a commit, and these have none:\n{changed}"
            ));
        }
    }
    git(root, &["rev-parse", "--short=10", "HEAD"])
}

/// Whether these sources are as they were at a commit.
///
/// # Errors
///
/// If they are not, with what changed; or there is no such commit.
pub(crate) fn unchanged_since(root: &Path, commit: &str, about: &[&str]) -> Result<(), String> {
    // Also where nothing is compared, a commit that nobody knows says nothing.
    git(root, &["cat-file", "-e", &format!("{commit}^{{commit}}")])?;
    let of_build = |path: &PathBuf| built_with::part(path, "").is_some();
    let about = built_with::with_manifests(root, about).into_iter();
    let (of_build, files): (Vec<_>, Vec<_>) = about.partition(of_build);
    let mut changed = String::new();
    // Without a path git would compare everything.
    if !files.is_empty() {
        let mut diff = vec!["diff", "--stat", commit, "--"];
        diff.extend(files.iter().filter_map(|path| path.to_str()));
        changed = git(root, &diff)?;
    }
    for path in of_build {
        let name = path.display();
        // One that there was not yet is another one.
        let then = git(root, &["show", &format!("{commit}:{name}")]).unwrap_or_default();
        let now = std::fs::read_to_string(root.join(&path))
            .map_err(|error| format!("{name}: {error}"))?;
        if built_with::part(&path, &then) != built_with::part(&path, &now) {
            changed.push_str(&format!("\nwhat a build takes from {name}"));
        }
    }
    match changed.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "what is kept was made at {commit}, and these are others since:\n{changed}"
        )),
    }
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[cfg(test)]
mod versions;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;
    use crate::repository::Repository;

    #[test]
    fn a_digest_changes_with_content_and_names() {
        let root = std::env::temp_dir().join(format!("locktopus-prove-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/one"), "1").unwrap();
        let first = digest(&root, &["a"]).unwrap();
        assert_eq!(digest(&root, &["a/b/one", "a"]).unwrap(), first);
        std::fs::write(root.join("a/b/one"), "2").unwrap();
        let second = digest(&root, &["a"]).unwrap();
        std::fs::rename(root.join("a/b/one"), root.join("a/b/two")).unwrap();
        let third = digest(&root, &["a"]).unwrap();
        assert!(first != second && second != third);
        assert!(digest(&root, &["b"]).is_err());
        // What is left out may be anything, and nothing else may.
        std::fs::write(root.join("a/out"), "1").unwrap();
        assert_ne!(digest(&root, &["a"]).unwrap(), third);
        assert_eq!(digest(&root, &["a", ":!a/out"]).unwrap(), third);
        std::fs::write(root.join("a/b/two"), "3").unwrap();
        assert_ne!(digest(&root, &["a", ":!a/out"]).unwrap(), third);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn sources_are_others_once_they_changed() {
        let repository = Repository::new("sources");
        let root = &repository.root;
        let first = repository.commit(&[("kept/a", "1"), ("others/b", "1")]);
        unchanged_since(root, &first, &["kept", "others/b"]).unwrap();

        let second = repository.commit(&[("others/b", "2")]);
        unchanged_since(root, &first, &["kept"]).unwrap();
        let told = unchanged_since(root, &first, &["kept", "others"]).unwrap_err();
        assert!(told.contains(&first) && told.contains("others/b"), "{told}");

        unchanged_since(root, &first, &["kept", "others", ":!others/b"]).unwrap();

        // Nor need it be committed.
        std::fs::write(root.join("kept/a"), "2").unwrap();
        assert!(unchanged_since(root, &second, &["kept"]).is_err());
        unchanged_since(root, &second, &["others"]).unwrap();
        assert!(unchanged_since(root, "0123456", &["others"]).is_err());
        // Nothing is compared, and yet nobody knows it.
        unchanged_since(root, &second, &[]).unwrap();
        assert!(unchanged_since(root, "0123456", &[]).is_err());
    }
}
