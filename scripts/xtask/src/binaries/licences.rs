//! Licences of the crates linked into a program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::Program;
use super::platform::Platform;
use crate::failure::{Done, fail};
use crate::shell::Shell;

/// Rust's musl targets link it, and its licence requires this notice.
const MUSL: &str = "\
musl, the C library (MIT)

Copyright © 2005-2020 Rich Felker, et al.

The file COPYRIGHT of musl names its other authors, and the permission is that of LICENSE-MIT.
";

/// A crate and its licence texts.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    licence: String,
    texts: Vec<String>,
}

/// Lists the linked crates, then each licence text once with the crates that use it.
pub(super) fn third_party(sh: &Shell, platform: Platform, program: &Program) -> Done<String> {
    let tree = sh.cargo("tree").args(["--package", program.package]).args([
        "--target",
        &platform.triple(),
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
    ]);
    let tree = tree.read()?;
    let linked: BTreeSet<_> = tree.lines().filter_map(name_and_version).collect();
    let metadata = sh.cargo("metadata").args(["--format-version", "1"]);
    let metadata: Value =
        serde_json::from_str(&metadata.args(["--filter-platform", &platform.triple()]).read()?)?;
    let mut crates = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        let name = format!("{} {}", text("name"), text("version"));
        // Only our own crates have no source.
        if package["source"].is_null() || !linked.contains(&name) {
            continue;
        }
        let manifest = text("manifest_path");
        let folder = Path::new(&manifest).parent().unwrap_or(&sh.root);
        crates.push(Crate { name, licence: text("license"), texts: texts_in(folder)? });
    }
    if crates.is_empty() {
        fail!("cargo names no crate that {} depends on", program.name);
    }
    crates.sort();
    Ok(page(program.name, &crates))
}

/// Parses a line such as `ring v0.17.14 (*)`.
fn name_and_version(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some(format!("{name} {version}"))
}

fn texts_in(folder: &Path) -> Done<Vec<String>> {
    let mut texts = Vec::new();
    let mut files: Vec<_> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.is_file()) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"]
            .iter()
            .any(|one| name.starts_with(one))
        {
            texts.push(
                String::from_utf8_lossy(&fs::read(file)?).replace('\r', "").trim().to_owned(),
            );
        }
    }
    Ok(texts)
}

fn page(program: &str, crates: &[Crate]) -> String {
    let mut page = format!("{program} contains these crates. Their licences follow.\n\n");
    let mut texts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in crates {
        page += &format!("{} ({})\n", one.name, one.licence);
        for text in &one.texts {
            texts.entry(text).or_default().push(&one.name);
        }
    }
    let rule = "-".repeat(80);
    for (text, names) in texts {
        page += &format!("\n{rule}\n{}\n\n{text}\n", names.join(", "));
    }
    page + &format!("\n{rule}\n{MUSL}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::shell;

    #[test]
    fn a_text_is_there_once() {
        let of = |name: &str, texts: &[&str]| Crate {
            name: name.to_owned(),
            licence: "MIT".to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        let page =
            page("x", &[of("a 1", &["same", "other"]), of("b 2", &["same"]), of("c 3", &[])]);
        assert!(page.contains("a 1 (MIT)\nb 2 (MIT)\nc 3 (MIT)\n"), "{page}");
        assert!(
            page.contains("\na 1, b 2\n\nsame\n") && page.contains("\na 1\n\nother\n"),
            "{page}"
        );
        assert!(page.contains("Rich Felker"));
    }

    #[test]
    fn texts_are_found_by_their_names() {
        let folder = shell().scratch().unwrap().join("crate");
        fs::create_dir_all(folder.join("LICENSES")).unwrap();
        for (name, text) in [("LICENSE-MIT", "a\r\nb\r\n"), ("license.txt", " b"), ("README", "c")]
        {
            fs::write(folder.join(name), text).unwrap();
        }
        assert_eq!(texts_in(&folder).unwrap(), ["a\nb", "b"]);
        fs::remove_dir_all(folder.parent().unwrap()).unwrap();
        assert_eq!(name_and_version("ring v0.17.14 (*)").unwrap(), "ring 0.17.14");
        assert_eq!(name_and_version(""), None);
    }
}
