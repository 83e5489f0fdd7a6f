//! Finds the public items, from the root of a crate.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Attribute, ImplItem, Item as Syntax, Signature, TraitItem, Type, UseTree, Visibility};

use super::item::{Item, Sort, is_hidden, sort_of};
use super::source::{Module, ModulePath, Sources};
use super::units;

/// A definition: its module and its name.
type Place = (ModulePath, String);

/// Every item that can be named through the root of these crates, with the methods of its types,
/// each once and in order of name. Items of crates that were not read are left out.
#[must_use]
pub fn public_items(sources: &Sources, roots: &[&str]) -> Vec<Item> {
    let mut reach = Reach {
        sources,
        entered: BTreeSet::new(),
        found: BTreeMap::new(),
    };
    for root in roots {
        let root = root.replace('-', "_");
        reach.enter(&vec![root.clone()], &root);
    }
    let mut items: Vec<Item> = reach
        .found
        .iter()
        .flat_map(|(place, public)| sources.items_at(place, public))
        .collect();
    items.sort_by(|a, b| a.name.cmp(&b.name));
    items
}

/// The items found so far, on the paths from the roots.
struct Reach<'a> {
    sources: &'a Sources,
    entered: BTreeSet<ModulePath>,
    /// Definitions, and their public names: the shortest path that leads there.
    found: BTreeMap<Place, String>,
}

impl Reach<'_> {
    /// Adds all public items of a module, whose public path is `public`.
    fn enter(&mut self, path: &ModulePath, public: &str) {
        let Some(module) = self.sources.modules.get(path) else {
            return;
        };
        if !self.entered.insert(path.clone()) {
            return;
        }
        for item in &module.items {
            match item {
                Syntax::Mod(module) if is_hidden(&module.attrs) => {}
                Syntax::Use(import) if is_public(&import.vis) && !is_hidden(&import.attrs) => {
                    for (name, from) in leaves(&import.tree) {
                        self.import(path, &name, &from, public);
                    }
                }
                _ => {
                    if let Some((name, true)) = named(item) {
                        self.add((path.clone(), name), public);
                    }
                }
            }
        }
        if path.len() == 1 {
            for (at, module) in self.sources.of_crate(path) {
                for name in exported_macros(module) {
                    let public = format!("{public}::{name}");
                    self.found.entry((at.clone(), name)).or_insert(public);
                }
            }
        }
    }

    fn add(&mut self, place: Place, public: &str) {
        let public = format!("{public}::{}", place.1);
        let mut inside = place.0.clone();
        inside.push(place.1.clone());
        if self.sources.modules.contains_key(&inside) {
            self.enter(&inside, &public);
        }
        let known = self.found.entry(place).or_insert_with(|| public.clone());
        if public.matches("::").count() < known.matches("::").count() {
            *known = public;
        }
    }

    fn import(&mut self, here: &ModulePath, name: &str, from: &[String], public: &str) {
        let Some(module) = self.sources.module(here, from) else {
            return;
        };
        if name == "*" {
            self.enter(&module, public);
        } else if let Some(place) = self.sources.definition(&module, name, 0) {
            self.add(place, public);
        }
    }
}

impl Sources {
    /// The module that a path leads to, as seen from another.
    fn module(&self, here: &ModulePath, path: &[String]) -> Option<ModulePath> {
        self.module_within(here, path, 0)
    }

    fn module_within(
        &self,
        here: &ModulePath,
        path: &[String],
        depth: usize,
    ) -> Option<ModulePath> {
        let mut at = here.clone();
        for (index, part) in path.iter().enumerate() {
            match part.as_str() {
                "crate" => at.truncate(1),
                "self" => {}
                "super" => {
                    at.pop();
                }
                name => {
                    let mut inside = at.clone();
                    inside.push(name.to_owned());
                    if self.modules.contains_key(&inside) {
                        at = inside;
                    } else if index == 0 && self.modules.contains_key(&vec![name.to_owned()]) {
                        at = vec![name.to_owned()];
                    } else {
                        // Another crate's, or a renamed module.
                        let (module, name) = self.definition(&at, name, depth)?;
                        at = module;
                        at.push(name);
                    }
                }
            }
        }
        self.modules.contains_key(&at).then_some(at)
    }

    /// The definition of a name that a module uses.
    fn definition(&self, path: &ModulePath, name: &str, depth: usize) -> Option<Place> {
        let module = self.modules.get(path)?;
        if module
            .items
            .iter()
            .any(|item| named(item).is_some_and(|(own, _)| own == name))
        {
            return Some((path.clone(), name.to_owned()));
        }
        // Only a circle of imports is that long.
        if depth > 8 {
            return None;
        }
        module.items.iter().find_map(|item| {
            let Syntax::Use(import) = item else {
                return None;
            };
            leaves(&import.tree).into_iter().find_map(|(leaf, from)| {
                if leaf != name && leaf != "*" || from.first().is_some_and(|first| first == name) {
                    return None;
                }
                // Names from crates that were not read might be re-exports of each other.
                let from = self.module_within(path, &from, depth + 3)?;
                self.definition(&from, name, depth + 1)
            })
        })
    }

    /// The modules of the crate that this module is in.
    fn of_crate(&self, path: &ModulePath) -> impl Iterator<Item = (&ModulePath, &Module)> {
        let root = path[0].clone();
        self.modules.iter().filter(move |(at, _)| at[0] == root)
    }

    /// The items of one definition: itself, and its methods.
    fn items_at(&self, (path, name): &Place, full: &str) -> Vec<Item> {
        let module = &self.modules[path];
        let mut found = Vec::new();
        for item in &module.items {
            if named(item).is_none_or(|(own, _)| own != *name) {
                continue;
            }
            let (sort, attributes) = match item {
                Syntax::Struct(item) => (Sort::Type, &item.attrs),
                Syntax::Enum(item) => (Sort::Type, &item.attrs),
                Syntax::Type(item) => (Sort::Type, &item.attrs),
                Syntax::Trait(item) => (Sort::Type, &item.attrs),
                Syntax::Macro(item) => (Sort::Macro, &item.attrs),
                Syntax::Fn(item) => (sort_of(&item.sig, false), &item.attrs),
                // Constants are not called.
                _ => continue,
            };
            if is_hidden(attributes) {
                continue;
            }
            let times = match item {
                Syntax::Struct(item) => units::of_fields(&item.fields),
                Syntax::Enum(item) => units::of_variants(item),
                Syntax::Fn(item) => units::of_function(&item.sig, attributes),
                _ => Vec::new(),
            };
            let file = module.file.clone();
            found.push(Item::new(full.to_owned(), file, sort, attributes).with_times(times));
            if let Syntax::Trait(item) = item {
                found.extend(item.items.iter().filter_map(|item| {
                    let TraitItem::Fn(method) = item else {
                        return None;
                    };
                    let name = format!("{full}::{}", method.sig.ident);
                    let sort = sort_of(&method.sig, true);
                    (!is_hidden(&method.attrs))
                        .then(|| self::method(name, module, sort, &method.sig, &method.attrs))
                }));
            }
        }
        if found.iter().any(|item| item.sort == Sort::Type) {
            found.extend(self.methods(path, name, full));
        }
        found
    }

    /// The public methods of a type, anywhere in its crate.
    fn methods(&self, path: &ModulePath, name: &str, full: &str) -> Vec<Item> {
        let mut found = Vec::new();
        for (at, module) in self.of_crate(path) {
            for item in &module.items {
                let Syntax::Impl(block) = item else { continue };
                let Type::Path(of) = &*block.self_ty else {
                    continue;
                };
                let Some(last) = of.path.segments.last() else {
                    continue;
                };
                if block.trait_.is_some()
                    || last.ident != name
                    || self.definition(at, name, 0) != Some((path.clone(), name.to_owned()))
                {
                    continue;
                }
                found.extend(block.items.iter().filter_map(|item| {
                    let ImplItem::Fn(method) = item else {
                        return None;
                    };
                    let name = format!("{full}::{}", method.sig.ident);
                    let sort = sort_of(&method.sig, false);
                    (is_public(&method.vis) && !is_hidden(&method.attrs))
                        .then(|| self::method(name, module, sort, &method.sig, &method.attrs))
                }));
            }
        }
        found
    }
}

fn method(
    name: String,
    module: &Module,
    sort: Sort,
    signature: &Signature,
    attributes: &[Attribute],
) -> Item {
    let times = units::of_function(signature, attributes);
    Item::new(name, module.file.clone(), sort, attributes).with_times(times)
}

/// The name of an item, and whether it is public.
fn named(item: &Syntax) -> Option<(String, bool)> {
    let (name, visibility) = match item {
        Syntax::Struct(item) => (&item.ident, &item.vis),
        Syntax::Enum(item) => (&item.ident, &item.vis),
        Syntax::Type(item) => (&item.ident, &item.vis),
        Syntax::Trait(item) => (&item.ident, &item.vis),
        Syntax::Fn(item) => (&item.sig.ident, &item.vis),
        Syntax::Const(item) => (&item.ident, &item.vis),
        Syntax::Mod(item) => (&item.ident, &item.vis),
        // Exported macros are at the root, wherever they are written.
        Syntax::Macro(item) => return Some((item.ident.as_ref()?.to_string(), false)),
        _ => return None,
    };
    Some((name.to_string(), is_public(visibility)))
}

fn exported_macros(module: &Module) -> impl Iterator<Item = String> {
    module.items.iter().filter_map(|item| match item {
        Syntax::Macro(item) => {
            let exported = item
                .attrs
                .iter()
                .any(|of| of.path().is_ident("macro_export"));
            item.ident
                .as_ref()
                .filter(|_| exported)
                .map(ToString::to_string)
        }
        _ => None,
    })
}

pub(super) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The names in an import, and the path before them. A renaming import is not supported; this
/// repository has none.
fn leaves(tree: &UseTree) -> Vec<(String, Vec<String>)> {
    match tree {
        UseTree::Path(path) => leaves(&path.tree)
            .into_iter()
            .map(|(name, mut from)| {
                from.insert(0, path.ident.to_string());
                (name, from)
            })
            .collect(),
        UseTree::Name(name) => vec![(name.ident.to_string(), Vec::new())],
        UseTree::Rename(rename) => vec![(rename.ident.to_string(), Vec::new())],
        UseTree::Glob(_) => vec![("*".to_owned(), Vec::new())],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}
