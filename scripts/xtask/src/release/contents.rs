//! A list of each crate's dependencies (SBOM).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Release;
use super::checks::ensure_command;
use crate::failure::{Done, fail};
use crate::shell::{Shell, say};
use crate::{files, running};

const NAME: &str = "sbom.json";

impl Release<'_> {
    pub(super) fn list_contents(&self) -> Done {
        let folders: Vec<_> = self.names().map(|name| self.folder_of(name)).collect();
        for (name, list) in self.names().zip(lists(self.sh, &["--all-features"], &folders)?) {
            fs::write(self.target.join(format!("package/{name}-{}.cdx.json", self.version)), list)?;
        }
        say(format!("{} lists of contents", self.packages.len()));
        Ok(())
    }
}

/// A list for the crate in each of these folders, as CycloneDX JSON.
pub(crate) fn lists(
    sh: &Shell,
    options: &[&str],
    folders: &[impl AsRef<Path>],
) -> Done<Vec<String>> {
    ensure_command(sh, "cyclonedx")?;
    // cargo puts them beside each manifest, also of unpublished crates.
    let root = sh.root.clone();
    running::at_end(move || remove_lists(&root));
    sh.cmd("cargo")
        .args(["cyclonedx", "--format", "json", "--override-filename", "sbom"])
        .args(options)
        .run()?;
    let mut found = Vec::new();
    for folder in folders {
        let file = sh.root.join(folder).join(NAME);
        let text = from_the_index(&fs::read_to_string(&file)?, &sh.root);
        let parsed: Value = serde_json::from_str(&text)?;
        if parsed["components"].as_array().is_none_or(Vec::is_empty) {
            fail!("{} names no dependency", file.display());
        } else if text.contains("file:") {
            fail!("{} names files of this machine", file.display());
        }
        found.push(text);
    }
    // Files beside a manifest are packed, and git does not ignore these.
    remove_lists(&sh.root);
    Ok(found)
}

fn remove_lists(root: &Path) {
    let folders = ["crates", "testing", "bench-harness", "examples", "scripts"]
        .map(|folder| root.join(folder));
    let lists = folders.iter().filter_map(|folder| files::below(folder, NAME).ok()).flatten();
    lists.for_each(|list: PathBuf| drop(fs::remove_file(list)));
}

/// Our own crates come from the registry too, not from the folder where this was built.
fn from_the_index(list: &str, root: &Path) -> String {
    let ours = format!("path+file://{}/", root.display());
    let mut pieces = list.split(&ours);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        // `crates/NAME#VERSION`, or `testing/FOLDER#NAME@VERSION`.
        let end = piece.find(['"', ' ']).unwrap_or(piece.len());
        let (place, version) = piece[..end].split_once('#').unwrap_or((&piece[..end], ""));
        let name = place.rsplit('/').next().unwrap_or_default();
        let named =
            if version.contains('@') { version.to_owned() } else { format!("{name}@{version}") };
        text += &format!(
            "registry+https://github.com/rust-lang/crates.io-index#{named}{}",
            &piece[end..]
        );
    }
    let mut pieces = text.split("?download_url=file://");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + &piece[piece.find(['"', '#']).unwrap_or(piece.len())..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_list_says_where_it_was_made() {
        let list = r#"{"a":"path+file:///r/crates/one-a#1.2.3 bin","b":"path+file:///r/testing/c#one-c@1.2.3","c":"pkg:cargo/x@1?download_url=file:///r/x#y"}"#;
        let index = "registry+https://github.com/rust-lang/crates.io-index";
        let expected = format!(
            r##"{{"a":"{index}#one-a@1.2.3 bin","b":"{index}#one-c@1.2.3","c":"pkg:cargo/x@1#y"}}"##
        );
        assert_eq!(from_the_index(list, Path::new("/r")), expected);
    }
}
