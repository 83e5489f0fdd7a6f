//! The documentation of public items: whether each item that users call has a compiled example,
//! lists its errors, says what happens when its future is dropped, and has units for its times.
//!
//! Users can reach what is `pub` in public modules, and what a visible module re-exports by name:
//! the sources are read without following their imports, as no two items share a name by chance.
//!
//! * **A compiled example**. An awaited item has its own. For a method that is not awaited, the
//!   example of its type at the top of the page is enough, if it visibly calls the method; if the
//!   method takes only `self`, any example on the page is. For a type, an example of one of its
//!   methods is enough, or any example that visibly names it. Methods of traits are what
//!   implementations write, so the trait's example is enough.
//! * **`# Errors`** if it returns a `Result`, and **`# Cancel safety`** if it is awaited. A trait
//!   may say it for all of its methods.
//! * **A unit** for each time that is a bare number, by its name or in words.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Ident, ImplItem, Item as Syntax, ItemMod, Signature, TraitItem, UseTree};

use crate::item::{
    Item, Sort, documentation, is_for_tests, is_hidden, is_public, last_name, read, sort_of,
};
use crate::units;

/// The public items of these crates, with the methods of their types, in order of name.
///
/// # Errors
///
/// Names the file that cannot be read or parsed, and why.
pub fn public_items(root: &Path, crates: &[&str]) -> Result<Vec<Item>, String> {
    let mut found = Found::new(root);
    for name in crates {
        let product = Path::new("crates").join(name);
        let testing = Path::new("testing").join(name.trim_start_matches("locktopus-"));
        let is_product = root.join(&product).is_dir();
        let file = [testing, product][usize::from(is_product)].join("src/lib.rs");
        found.of_crate = name.replace('-', "_");
        found.add(&file, &parse(root, &file)?, true)?;
    }
    Ok(found.visible())
}

fn parse(root: &Path, file: &Path) -> Result<Vec<Syntax>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = fs::read_to_string(root.join(file)).map_err(|error| wrong(&error))?;
    Ok(syn::parse_file(&text).map_err(|error| wrong(&error))?.items)
}

/// The items so far.
struct Found<'a> {
    root: &'a Path,
    of_crate: String,
    /// With whether they are in a public module.
    items: Vec<(Item, bool)>,
    /// The re-exports of public modules, and the types in them.
    named: BTreeSet<String>,
    /// What is re-exported without documentation, with its crate.
    hidden: BTreeSet<String>,
}

impl<'a> Found<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            of_crate: String::new(),
            items: Vec::new(),
            named: BTreeSet::new(),
            hidden: BTreeSet::new(),
        }
    }

    /// The items that users can reach.
    fn visible(self) -> Vec<Item> {
        let base = |item: &Item| item.name.split("::").nth(1).unwrap_or_default().to_owned();
        let items = self.items.into_iter();
        let visible = items.filter(|(item, open)| {
            !self.hidden.contains(&item.name) && (*open || self.named.contains(&base(item)))
        });
        let mut visible: Vec<_> = visible.map(|(item, _)| item).collect();
        visible.sort_by(|a, b| a.name.cmp(&b.name));
        visible
    }

    /// Adds the items of a module, and of those inside it.
    fn add(&mut self, file: &Path, items: &[Syntax], open: bool) -> Result<(), String> {
        for one in items {
            match one {
                Syntax::Mod(it) if is_hidden(&it.attrs) => self.inside(file, it, false)?,
                Syntax::Mod(it) if is_for_tests(&it.attrs) => {}
                Syntax::Mod(it) => self.inside(file, it, open && is_public(&it.vis))?,
                Syntax::Use(it) if open && is_public(&it.vis) => {
                    let mut names = BTreeSet::new();
                    leaves(&it.tree, &mut names);
                    if is_hidden(&it.attrs) {
                        let full = |name| format!("{}::{name}", self.of_crate);
                        self.hidden.extend(names.into_iter().map(full));
                    } else {
                        self.named.extend(names);
                    }
                }
                Syntax::Impl(block) if block.trait_.is_none() => {
                    let Some(of) = last_name(&block.self_ty) else {
                        continue;
                    };
                    for one in &block.items {
                        if let ImplItem::Fn(it) = one
                            && is_public(&it.vis)
                        {
                            let name = format!("{of}::{}", it.sig.ident);
                            self.function(file, &name, (&it.sig, &it.attrs), false, false);
                        }
                    }
                }
                Syntax::Fn(it) if is_public(&it.vis) => {
                    let name = it.sig.ident.to_string();
                    self.function(file, &name, (&it.sig, &it.attrs), false, open);
                }
                Syntax::Macro(it)
                    if it.attrs.iter().any(|of| of.path().is_ident("macro_export")) =>
                {
                    let name = it
                        .ident
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default();
                    self.push(file, &name, Sort::Macro, &it.attrs, Vec::new(), true);
                }
                Syntax::Struct(it) if is_public(&it.vis) => {
                    self.of_type(
                        file,
                        &it.ident,
                        &it.attrs,
                        units::of_fields(&it.fields),
                        open,
                    );
                }
                Syntax::Enum(it) if is_public(&it.vis) => {
                    self.of_type(file, &it.ident, &it.attrs, units::of_variants(it), open);
                }
                Syntax::Type(it) if is_public(&it.vis) => {
                    self.of_type(file, &it.ident, &it.attrs, Vec::new(), open);
                }
                Syntax::Trait(it) if is_public(&it.vis) && !is_hidden(&it.attrs) => {
                    self.of_type(file, &it.ident, &it.attrs, Vec::new(), open);
                    for one in &it.items {
                        if let TraitItem::Fn(method) = one {
                            let name = format!("{}::{}", it.ident, method.sig.ident);
                            self.function(file, &name, (&method.sig, &method.attrs), true, false);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Hidden modules are read for the methods of visible types.
    fn inside(&mut self, file: &Path, module: &ItemMod, open: bool) -> Result<(), String> {
        if let Some((_, items)) = &module.content {
            return self.add(file, items, open);
        }
        let file = file_of(self.root, file, &module.ident.to_string())?;
        self.add(&file, &parse(self.root, &file)?, open)
    }

    fn of_type(
        &mut self,
        file: &Path,
        name: &Ident,
        attributes: &[Attribute],
        times: Vec<String>,
        open: bool,
    ) {
        if open {
            self.named.insert(name.to_string());
        }
        self.push(file, &name.to_string(), Sort::Type, attributes, times, open);
    }

    fn function(
        &mut self,
        file: &Path,
        name: &str,
        (signature, attributes): (&Signature, &[Attribute]),
        of_trait: bool,
        open: bool,
    ) {
        let times = units::of_function(signature, attributes);
        let sort = sort_of(signature, of_trait);
        self.push(file, name, sort, attributes, times, open);
    }

    fn push(
        &mut self,
        file: &Path,
        name: &str,
        sort: Sort,
        attributes: &[Attribute],
        without_unit: Vec<String>,
        open: bool,
    ) {
        if is_hidden(attributes) {
            return;
        }
        let (examples, headings) = read(&documentation(attributes));
        let item = Item {
            name: format!("{}::{name}", self.of_crate),
            file: file.to_owned(),
            sort,
            examples,
            headings,
            without_unit,
        };
        self.items.push((item, open));
    }
}

/// The names in an import. A renaming one is not supported; this repository has none.
fn leaves(tree: &UseTree, found: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => leaves(&path.tree, found),
        UseTree::Name(name) => drop(found.insert(name.ident.to_string())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, found)),
        UseTree::Glob(_) | UseTree::Rename(_) => {}
    }
}

/// The file of a module that another file declares.
fn file_of(root: &Path, parent: &Path, name: &str) -> Result<PathBuf, String> {
    let folder = match parent.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "mod") | None => parent.with_file_name(""),
        Some(_) => parent.with_extension(""),
    };
    let files = [format!("{name}.rs"), format!("{name}/mod.rs")].map(|file| folder.join(file));
    let found = files.into_iter().find(|file| root.join(file).is_file());
    found.ok_or_else(|| format!("{}: no file of module {name}", parent.display()))
}

/// The gaps in the documentation of these items: `example`, `unit`, `errors` or `cancel-safety`.
#[must_use]
pub fn lacks(items: &[Item]) -> Vec<(&Item, &'static str)> {
    let mut found = Vec::new();
    for item in items {
        let mut needs = |what, there: bool| found.extend((!there).then_some((item, what)));
        needs("example", has_example(item, items));
        needs("unit", item.without_unit.is_empty());
        if let Sort::Function {
            is_async, can_fail, ..
        } = item.sort
        {
            needs("errors", !can_fail || says(item, items, "Errors"));
            needs(
                "cancel-safety",
                !is_async || says(item, items, "Cancel safety"),
            );
        }
    }
    found
}

fn has_example(item: &Item, items: &[Item]) -> bool {
    if !item.examples.is_empty() {
        return true;
    }
    let of = type_of(item, items);
    match item.sort {
        Sort::Macro => false,
        Sort::Type => {
            let inside = format!("{}::", item.name);
            let of_method = |one: &Item| one.name.starts_with(&inside) && !one.examples.is_empty();
            let name = short(item);
            let named = |line: &str| {
                let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
                words.any(|word| word == name)
            };
            let all = || items.iter().flat_map(|one| &one.examples);
            items.iter().any(of_method) || all().any(|example| seen(example).any(named))
        }
        Sort::Function { of_trait: true, .. } => of.is_some_and(|of| !of.examples.is_empty()),
        Sort::Function { is_async: true, .. } => false,
        Sort::Function { asks_nothing, .. } => {
            let Some(of) = of else { return false };
            let inside = format!("{}::", of.name);
            let calls = [
                format!(".{}(", short(item)),
                format!("{}::{}(", short(of), short(item)),
            ];
            let on_page =
                |one: &&Item| one.name == of.name || asks_nothing && one.name.starts_with(&inside);
            let examples = items.iter().filter(on_page).flat_map(|one| &one.examples);
            let mut lines = examples.flat_map(|example| seen(example));
            lines.any(|line| calls.iter().any(|call| line.contains(call)))
        }
    }
}

/// The lines of an example that readers see, without hidden lines and comments.
fn seen(example: &str) -> impl Iterator<Item = &str> {
    let shown = example.lines().filter(|line| {
        let line = line.trim_start();
        line != "#" && !line.starts_with("# ")
    });
    shown.map(|line| match line.split_once("//") {
        // The slashes of an address start no comment.
        Some((code, _)) if !code.ends_with(':') => code,
        _ => line,
    })
}

fn says(item: &Item, items: &[Item], heading: &str) -> bool {
    let of_trait = matches!(item.sort, Sort::Function { of_trait: true, .. });
    let has = |item: &Item| item.headings.iter().any(|own| own == heading);
    has(item) || of_trait && type_of(item, items).is_some_and(has)
}

fn type_of<'a>(item: &Item, items: &'a [Item]) -> Option<&'a Item> {
    let (of, _) = item.name.rsplit_once("::")?;
    items.iter().find(|other| other.name == of)
}

/// The name without its crate and type.
fn short(item: &Item) -> &str {
    item.name.rsplit("::").next().unwrap_or(&item.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gaps in a crate with this text.
    fn lacks_of(text: &str) -> Vec<String> {
        let parsed = syn::parse_file(text).unwrap().items;
        let mut found = Found::new(Path::new(""));
        found.of_crate = "a".to_owned();
        found.add(Path::new("lib.rs"), &parsed, true).unwrap();
        let items = found.visible();
        let lacks = lacks(&items);
        let lacks = lacks
            .iter()
            .map(|(item, lack)| format!("{lack} {}", item.name));
        lacks.collect()
    }

    const EXAMPLE: &str = "/// ```\n/// let guard = Guard::open(); guard.name();\n/// ```\n";

    #[test]
    fn everything_that_users_call_needs_an_example() {
        let text =
            "mod inner { pub struct Guard; impl Guard { pub fn open(at: u8) {} fn own(&self) {} } }
            pub use inner::Guard;
            mod sealed { pub trait Sealed { fn own(); } }
            pub fn free() {}
            #[macro_export] macro_rules! shout { () => {} }
            #[doc(hidden)] pub fn hidden() {}
            #[doc(hidden)] pub mod internal { pub fn own() {} }
            #[cfg(test)] pub mod tests { pub fn own() {} }
            pub(crate) struct Private;";
        let expected = ["Guard", "Guard::open", "free", "shout"];
        assert_eq!(
            lacks_of(text),
            expected.map(|name| format!("example a::{name}"))
        );
    }

    #[test]
    fn examples_show_what_they_visibly_call() {
        let example = "/// ```\n/// # hidden.drop_it();\n/// let guard = Guard::open(7); guard.set(8);\n/// ```\n";
        let methods = "pub fn open(at: u8) {} pub fn set(&self, to: u8) {} pub fn token(&self) {} \
                       pub fn drop_it(&self) {} pub async fn close(&self) {}";
        let text = format!("{example} pub struct Guard; impl Guard {{ {methods} }}");
        let lacking = ["example a::Guard::drop_it", "example a::Guard::token"];
        let awaited = ["example a::Guard::close", "cancel-safety a::Guard::close"];
        assert_eq!(lacks_of(&text), [awaited, lacking].concat());
        // An example of another method shows getters alone.
        let methods = format!(
            "{EXAMPLE} pub fn open() {{}} pub fn name(&self) {{}} pub fn set(&self, to: u8) {{}}"
        );
        let text = format!("pub struct Guard; impl Guard {{ {methods} }}");
        assert_eq!(lacks_of(&text), ["example a::Guard::set"]);
        // A type is shown where an example names it.
        let text = format!("pub struct Guard; pub struct Guardian; {EXAMPLE} pub fn open() {{}}");
        assert_eq!(lacks_of(&text), ["example a::Guardian"]);
        for (line, shown) in [
            ("# use a::Guard;", false),
            ("open(); // a Guard", false),
            ("#", false),
            ("open(\\\"a://b\\\", Guard);", true),
        ] {
            let text =
                format!("pub struct Guard; /// ```\n/// {line}\n/// ```\npub fn open() {{}}");
            assert_eq!(lacks_of(&text).is_empty(), shown, "{line}");
        }
        for (language, compiled) in [("text", false), ("ignore", false), ("no_run", true)] {
            let text = format!("/// ```{language}\n/// x\n/// ```\npub fn open() {{}}");
            assert_eq!(lacks_of(&text).is_empty(), compiled, "{language}");
        }
    }

    #[test]
    fn times_that_are_numbers_have_a_unit() {
        for (text, lacking) in [
            ("pub fn lease() -> Option<u64> { None }", 1),
            ("pub fn open(timeout: u32) {}", 1),
            ("pub struct Guard { pub valid_until: u64 }", 1),
            ("pub enum Guard { Lost { since: u64 } }", 1),
            ("pub fn lease_ms() -> u64 { 0 }", 0),
            ("pub fn open(timeout: Duration, waiters: u32) {}", 0),
            (
                "pub struct Guard { lease: u64, /// In milliseconds.\npub valid_until: u64 }",
                0,
            ),
            ("/// Counts seconds.\npub fn lease() -> u64 { 0 }", 0),
            ("pub fn repeated(times: u32) {}", 0),
        ] {
            let found = lacks_of(&format!("{EXAMPLE}{text}"));
            assert_eq!(found.len(), lacking, "{text}: {found:?}");
            assert!(
                found.iter().all(|found| found.starts_with("unit a::")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn errors_and_dropped_futures_are_told() {
        let both = ["errors a::open", "cancel-safety a::open"];
        for signature in [
            "pub async fn open() -> Result<(), E> {}",
            "pub fn open() -> impl Future<Output = Result<(), E>> + use<> {}",
            "pub fn open() -> Pin<Box<dyn Future<Output = io::Result<()>> + Send>> {}",
        ] {
            assert_eq!(
                lacks_of(&format!("{EXAMPLE}{signature}")),
                both,
                "{signature}"
            );
        }
        let told = "/// # Errors\n/// None.\n/// # Cancel safety\n/// Yes.\n";
        let text = format!("{EXAMPLE}{told}pub async fn open() -> Result<(), E> {{}}");
        assert!(lacks_of(&text).is_empty());
        // A trait may say it for its methods.
        let method = "async fn attempt(&self) -> Result<(), E>;";
        let text = format!("{EXAMPLE}/// # Errors\n/// All.\npub trait Backend {{ {method} }}");
        assert_eq!(lacks_of(&text), ["cancel-safety a::Backend::attempt"]);
    }
}
