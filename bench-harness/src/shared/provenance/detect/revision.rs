//! The commit that the running program was built from.
//!
//! The program asks when it runs, not when it is built: a build that knows its commit has to be
//! repeated after every commit, and the release build of this package takes minutes.

use std::path::Path;
use std::process::Command;

/// `git describe` of the checkout that this program was built in, with `-dirty` at the end if
/// something was not committed. Pages of figures are written between measurements and no build
/// reads them, so they do not count. `None` without git or without a checkout.
pub(super) fn revision() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let commit = git(root, &["describe", "--always", "--tags"])?;
    let status = ["status", "--porcelain", "--untracked-files=no", "--", "."];
    let changed = git(root, &[&status[..], &[":(exclude)docs"]].concat())?;
    let dirty = if changed.is_empty() { "" } else { "-dirty" };
    Some(commit + dirty)
}

/// The output of git in `root`.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let git = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .output();
    let output = git.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned())
}
