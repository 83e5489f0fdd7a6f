//! The modules of crates, parsed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use syn::{Attribute, Item, ItemMod, Meta};

/// A module path, starting with the crate.
pub(super) type ModulePath = Vec<String>;

/// One module, without those inside it.
pub(super) struct Module {
    /// Its file, relative to the root of the repository.
    pub(super) file: PathBuf,
    pub(super) items: Vec<Item>,
}

/// The folder of a crate: `crates/NAME`, or without `locktopus-` in `testing`.
fn folder(root: &Path, name: &str) -> PathBuf {
    let product = Path::new("crates").join(name);
    let testing = Path::new("testing").join(name.trim_start_matches("locktopus-"));
    match root.join(&product).is_dir() {
        true => product,
        false => testing,
    }
}

/// The modules of some crates of this repository, for all features, except those of unit tests.
#[derive(Default)]
pub struct Sources {
    pub(super) modules: BTreeMap<ModulePath, Module>,
}

impl Sources {
    /// Reads crates by their names.
    ///
    /// # Errors
    ///
    /// Names the file that cannot be read or parsed, and why.
    pub fn read(root: &Path, crates: &[&str]) -> Result<Self, String> {
        let mut sources = Self::default();
        for name in crates {
            let file = folder(root, name).join("src/lib.rs");
            let items = parse(root, &file)?;
            let path = vec![name.replace('-', "_")];
            sources.add(root, path, file, items)?;
        }
        Ok(sources)
    }

    /// A crate in one file.
    #[cfg(test)]
    pub(super) fn of_text(name: &str, text: &str) -> Self {
        let items = syn::parse_file(text).expect("Rust").items;
        let mut sources = Self::default();
        sources
            .add(Path::new(""), vec![name.to_owned()], "lib.rs".into(), items)
            .expect("no module in another file");
        sources
    }

    fn add(
        &mut self,
        root: &Path,
        path: ModulePath,
        file: PathBuf,
        items: Vec<Item>,
    ) -> Result<(), String> {
        for item in &items {
            let Item::Mod(module) = item else { continue };
            if is_for_tests(&module.attrs) {
                continue;
            }
            let mut inner = path.clone();
            inner.push(module.ident.to_string());
            match &module.content {
                Some((_, items)) => self.add(root, inner, file.clone(), items.clone())?,
                None => {
                    let file = file_of(root, &file, module)?;
                    let items = parse(root, &file)?;
                    self.add(root, inner, file, items)?;
                }
            }
        }
        self.modules.insert(path, Module { file, items });
        Ok(())
    }
}

/// Names of modules: syntax trees have no `Debug`.
impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.modules.keys()).finish()
    }
}

/// The file of a module that another file declares.
fn file_of(root: &Path, parent: &Path, module: &ItemMod) -> Result<PathBuf, String> {
    let folder = match parent.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "mod") | None => parent.with_file_name(""),
        Some(_) => parent.with_extension(""),
    };
    let name = module.ident.to_string();
    [
        folder.join(format!("{name}.rs")),
        folder.join(&name).join("mod.rs"),
    ]
    .into_iter()
    .find(|file| root.join(file).is_file())
    .ok_or_else(|| format!("{}: no file of module {name}", parent.display()))
}

fn parse(root: &Path, file: &Path) -> Result<Vec<Item>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = fs::read_to_string(root.join(file)).map_err(|error| wrong(&error))?;
    Ok(syn::parse_file(&text).map_err(|error| wrong(&error))?.items)
}

/// Whether it has `#[cfg(test)]` or the like.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition.starts_with("test") || condition.starts_with("all (test")
        }
        _ => false,
    })
}
