//! A copy of the sources, in which they may be changed. The user's own are only read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sources;
use crate::table::Change;

/// The copy. Cargo tells by times what to build anew, so a file is written only where it differs, with the time of writing.
#[derive(Debug)]
pub(crate) struct Copy {
    root: PathBuf,
    /// Files that are changed at the moment, as they were.
    before: Vec<(PathBuf, String)>,
}

impl Copy {
    /// Makes the copy what the sources are: all that git knows or would add.
    pub(crate) fn of(from: &Path, root: PathBuf) -> Result<Self, String> {
        let listed = Command::new("git")
            .arg("-C")
            .arg(from)
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .output()
            .map_err(|error| format!("git: {error}"))?;
        if !listed.status.success() {
            return Err(format!(
                "git ls-files: {}",
                String::from_utf8_lossy(&listed.stderr).trim()
            ));
        }
        let text = String::from_utf8_lossy(&listed.stdout);
        let files: BTreeSet<PathBuf> = text
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
            .filter(|name| from.join(name).is_file())
            .collect();
        fs::create_dir_all(&root).map_err(at(&root))?;
        remove_others(&root, &root, &files)?;
        let copy = Self {
            root,
            before: Vec::new(),
        };
        for file in &files {
            copy.bring(from, file)?;
        }
        Ok(copy)
    }

    /// Where it is.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the changes.
    pub(crate) fn change(&mut self, changes: &[Change]) -> Result<(), String> {
        for change in changes {
            let text = sources::changed(&self.root, change)?;
            let path = self.root.join(&change.file);
            let before = fs::read_to_string(&path).map_err(at(&path))?;
            self.before.push((path.clone(), before));
            fs::write(&path, text).map_err(at(&path))?;
        }
        Ok(())
    }

    /// Takes all changes out again, whatever has become of the sources meanwhile.
    pub(crate) fn restore(&mut self) -> Result<(), String> {
        while let Some((path, before)) = self.before.pop() {
            fs::write(&path, before).map_err(at(&path))?;
        }
        Ok(())
    }

    fn bring(&self, from: &Path, file: &Path) -> Result<(), String> {
        let (from, to) = (from.join(file), self.root.join(file));
        let contents = fs::read(&from).map_err(at(&from))?;
        if fs::read(&to).is_ok_and(|there| there == contents) {
            return Ok(());
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(at(folder))?;
        }
        fs::write(&to, contents).map_err(at(&to))?;
        let rights = fs::metadata(&from).map_err(at(&from))?.permissions();
        fs::set_permissions(&to, rights).map_err(at(&to))
    }
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

/// Removes what an earlier copy had and the sources have not.
fn remove_others(root: &Path, folder: &Path, files: &BTreeSet<PathBuf>) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        if path.is_dir() {
            remove_others(root, &path, files)?;
        } else if !path.strip_prefix(root).is_ok_and(|it| files.contains(it)) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
    }
    Ok(())
}
