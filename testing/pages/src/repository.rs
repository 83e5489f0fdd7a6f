//! Finds where the links of a page lead in the repository.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::links::{Link, anchors, links};

/// The web address of the repository, from the workspace.
pub const REPOSITORY_URL: &str = env!("CARGO_PKG_REPOSITORY");

/// The files of the repository, as links of its pages see them.
#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
    anchors: HashMap<PathBuf, BTreeSet<String>>,
}

/// The target of a link.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// Another site, or this page itself.
    Elsewhere,
    /// A file or folder, relative to the root, and the fragment after `#`.
    Inside(PathBuf, Option<String>),
}

impl Repository {
    /// The repository that this crate was built in.
    #[must_use]
    pub fn this() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Self {
            root: normal(&root),
            anchors: HashMap::new(),
        }
    }

    /// The folder of the repository.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The target of a link on a page.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong: no such file, or no such heading in it.
    pub fn place(&mut self, page: &Path, target: &str) -> Result<Place, String> {
        let ours = from_root(target);
        if ours.is_none() && (target.contains("://") || target.starts_with("mailto:")) {
            return Ok(Place::Elsewhere);
        }
        let (path, fragment) = match ours.unwrap_or(target).split_once('#') {
            Some((path, fragment)) => (path, Some(fragment)),
            None => (ours.unwrap_or(target), None),
        };
        let file = if path.is_empty() {
            page.to_owned()
        } else if ours.is_some() {
            normal(Path::new(path))
        } else {
            normal(&page.parent().unwrap_or_else(|| Path::new("")).join(path))
        };
        if file.starts_with("..") || !self.root.join(&file).exists() {
            return Err(format!("{}: {target} leads to nothing", page.display()));
        }
        if let Some(fragment) = fragment
            && file.extension().is_some_and(|extension| extension == "md")
            && !self.anchors_of(&file)?.contains(fragment)
        {
            return Err(format!("{}: {target} has no such heading", page.display()));
        }
        // An absolute address stays as it is.
        Ok(if path.is_empty() || ours.is_some() {
            Place::Elsewhere
        } else {
            Place::Inside(file, fragment.map(str::to_owned))
        })
    }

    /// The dead links of a page, each as a sentence.
    pub fn dead_links(&mut self, page: &Path) -> Vec<String> {
        let text = match self.read(page) {
            Ok(text) => text,
            Err(error) => return vec![error],
        };
        let all: Vec<Link> = links(&text);
        all.iter()
            .filter_map(|link| self.place(page, &link.target).err())
            .collect()
    }

    /// The text of a file.
    ///
    /// # Errors
    ///
    /// Names the file that cannot be read, and why.
    pub fn read(&self, file: &Path) -> Result<String, String> {
        fs::read_to_string(self.root.join(file))
            .map_err(|error| format!("{}: {error}", file.display()))
    }

    fn anchors_of(&mut self, file: &Path) -> Result<&BTreeSet<String>, String> {
        if !self.anchors.contains_key(file) {
            let found = anchors(&self.read(file)?);
            self.anchors.insert(file.to_owned(), found);
        }
        Ok(&self.anchors[file])
    }
}

/// The path in an absolute address of a file or folder of this repository, which pages use if they
/// are also read elsewhere.
fn from_root(target: &str) -> Option<&str> {
    let path = target.strip_prefix(REPOSITORY_URL)?;
    ["/blob/main/", "/tree/main/"]
        .iter()
        .find_map(|sort| path.strip_prefix(sort))
}

/// The path without `.` and `..`, except at its start.
fn normal(path: &Path) -> PathBuf {
    let mut parts: Vec<Component<'_>> = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(parts.last(), Some(Component::Normal(_))) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_must_lead_somewhere() {
        let mut repository = Repository::this();
        let page = Path::new("docs/fencing.md");
        let inside = Place::Inside("docs/glossary.md".into(), Some("fencing".to_owned()));
        assert_eq!(repository.place(page, "glossary.md#fencing"), Ok(inside));
        assert_eq!(
            repository.place(page, "https://redis.io"),
            Ok(Place::Elsewhere)
        );
        assert_eq!(repository.place(page, "#the-rules"), Ok(Place::Elsewhere));
        for wrong in ["nothing.md", "glossary.md#nothing", "#nothing", "../../x"] {
            assert!(repository.place(page, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn whole_addresses_of_this_repository_are_looked_up_too() {
        let mut repository = Repository::this();
        let mut place = |path: &str| {
            repository.place(Path::new("README.md"), &format!("{REPOSITORY_URL}/{path}"))
        };
        assert_eq!(
            place("blob/main/docs/glossary.md#fencing"),
            Ok(Place::Elsewhere)
        );
        assert_eq!(place("tree/main/docs"), Ok(Place::Elsewhere));
        assert_eq!(place("issues"), Ok(Place::Elsewhere));
        assert!(place("blob/main/nothing.md").is_err());
        assert!(place("blob/main/docs/glossary.md#nothing").is_err());
    }
}
