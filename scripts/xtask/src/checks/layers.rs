//! Checks that no layer imports one above it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::failure::{Done, fail};
use crate::files;
use crate::shell::{Shell, say};

pub(crate) const HELP: &str = r#"Checks that no layer imports one above it.

Usage: scripts/check-layers

A `lib.rs` or `mod.rs` that says "//! Layers, lowest first: a, b|c, d." puts its modules in an order; b and c are on
the same layer and may not import each other. Modules that the line does not name are above all of them. The check compares
every `crate::` path in a module with that order. Unit tests (from `#[cfg(test)]` followed by `mod` to the end of the file,
and files called `tests.rs`) may import everything."#;

pub(crate) fn main(sh: &Shell, _: &[String]) -> Done {
    let mut found = Vec::new();
    let mut declared = 0;
    for folder in files::source_folders(sh)? {
        for file in files::below(&folder, ".rs")? {
            if !file.ends_with("lib.rs") && !file.ends_with("mod.rs") {
                continue;
            }
            if let Some(layers) = Layers::of(&file, &folder)? {
                declared += 1;
                layers.check(&mut found)?;
            }
        }
    }
    if !found.is_empty() {
        fail!("imports that go up:\n{}", found.join("\n"));
    } else if declared == 0 {
        fail!("no crate declares its layers: nothing was checked");
    }
    say(format!("no import goes up in {declared} layered modules"));
    Ok(())
}

/// The order that one file declares for the modules beside it.
struct Layers<'a> {
    file: &'a Path,
    folder: &'a Path,
    /// The path of the module inside its crate: `crate::engine::` for src/engine/mod.rs.
    prefix: String,
    ranks: BTreeMap<String, usize>,
}

impl<'a> Layers<'a> {
    fn of(file: &'a Path, source: &Path) -> Done<Option<Self>> {
        let text = fs::read_to_string(file)?;
        let words: Vec<_> = text.split_whitespace().filter(|word| *word != "//!").collect();
        let text = words.join(" ");
        let Some((list, _)) =
            text.split_once("Layers, lowest first: ").and_then(|(_, rest)| rest.split_once('.'))
        else {
            return Ok(None);
        };
        if !list.chars().all(|letter| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_,| ".contains(letter)
        }) {
            return Ok(None);
        }
        let ranks = list.split(',').enumerate().flat_map(|(rank, names)| {
            names.split('|').map(move |name| (name.trim().to_owned(), rank))
        });
        let folder = file.parent().unwrap_or(file);
        let inside = folder
            .strip_prefix(source)?
            .components()
            .map(|part| part.as_os_str().to_string_lossy() + "::");
        let prefix = format!("crate::{}", inside.collect::<String>());
        Ok(Some(Self { file, folder, prefix, ranks: ranks.collect() }))
    }

    fn check(&self, found: &mut Vec<String>) -> Done {
        for layer in self.ranks.keys() {
            if !self.folder.join(format!("{layer}.rs")).exists()
                && !self.folder.join(layer).is_dir()
            {
                found.push(format!("{}: there is no layer {layer}", self.file.display()));
            }
        }
        for source in files::below(self.folder, ".rs")? {
            let inside = source.strip_prefix(self.folder)?.with_extension("");
            let mine = inside.iter().next().unwrap_or_default().to_string_lossy().into_owned();
            if source == self.file
                || source.ends_with("tests.rs")
                || !self.ranks.contains_key(&mine)
            {
                continue;
            }
            let text = fs::read_to_string(&source)?;
            for (line, wrong) in self.wrong_in(&mine, &text) {
                found.push(format!("{}:{line}: {wrong}", source.display()));
            }
        }
        Ok(())
    }

    /// The errors in the source of the layer `mine`, with line numbers.
    fn wrong_in(&self, mine: &str, text: &str) -> Vec<(usize, String)> {
        let mut wrong = Vec::new();
        let mut open = false;
        for (number, line) in files::without_tests(text).into_iter().enumerate() {
            let code = if line.trim_start().starts_with("//") { "" } else { line };
            let code = code.replace("$crate::", "");
            if code.contains("super::super::") {
                wrong.push((
                    number + 1,
                    "super::super:: hides the layer: write the path from crate::".to_owned(),
                ));
            }
            let mut judge =
                |path: &str| wrong.extend(self.judge(mine, path).map(|words| (number + 1, words)));
            let listed = |list: &str| {
                list.split('}')
                    .next()
                    .unwrap_or_default()
                    .split(',')
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            if open {
                listed(&code).iter().for_each(|path| judge(path));
                open = !code.contains('}');
            }
            for rest in code.split(&self.prefix).skip(1) {
                match rest.strip_prefix('{') {
                    Some(list) => {
                        listed(list).iter().for_each(|path| judge(path));
                        open = !list.contains('}');
                    }
                    None => judge(rest),
                }
            }
        }
        wrong
    }

    /// Judges the start of a path, seen from the module that declares the layers.
    fn judge(&self, mine: &str, path: &str) -> Option<String> {
        let path = path.trim_start();
        let end = path
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .unwrap_or(path.len());
        let name = &path[..end];
        match (self.ranks.get(name), self.ranks.get(mine)) {
            (Some(its), Some(ours)) if its > ours => {
                Some(format!("{mine} is below {name} and must not import it"))
            }
            (Some(its), Some(ours)) if its == ours && name != mine => {
                Some(format!("{mine} is beside {name} and must not import it"))
            }
            (None, _) if name.starts_with(|letter: char| letter.is_ascii_uppercase()) => {
                Some(format!("{}{name} hides its layer: import it from its module", self.prefix))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each way up is found, and nothing else.
    #[test]
    fn every_way_up_is_found() {
        let sh = crate::made_up::shell();
        let source = sh.scratch().unwrap().join("src");
        fs::create_dir(&source).unwrap();
        let write = |name: &str, text: &str| fs::write(source.join(name), text).unwrap();
        write("lib.rs", "//! Layers, lowest first: low|next,\n//! high, gone.\n");
        write("high.rs", "");
        write("next.rs", "");
        write(
            "low.rs",
            "use crate::high::A;\nuse crate::{\n    low::B,\n    high::C,\n};\nuse crate::D;\nuse crate::next::J;\nuse crate::low::K;\n\
             use super::super::high::E;\nfn f(_: &crate::low::F, _: crate::high::G) {}\n// crate::high::H\n#[cfg(test)]\nmod tests {\n    use \
             crate::high::I;\n}\n",
        );
        let mut found = Vec::new();
        Layers::of(&source.join("lib.rs"), &source).unwrap().unwrap().check(&mut found).unwrap();
        let places: Vec<_> = found
            .iter()
            .map(|line| line.rsplit('/').next().unwrap().split(": ").next().unwrap())
            .collect();
        assert_eq!(
            places,
            ["lib.rs", "low.rs:1", "low.rs:4", "low.rs:6", "low.rs:7", "low.rs:9", "low.rs:10"]
        );
    }

    #[test]
    fn a_file_without_the_line_has_no_layers() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/files.rs");
        assert!(Layers::of(&file, file.parent().unwrap()).unwrap().is_none());
    }
}
